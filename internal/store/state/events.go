package state

import "time"

// EventVersion is the version of the form of events that is written.
const EventVersion = 1

// EventKind names what happened. The texts are stored: they do not change.
type EventKind string

// The events. They are written together with the change that they tell of, in
// its partition.
const (
	RunCreated   EventKind = "run_created"
	RunCompleted EventKind = "run_completed"
	OrderBegun   EventKind = "order_begun"
	OrderEnded   EventKind = "order_ended"

	NodePlanned  EventKind = "node_planned"
	NodeMoved    EventKind = "node_moved"
	NodeHeard    EventKind = "node_heard"
	BatchClaimed EventKind = "batch_claimed" // an attempt before it whose lease had ended is lost
	BatchEnded   EventKind = "batch_ended"   // Status says how its attempt did
)

// Event is something that has happened to a run or a node.
type Event struct {
	NodeKey           // Node is empty for events of the run itself
	Seq     int64     `json:"seq"` // 1, 2, 3 … of the run itself, and of each node
	Version int       `json:"version"`
	Time    time.Time `json:"time"`
	Actor   string    `json:"actor,omitempty"` // worker or person
	Kind    EventKind `json:"kind"`
	EventData
}

// EventData holds the details of an event.
type EventData struct {
	Status     Status    `json:"status,omitempty"` // that the run, node or attempt has now
	Epoch      int64     `json:"epoch,omitempty"`
	Generation int       `json:"generation,omitempty"`
	Command    *Command  `json:"order,omitempty"`
	Batches    int       `json:"batches,omitempty"`     // that were planned
	Digest     string    `json:"digest,omitempty"`      // of the plan
	ReusedFrom *NodeKey  `json:"reused_from,omitempty"` // whose rows the plan takes over
	Gate       string    `json:"gate,omitempty"`        // digest of what a node waits for
	Decision   *Decision `json:"decision,omitempty"`    // that the order has made
	Batch      *int      `json:"batch,omitempty"`
	Attempt    int       `json:"attempt,omitempty"`
	RowsIn     int64     `json:"rows_in,omitempty"`
	RowsOut    int64     `json:"rows_out,omitempty"`
	BytesOut   int64     `json:"bytes_out,omitempty"`
	Failure    *Failure  `json:"failure,omitempty"`
}
