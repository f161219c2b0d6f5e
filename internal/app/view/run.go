package view

import (
	"time"

	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// RunSubmitted is the JSON form of a run that was submitted and not followed.
type RunSubmitted struct {
	Event     string `json:"event"`
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
}

// Batch is the JSON form of a batch.
type Batch struct {
	Batch    int            `json:"batch"`
	Status   state.Status   `json:"status"`
	Attempt  int            `json:"attempt"`
	Owner    string         `json:"owner,omitempty"`
	RowsIn   int64          `json:"rows_in"`
	RowsOut  int64          `json:"rows_out"`
	BytesIn  int64          `json:"bytes_in"`
	BytesOut int64          `json:"bytes_out"`
	MS       int64          `json:"elapsed_ms"`
	Took     time.Duration  `json:"-"` // MS, in full
	Failure  *state.Failure `json:"failure,omitempty"`
}

// RunStarted is the first JSON event of a run.
type RunStarted struct {
	Event     string   `json:"event"`
	Workspace string   `json:"workspace"`
	Run       int64    `json:"run"`
	Resumed   bool     `json:"resumed"`
	Nodes     []string `json:"nodes"`
	Budget    any      `json:"budget"`
}

// RunEvent is the JSON form of what happens during a run.
type RunEvent struct {
	Event   job.EventKind  `json:"event"`
	Time    time.Time      `json:"time"`
	Node    string         `json:"node,omitempty"`
	Batch   int            `json:"batch"`
	Attempt int            `json:"attempt,omitempty"`
	Batches int            `json:"batches,omitempty"`
	Stats   *state.Stats   `json:"stats,omitempty"`
	Checks  []Check        `json:"checks,omitempty"`
	Failure *state.Failure `json:"failure,omitempty"`
	Gate    *gate.Record   `json:"asks,omitempty"` // of a gate that waits
	Copying *job.Copying   `json:"copying,omitempty"`
	From    *ReusedFrom    `json:"reused_from,omitempty"`
}

// RetryPlanned is the JSON form of what a retry does.
type RetryPlanned struct {
	Event     string            `json:"event"`
	Workspace string            `json:"workspace"`
	Run       int64             `json:"run"`
	NewRun    bool              `json:"new_run"` // a new run begins
	Changed   []Change          `json:"changed,omitempty"`
	Passed    []Change          `json:"passed,omitempty"` // changes that are not taken, because nodes or batches were named
	Tasks     []orders.RedoStep `json:"tasks,omitempty"`
	Nodes     []PlannedNode     `json:"nodes,omitempty"` // of the new run
}

// OutputShared is the JSON event of an output that another run writes, too.
type OutputShared struct {
	Event     string `json:"event"`
	Workspace string `json:"workspace"`
	Run       int64  `json:"run,omitempty"` // none: it has not begun yet
	Node      string `json:"node"`
	Output    string `json:"output"`
	Other     int64  `json:"other_run"`
	By        string `json:"other_node"`
}

// RunPlanned is the JSON form of what a run is about to do.
type RunPlanned struct {
	Event   string        `json:"event"`
	Nodes   []PlannedNode `json:"nodes"`
	Outside []string      `json:"not_part"`
	Refused string        `json:"refused,omitempty" doc:"Why its limit would refuse it."`
	// Forecast is what the run is expected to take.
	Forecast *Forecast `json:"forecast,omitempty"`
}

// Forecast is what a run is expected to take: four of five lie between low and high.
type Forecast struct {
	Elapsed *ForecastSpan `json:"elapsed,omitempty"`
	Worked  *ForecastSpan `json:"worked,omitempty"` // of slots, on batches
	Workers int           `json:"workers,omitempty"`
	Slots   int           `json:"slots,omitempty"` // of all workers
	Of      int           `json:"of"`              // earlier runs that it rests on
	Why     string        `json:"why,omitempty"`   // why nothing is expected
	Cost    *ForecastCost `json:"cost,omitempty"`  // of all workers while it goes on, as if no other run was
	// Unpriced says why there is no cost.
	Unpriced string `json:"unpriced,omitempty"`
}

// ForecastCost is an interval of costs in US dollars, with its middle.
type ForecastCost struct {
	Low    Money `json:"low_usd"`
	Middle Money `json:"middle_usd"`
	High   Money `json:"high_usd"`
}

// ForecastSpan is an interval of times, with its middle.
type ForecastSpan struct {
	Low    int64 `json:"low_ms"`
	Middle int64 `json:"middle_ms"`
	High   int64 `json:"high_ms"`
}

type PlannedNode struct {
	Node string      `json:"node"`
	Why  string      `json:"computed,omitempty"` // why it is computed; "": it is taken over
	From *ReusedFrom `json:"reused_from,omitempty"`

	Rows    int64         `json:"rows,omitempty"` // that it wrote last time, of a retry
	Elapsed time.Duration `json:"elapsed_ns,omitempty"`
}

// RunFinished is the last JSON event of a run.
type RunFinished struct {
	Event      string         `json:"event"`
	Status     state.Status   `json:"status"`
	Workspace  string         `json:"workspace"`
	Run        int64          `json:"run"`
	ElapsedMS  int64          `json:"elapsed_ms"`
	OverheadMS int64          `json:"overhead_ms"`
	PeakBytes  int64          `json:"peak_bytes"`
	Failure    *state.Failure `json:"failure,omitempty"`
	Nodes      []FinishedNode `json:"nodes"`
	Sources    []SourceTable  `json:"sources,omitempty"`
	Files      []state.File   `json:"files"`
	Bill       *Bill          `json:"bill,omitempty" doc:"What it cost; none: there are no time sheets."`
}

// RunSummary is how a run is, with what its nodes have done: enough for all that people are told of it at its end.
type RunSummary struct {
	Run    RunFinished         `json:"run"`
	More   []NodeSummary       `json:"more" doc:"Of each node of run, in its order."`
	Checks []state.CheckResult `json:"checks"`
}

// NodeSummary is what people are told of a node beside FinishedNode.
type NodeSummary struct {
	Table         string `json:"table,omitempty"`
	BatchesDone   int    `json:"batches_done"`
	BatchesFailed int    `json:"batches_failed"`
}

// SourceTable is a table of another run that was read.
type SourceTable struct {
	Table  string `json:"table"`
	Run    int64  `json:"run"`
	Node   string `json:"node"`
	Script string `json:"script"`
}

type FinishedNode struct {
	Node         string       `json:"node"`
	Type         string       `json:"type"`
	Status       state.Status `json:"status"`
	Batches      int          `json:"batches"`
	RowsIn       int64        `json:"rows_in"`
	RowsOut      int64        `json:"rows_out"`
	RowsBad      int64        `json:"rows_bad"`
	Warnings     []string     `json:"warnings,omitempty"`
	BytesIn      int64        `json:"bytes_in"`
	BytesOut     int64        `json:"bytes_out"`
	StartedMS    int64        `json:"started_ms"`  // since the epoch
	FinishedMS   int64        `json:"finished_ms"` // since the epoch; 0 if it did not finish
	ElapsedMS    int64        `json:"elapsed_ms"`  // see state.Worked
	EngineMS     int64        `json:"engine_ms"`
	PythonBusyMS int64        `json:"python_busy_ms"`
	Checks       *CheckCounts `json:"checks,omitempty"`
	ComputedIn   string       `json:"computed_in,omitempty"` // of an ephemeral table: the node that computes it
	ReusedFrom   *ReusedFrom  `json:"reused_from,omitempty"` // the node whose rows were taken over
}

// ReusedFrom is the JSON form of a node whose rows another has taken over.
type ReusedFrom struct {
	Run  int64  `json:"run"`
	Node string `json:"node"`
}

// Change is something that a run was begun with and that is another now.
type Change struct {
	What string `json:"what"` // "node", "input", "script"
	Name string `json:"name,omitempty"`
	How  string `json:"how"`
}

// ReusedFromOf returns a key in that form; nil for nil.
func ReusedFromOf(key *state.NodeKey) *ReusedFrom {
	if key == nil {
		return nil
	}
	return &ReusedFrom{Run: key.Run, Node: key.Node}
}

// Replaced is one thing that an order replaces or takes away.
type Replaced struct {
	What string `json:"what"`
	Note string `json:"note,omitempty"` // size and time of a file
}
