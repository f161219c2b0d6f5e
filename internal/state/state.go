package state

import (
	"context"
	"errors"
	"time"

	"thalweg/internal/fault"
)

// DefaultWorkspace is used when nobody names one.
const DefaultWorkspace = "main"

// RunKey names a run: runs are numbered 1, 2, 3 … in each workspace.
type RunKey struct {
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
}

// Command is a command line about a run that people can type: thalweg, args,
// and the run's workspace where it is not the one that commands use by themselves.
func (k RunKey) Command(args string) string {
	if k.Workspace == DefaultWorkspace || k.Workspace == "" {
		return "thalweg " + args
	}
	return "thalweg " + args + " --workspace " + k.Workspace
}

// NodeKey names a node of a run.
type NodeKey struct {
	RunKey
	Node string `json:"node"`
}

// BatchKey names a batch; batches of a node are numbered from 0.
type BatchKey struct {
	NodeKey
	Batch int `json:"batch"`
}

// Run is one execution of a subset of a script's nodes.
type Run struct {
	RunKey
	Status      Status
	Script      string // which script it is of (see package local); "": recorded before that was kept
	ScriptPath  string
	ParamsPath  string
	Fingerprint string // of script and parameters as loaded; a resume needs the same one
	StartNodes  []string
	Sources     []int64 // runs that it was told to read tables from, whatever their script
	Description string
	Created     time.Time
	Finished    time.Time // zero while not terminal
	Failure     *Failure  // first failure, nil unless failed
	Definition  []byte    // the script as loaded (canonical JSON with parameters applied): what later readers of its tables know
}

// NodeSpec is what a run knows of a node when it starts.
type NodeSpec struct {
	Name    string
	Kind    string   // the script's type of node
	Ordinal int      // order of display: topological
	Inputs  []string // nodes of the same run whose success this one needs
}

// Node is a node of a run.
type Node struct {
	NodeKey
	NodeSpec
	Status        Status
	BatchesTotal  int // 0 while not planned
	BatchesDone   int // succeeded
	BatchesFailed int
	RowsIn        int64
	RowsOut       int64
	BytesIn       int64
	BytesOut      int64
	Started       time.Time // first claim
	Finished      time.Time
	Plan          []byte // planner's own record (layout, schema), opaque here; nil while not planned
}

// BatchSpec is a planned unit of work. The same plan always gives the same specs.
type BatchSpec struct {
	Batch   int
	RowsIn  int64 // estimate, -1 if unknown
	BytesIn int64
	Work    []byte // planner's own description of the slice, opaque here
}

// Batch is a batch of a run.
type Batch struct {
	BatchKey
	BatchSpec
	Status   Status
	Attempt  int // number of the latest attempt, 0 while none
	Owner    string
	Lease    time.Time // claimed until
	Started  time.Time
	Finished time.Time
	Stats    Stats
	Failure  *Failure
}

// Stats are what an attempt measured.
type Stats struct {
	RowsIn    int64            `json:"rows_in"`
	RowsOut   int64            `json:"rows_out"`
	BytesIn   int64            `json:"bytes_in"`
	BytesOut  int64            `json:"bytes_out"`
	Elapsed   time.Duration    `json:"elapsed_ns"`
	Engine    time.Duration    `json:"engine_ns"` // inside DuckDB
	Python    time.Duration    `json:"python_ns"` // interpreters busy, summed over them
	PeakBytes int64            `json:"peak_bytes,omitempty"`
	Counters  map[string]int64 `json:"counters,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"` // for people: what succeeded and may not be what they meant
}

// Failure is a fault as state keeps it.
type Failure struct {
	Kind      fault.Kind  `json:"kind"`
	Retryable bool        `json:"retryable"`
	Place     fault.Place `json:"place"`
	Message   string      `json:"message"`
	Hint      string      `json:"hint,omitempty"`
	Detail    string      `json:"detail,omitempty"`
	Node      string      `json:"node,omitempty"`
	Batch     int         `json:"batch"`
}

