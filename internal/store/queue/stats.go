package queue

import "time"

// Stats counts what has gone wrong or otherwise than usual in a queue since it was opened.
type Stats struct {
	Malformed uint64 // messages that could not be read, and were dropped
	Newer     uint64 // messages of later versions, which were set aside
	Returned  uint64 // hints for which there was no queue
	Unsettled uint64 // hints whose connection ended before they were acknowledged: they come again
	Handed    uint64 // hints that this process gave to others
	Lost      uint64 // connections that ended, or could not be made

	MalformedAt, NewerAt time.Time // when there was one last; zero: never
}
