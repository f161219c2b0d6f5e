package view

import (
	"time"

	"thalweg/internal/ops/gc"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Decided is the JSON form of a decision that stands.
type Decided struct {
	Workspace string            `json:"workspace"`
	Run       int64             `json:"run"`
	Gate      string            `json:"gate"`
	Approved  bool              `json:"approved"`
	Role      string            `json:"role,omitempty"`
	Comment   string            `json:"comment,omitempty"`
	Answers   map[string]string `json:"answers,omitempty"`
	Digest    string            `json:"digest"`
	Shows     []gate.Shown      `json:"shows"`
	AtWork    bool              `json:"at_work"` // a process works on the run, and goes on by itself
}

// Dropped is the JSON form of a run that is dropped.
type Dropped struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	DryRun    bool             `json:"dry_run"`
	Nodes     []string         `json:"nodes"`
	Bytes     int64            `json:"bytes"`
	Made      []orders.Touched `json:"made_from_it"`
}

// Asked is the JSON form of a gate that waits.
type Asked struct {
	Workspace string      `json:"workspace"`
	Run       int64       `json:"run"`
	Script    string      `json:"script"`
	Note      string      `json:"note,omitempty"` // that the run was begun with; of a matrix's: its cell
	Gate      string      `json:"gate"`
	Over      bool        `json:"over,omitempty"` // its time is: it is rejected when somebody next looks at the run
	Record    gate.Record `json:"asks"`
	Look      []string    `json:"look"` // commands that show the tables
	Approve   string      `json:"approve"`
	Reject    string      `json:"reject"`
}

// Collected is the JSON form of what is removed.
type Collected struct {
	Workspace string `json:"workspace"`
	DryRun    bool   `json:"dry_run"`
	Collection
}

// Invalidated is the JSON form of what is invalid.
type Invalidated struct {
	Workspace string           `json:"workspace"`
	Run       int64            `json:"run"`
	DryRun    bool             `json:"dry_run"`
	Nodes     []string         `json:"nodes"`
	Files     []string         `json:"files"`
	Made      []orders.Touched `json:"made_from_it"`
	Origins   []state.NodeKey  `json:"rows_of_other_runs"` // of nodes that have those of others, which stay valid
	Lost      []LostTable      `json:"tables"`             // what nodes have written
}

// LostTable is what a node has written, and the time that it took.
type LostTable struct {
	Node    string        `json:"node"`
	Table   string        `json:"table,omitempty"`
	Rows    int64         `json:"rows"`
	Bytes   int64         `json:"bytes"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Paused is the JSON form of what came of a pause.
type Paused struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Status    state.Status `json:"status"`
	InFlight  int          `json:"in_flight"` // batches that are still at work
}

// Taken is the JSON form of a failure that somebody looks after.
type Taken struct {
	Workspace string      `json:"workspace"`
	Run       int64       `json:"run"`
	Taken     *state.Mark `json:"taken"`
	Before    *state.Mark `json:"before,omitempty"` // who did until then
}

// Stopped is the JSON form of what came of a stop.
type Stopped struct {
	Workspace string        `json:"workspace"`
	Run       int64         `json:"run"`
	Before    state.Status  `json:"before"`
	Status    state.Status  `json:"status"`
	AtWork    bool          `json:"at_work"` // a process had not ended within the time that a stop waits
	MS        int64         `json:"took_ms"`
	Took      time.Duration `json:"-"` // MS, in full
}

// Collection counts what was removed, or would be.
type Collection struct {
	gc.Report
	Copies gc.Amount `json:"remote_copies"` // of remote inputs, of runs that nobody works on: they are copied again
	// OnDisk says that parts are files of this machine, or of a directory that it sees.
	OnDisk bool `json:"-"`
}