// Text says for people where it failed, in which node, and what.
func (f Failure) Text() string {
	text := f.Message
	if f.Node != "" {
		text = "node " + f.Node + ": " + text
	}
	if where := f.Place.String(); where != "" {
		text = where + ": " + text
	}
	return text
}

// Sides of a node's table: rows that are kept beside it, for people to look
// at. Nothing downstream reads them. The texts are stored.
const (
	SideFailed = "failed" // rows that failed a check
	SideBad    = "bad"    // quarantined rows
)

// Part is a manifest entry: one immutable object of a table.
type Part struct {
	Key      string `json:"key"`            // in the part store
	Side     string `json:"side,omitempty"` // "": the table itself; else see SideFailed
	Batch    int    `json:"batch"`
	Seq      int    `json:"seq"`    // order within the batch
	Bucket   int    `json:"bucket"` // -1: not bucketed
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	RawBytes int64  `json:"raw_bytes"` // uncompressed size by the file's own footer
	Schema   string `json:"schema"`    // fingerprint of names and types
	Checksum string `json:"checksum"`  // "crc32c:%08x" of the object's bytes
}

// File is an output file that a committed batch has put under its final name.
type File struct {
	NodeKey
	Batch    int    `json:"batch"`
	URL      string `json:"url"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"`
}

// Claim is the right to work on a batch until the lease ends. Its Attempt
// number fences: only the latest attempt can commit.
type Claim struct {
	BatchKey
	Attempt int
	Owner   string
	Lease   time.Time
	Spec    BatchSpec
}

// Outcome is what an attempt publishes when it ends. A failed one has side
// parts, checks and stats only.
type Outcome struct {
	Parts  []Part // Seq is unique among all of them, whatever their Side
	Files  []File
	Checks []CheckResult
	Stats  Stats
}

// CheckResult is what a check of a node's rows found.
type CheckResult struct {
	NodeKey
	Batch    int    `json:"batch"`
	Name     string `json:"name"`
	Kind     string `json:"kind"`     // not_null, unique …
	Severity string `json:"severity"` // error, warn
	Passed   bool   `json:"passed"`
	Checked  int64  `json:"checked"` // rows, or groups, that were looked at
	Failed   int64  `json:"failed"`  // of them
	Kept     int64  `json:"kept"`    // of the failed ones, in side table "failed"
	Message  string `json:"message,omitempty"`
	Measured string `json:"measured,omitempty"` // what a later run's check compares with; opaque here
}

// Attempt is one try at a batch, kept for ever.
type Attempt struct {
	BatchKey
	Attempt  int
	Owner    string
	Status   Status // claimed, succeeded, failed, released, lost
	Started  time.Time
	Finished time.Time
	Failure  *Failure
}

// Errors that callers decide on.
var (
	ErrNotFound     = errors.New("not found")
	ErrNotClaimable = errors.New("batch cannot be claimed")                 // somebody else has it, or it is terminal
	ErrLeaseLost    = errors.New("lease lost")                              // a later attempt exists, or the run was stopped: do not commit
	ErrConflict     = errors.New("state was changed by somebody else")      // compare-and-set failed: read again
	ErrExists       = errors.New("already planned with different contents") // a planner that is not deterministic
	ErrIllegalMove  = errors.New("no such transition")                      // the caller's mistake: CanMove says no
)

