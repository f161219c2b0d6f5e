package cassandra

import (
	"encoding/binary"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// segmentBatches is the number of batches in a segment. The number is stored.
const segmentBatches = 1024

// What a segment knows of a batch's status. The numbers are stored.
const (
	entryFree      = 0 // pending
	entryClaimed   = 1
	entryFailed    = 2
	entrySucceeded = 3
	entryWaiting   = 4 // pending, not to be claimed before a moment
)

// What a batch's latest attempt has published. The bits are stored.
const (
	hasParts  = 1
	hasFiles  = 2
	hasChecks = 4
)

// entry is a batch as its segment has it: the truth about its status.
type entry struct {
	status  uint8
	has     uint8 // see hasParts
	attempt int
	until   int64 // claimed until, or waiting until, in milliseconds
}

// segment is the status of some batches, as they were in an era of the node.
type segment struct {
	era     int64
	entries []entry
}

// Widths of a code: status, then what was published, then the attempt.
const (
	statusBits = 3
	hasBits    = 3
	entriesMax = segmentBatches
)

func (e entry) code() uint64 {
	return uint64(e.status) | uint64(e.has)<<statusBits | uint64(e.attempt)<<(statusBits+hasBits) //nolint:gosec // attempts are not negative
}

func (e entry) timed() bool { return e.status == entryClaimed || e.status == entryWaiting }

// moment returns the time at which the entry expires, zero for never.
func (e entry) moment() time.Time {
	if !e.timed() {
		return time.Time{}
	}
	return time.UnixMilli(e.until).UTC()
}

func (e entry) ended() bool { return e.status == entrySucceeded || e.status == entryFailed }

// batchStatus is a batch's status.
func (e entry) batchStatus() state.Status {
	switch e.status {
	case entryClaimed:
		return state.Claimed
	case entryFailed:
		return state.Failed
	case entrySucceeded:
		return state.Succeeded
	}
	return state.Pending
}

// segmentVersion is of the form in which segments are stored.
const segmentVersion = 1

// append writes a segment: its era, then runs of batches that are alike, each
// with its length, then the moments of those that have one.
func (s segment) append(to []byte) []byte {
	to = append(to, segmentVersion)
	to = binary.AppendVarint(to, s.era)
	to = binary.AppendUvarint(to, uint64(len(s.entries)))
	for i := 0; i < len(s.entries); {
		code, n := s.entries[i].code(), 1
		for i+n < len(s.entries) && s.entries[i+n].code() == code {
			n++
		}
		to = binary.AppendUvarint(to, code)
		to = binary.AppendUvarint(to, uint64(n)) //nolint:gosec // a count
		i += n
	}
	for _, e := range s.entries {
		if e.timed() {
			to = binary.AppendVarint(to, e.until)
		}
	}
	return to
}

var errSegment = fault.New(fault.Environment, "what is stored in the state of a node's batches is damaged")

// parseSegment reads what append has written; nothing is an empty segment.
func parseSegment(stored []byte) (s segment, err error) {
	if len(stored) == 0 {
		return s, nil
	}
	if stored[0] != segmentVersion {
		return s, fault.OtherForm("the state of a node's batches", int(stored[0]), segmentVersion)
	}
	r := numbers{rest: stored[1:]}
	s.era = r.signed()
	count := r.unsigned()
	if r.bad || count > entriesMax {
		return s, errSegment
	}
	s.entries = make([]entry, 0, count)
	for uint64(len(s.entries)) < count {
		code, n := r.unsigned(), r.unsigned()
		if r.bad || n == 0 || n > count-uint64(len(s.entries)) || code>>(statusBits+hasBits) > 1<<31 {
			return segment{}, errSegment
		}
		e := entry{status: uint8(code & (1<<statusBits - 1)), has: uint8(code >> statusBits & (1<<hasBits - 1)),
			attempt: int(code >> (statusBits + hasBits))} //nolint:gosec // checked above
		if e.status > entryWaiting {
			return segment{}, errSegment
		}
		for range n {
			s.entries = append(s.entries, e)
		}
	}
	for i := range s.entries {
		if s.entries[i].timed() {
			s.entries[i].until = r.signed()
		}
	}
	if r.bad || len(r.rest) > 0 {
		return segment{}, errSegment
	}
	return s, nil
}

// numbers reads numbers one after the other.
type numbers struct {
	rest []byte
	bad  bool
}

func (r *numbers) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *numbers) unsigned() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *numbers) skip(n int) {
	if n <= 0 {
		r.bad, n = true, 0
	}
	r.rest = r.rest[n:]
}

// at is a batch of the segment, by its place.
func (s segment) at(i int) entry {
	if i >= 0 && i < len(s.entries) {
		return s.entries[i]
	}
	return entry{}
}

// set changes a batch of the segment.
func (s *segment) set(i int, e entry) {
	for len(s.entries) <= i {
		s.entries = append(s.entries, entry{})
	}
	s.entries[i] = e
}

// free gives a batch back to Pending: only what counts attempts stays.
func (e entry) free() entry { return entry{attempt: e.attempt} }

// live brings a segment to the era of its node: what has been freed since it
// was written is free. all is the latest era that freed also what had succeeded.
func (s *segment) live(era, all int64) {
	if s.era == era {
		return
	}
	for i, e := range s.entries {
		if s.era < all || e.status != entrySucceeded {
			s.entries[i] = e.free()
		}
	}
	s.era = era
}