// Store keeps runs, nodes, batches, attempts, leases and manifests. Every
// method is atomic and durable when it returns nil; every method may be
// called concurrently, from several processes where the backend allows it.
// now is passed in where it matters so that leases can be tested. Times are
// kept to the millisecond, in UTC.
//
// Every method is ErrNotFound for a run, node or batch that is not there.
// Commit, Fail and Release are no-ops for an attempt that the same call has
// already ended: whoever did not hear the answer may ask again.
type Store interface {
	// CreateRun stores a new run in status Running with its nodes Pending and
	// returns its number: one more than the workspace's last.
	CreateRun(ctx context.Context, run Run, nodes []NodeSpec) (RunKey, error)
	Run(ctx context.Context, key RunKey) (Run, error)
	// Runs lists a workspace's runs in order.
	Runs(ctx context.Context, workspace string) ([]Run, error)
	// Workspaces lists the workspaces that have runs, by name.
	Workspaces(ctx context.Context) ([]string, error)
	// SetRunStatus moves a run along a legal transition; ErrConflict if it is
	// no longer in from. failure is kept for Failed only.
	SetRunStatus(ctx context.Context, key RunKey, from, to Status, failure *Failure) error

	// Nodes lists a run's nodes by ordinal.
	Nodes(ctx context.Context, key RunKey) ([]Node, error)
	Node(ctx context.Context, key NodeKey) (Node, error)
	// PlanNode stores a node's batches, numbered from 0 in order, and moves it
	// from Pending to Running. Planning again with the same contents is a
	// no-op, with others ErrExists. ErrConflict if the run is not Running or
	// the node can no longer be planned. A plan of no batches is legal: the
	// node can succeed at once.
	PlanNode(ctx context.Context, key NodeKey, plan []byte, batches []BatchSpec) error
	// SetNodeStatus moves a node along a legal transition; ErrConflict if it is no longer in from.
	SetNodeStatus(ctx context.Context, key NodeKey, from, to Status) error

	// Batches lists a node's batches by number.
	Batches(ctx context.Context, key NodeKey) ([]Batch, error)
	// Claim takes a batch that is Pending, or Claimed with a lease that ended
	// before now (the earlier attempt becomes Lost), for owner until lease.
	// ErrNotClaimable otherwise, and whenever the run or node is not Running.
	Claim(ctx context.Context, key BatchKey, owner string, now, lease time.Time) (Claim, error)
	// Extend moves the end of the lease; ErrLeaseLost if the attempt is no
	// longer the latest or the run is no longer Running.
	Extend(ctx context.Context, c Claim, lease time.Time) error
	// Commit marks the attempt and its batch Succeeded and publishes its
	// parts, files and checks, in one transaction; ErrLeaseLost as Extend.
	// The manifest never shows any other attempt's parts.
	Commit(ctx context.Context, c Claim, out Outcome, now time.Time) error
	// Fail marks the attempt and its batch Failed, and publishes its side
	// parts and checks, in one transaction; ErrLeaseLost as Extend. An outcome
	// with parts of the table itself or with files is refused.
	Fail(ctx context.Context, c Claim, failure Failure, out Outcome, now time.Time) error
	// Release gives the batch back to Pending without using up an attempt's
	// worth of retries: the worker is shutting down. ErrLeaseLost as Extend.
	Release(ctx context.Context, c Claim, now time.Time) error
	// Attempts lists a node's attempts by batch and number.
	Attempts(ctx context.Context, key NodeKey) ([]Attempt, error)
	// Reopen makes a Failed, Stopped or orphaned Running run continue:
	// failed, stopped and claimed batches go back to Pending (their attempts
	// Lost if still claimed), their nodes to Running (to Pending if they were
	// never planned), the run to Running. Succeeded batches and their parts
	// stay; what failed ones published is withdrawn. The caller knows that no worker of the run is alive. ErrConflict
	// for a Complete run.
	Reopen(ctx context.Context, key RunKey, now time.Time) error

	// Manifest lists the committed parts of a table in order of batch and seq,
	// those of its side tables not among them.
	Manifest(ctx context.Context, key NodeKey) ([]Part, error)
	// SideParts lists the parts of a node's side tables, also those of failed
	// batches, in order of batch and seq.
	SideParts(ctx context.Context, key NodeKey) ([]Part, error)
	// Checks lists what a run's checks found, in node, batch order and within
	// a batch in the order in which its attempt named them.
	Checks(ctx context.Context, key RunKey) ([]CheckResult, error)
	// Files lists the committed output files of a run, in node, batch order.
	Files(ctx context.Context, key RunKey) ([]File, error)
	Close() error
}
