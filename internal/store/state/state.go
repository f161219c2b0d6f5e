package state

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/action"

	"thalweg/internal/base/fault"
)

// DefaultWorkspace is used when nobody names one.
const DefaultWorkspace = "main"

// RunKey names a run: runs are numbered 1, 2, 3 … in each workspace.
type RunKey struct {
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
}

// Do makes an action on the run, with arguments as action.Do takes them.
func (k RunKey) Do(verb string, args ...any) action.Action {
	return k.in(action.Do(verb, "run", k.Run).With(args...))
}

// Beside makes an action on the run's workspace, with arguments as action.Do takes them.
func (k RunKey) Beside(verb string, args ...any) action.Action { return k.in(action.Do(verb, args...)) }

// in adds the run's workspace to an action, unless it is the default one.
func (k RunKey) in(a action.Action) action.Action {
	if k.Workspace == DefaultWorkspace || k.Workspace == "" {
		return a
	}
	return a.With("workspace", k.Workspace)
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
	Token       string // the creator's own: a CreateRun that is repeated with it is the same run; "": never repeated
	Status      Status
	Epoch       int64    // number of the latest command
	Command     *Command `json:"Order"` // the latest one; nil: none yet; stored under its earlier name
	Script      string   // identity of its script (see instance.IdentityOf); "": recorded before that was kept
	ScriptPath  string
	ParamsPath  string
	Fingerprint string // of script and parameters as loaded; a resume needs the same one
	StartNodes  []string
	Sources     []int64 // runs from which it was told to read tables, of any script
	Description string
	Actor       string // who started it
	Parent      int64  // the run that it is a part of, as of a backfill; 0: none
	Deadline    time.Time
	Created     time.Time
	Finished    time.Time // zero while not terminal
	Failure     *Failure  // first failure, nil unless failed
	Invalidated *Mark     // nobody may read its tables any more
	Dropped     *Mark     // nobody reads, continues or lists it any more

	Program    string // version of thalweg that began it
	Engine     string // version of DuckDB
	BucketHash string // hash function of its tables' buckets; "": recorded before that was kept
	Pins       []Pin  // sources that it was made from; nil in lists

	Priority Priority // how urgent its batches are beside those of other runs
	Limit    *Limit   // what it may take; nil: any

	Nodes []NodeBrief // in lists only
}

// Priority is the urgency of a run. The texts are stored.
type Priority string

// The priorities. The normal one is the empty text, because earlier runs have no priority.
const (
	PriorityHigh   Priority = "high"
	PriorityNormal Priority = ""
	PriorityLow    Priority = "low"
)

// ParsePriority reads a priority as people write it; ok is false if the text is none.
func ParsePriority(text string) (p Priority, ok bool) {
	switch p = Priority(text); p {
	case PriorityHigh, PriorityNormal, PriorityLow:
		return p, true
	case "normal":
		return PriorityNormal, true
	}
	return p, false
}

// Brief finds a node of a run in a list of runs.
func (r Run) Brief(node string) (NodeBrief, bool) {
	i := slices.IndexFunc(r.Nodes, func(n NodeBrief) bool { return n.Name == node })
	if i < 0 {
		return NodeBrief{}, false
	}
	return r.Nodes[i], true
}

// Mark records an act: by whom, when, and why.
type Mark struct {
	Actor  string    `json:"actor"`
	Via    string    `json:"via,omitempty"` // how they called: see package caller; "": not recorded, or nobody did
	Time   time.Time `json:"time"`
	Reason string    `json:"reason,omitempty"`
	// Request is unique to what the caller asks for, so that it can be repeated; "": it is not. It is not stored.
	Request string `json:"-"`
}

// OrderToken returns the token of the order that is given with this mark.
func (m Mark) OrderToken() string { return cmp.Or(m.Request, rand.Text()) }

// The kinds of pins. The texts are stored.
const (
	PinScript   = "script"
	PinParams   = "params"   // the parameters as they were applied, without secrets
	PinFormula  = "formula"  // a file of Python code
	PinIncluded = "included" // another file that the script pulls in
)

// Pin is a source that a run was made from: its content is a blob.
type Pin struct {
	Kind     string `json:"kind"` // see PinScript
	Name     string `json:"name"` // path or address, without secrets
	Digest   string `json:"digest"`
	Bytes    int64  `json:"bytes"`
	Redacted bool   `json:"redacted,omitempty"` // secrets were removed, so the content differs from what was loaded
}

// KindGate is the Kind of nodes at which people decide: they have no batches,
// and wait (see package gate).
const KindGate = "approval"

// NodeSpec describes a node when its run starts.
type NodeSpec struct {
	Name        string
	Kind        string   // the script's type of node
	Table       string   // the table that it writes; "": it writes files only
	Ordinal     int      // topological position, also the order of display
	Inputs      []string // nodes of the same run whose success this one needs
	Fingerprint string   // of its code and parameters; "": not known
}

// NodeBrief describes a node in lists of runs.
type NodeBrief struct {
	Name     string
	Table    string
	Status   Status
	RowsOut  int64
	BytesOut int64
	Spent    Spent
}

// Spent is the time that workers have spent on attempts that have ended, also on batches that were done again. Attempts
// that an order cut off are left out. It never falls.
type Spent struct {
	Worked time.Duration // by attempts that succeeded
	Lost   time.Duration // by attempts that failed, were given back, or whose lease ran out, until it did
}

// SpentOn returns the time of an attempt that ended so.
func SpentOn(as Status, started, ended time.Time) Spent {
	took := max(ended.Sub(started), 0)
	if as == Succeeded {
		return Spent{Worked: took}
	}
	return Spent{Lost: took}
}

// Plus returns the sum of both.
func (s Spent) Plus(o Spent) Spent { return Spent{Worked: s.Worked + o.Worked, Lost: s.Lost + o.Lost} }

// Node is a node of a run.
type Node struct {
	NodeKey
	NodeSpec
	Status      Status
	Epoch       int64     // number of the latest command that it has followed
	Fence       int64     // claims with a lower Epoch than this cannot publish anything
	Generation  int       // how often it was done again
	Gate        []byte    // the question at a gate, while Waiting and after; opaque here
	GateDigest  string    // digest of what the gate shows: see Move
	Decision    *Decision // nil: no valid one
	Dropped     bool      // its run is dropped: see Store.Purge
	Failure     *Failure  // why it failed, if no batch has the failure
	ReusedFrom  *NodeKey  // the node whose rows it has taken over; nil: none
	InputDigest string    // of all that it reads, as planned
	Started     time.Time // first claim
	Finished    time.Time
	PlanDigest  string // "": not planned
	Plan        []byte // planner's own record (layout, schema), opaque here; nil in lists

	// Derived from its batches.
	BatchesTotal  int // 0 while not planned
	BatchesDone   int // succeeded
	BatchesFailed int
	RowsIn        int64
	RowsOut       int64
	BytesIn       int64
	BytesOut      int64
	Spent         Spent // on attempts at them
	Revision      int64 // Seq of its latest event; while it is the same, nothing of the node has changed
}

// Decision is a decision about a node that was Waiting. It is also in the node's events, which nobody can
// edit.
type Decision struct {
	Approved bool `json:"approved"`
	Mark
	Role string `json:"role,omitempty"` // in which they decided
	// RoleVerified is false if only the decider says that they have the role.
	RoleVerified bool            `json:"role_verified,omitempty"`
	Digest       string          `json:"digest"` // of the gate that was decided upon
	Answers      json.RawMessage `json:"answers,omitempty"`
	// Token is that of the order that made the decision; "": an older program carried it out.
	Token string `json:"token,omitempty"`
}

// BatchSpec is a planned unit of work. The same plan always gives the same specs.
type BatchSpec struct {
	Batch   int
	Phase   int    // it can be claimed once all batches of lower phases have succeeded
	Class   string // of work; workers limit each class
	RowsIn  int64  // estimate, -1 if unknown
	BytesIn int64
	Work    []byte // planner's own description of the slice, opaque here; nil in lists of batches
}

// Input is a file that a node was planned to read.
type Input struct {
	Address string    `json:"address"` // without secrets
	Bytes   int64     `json:"bytes"`
	Time    time.Time `json:"time"` // of its last change, as its file system or server tells
	Digest  string    `json:"digest,omitempty"`
	Rows    int64     `json:"rows"` // -1: not known when it was planned
}

// Batch is a batch of a run.
type Batch struct {
	BatchKey
	BatchSpec
	Status    Status
	Attempt   int   // number of the latest attempt, which never decreases; 0: none yet
	Epoch     int64 // of the latest attempt's claim
	Tries     int   // attempts that failed or were lost since the last order; released ones do not count
	NotBefore time.Time
	Owner     string
	Lease     time.Time // claimed until
	Started   time.Time
	Finished  time.Time
	Stats     Stats
	Failure   *Failure
}

// Stats holds the measurements of an attempt.
type Stats struct {
	RowsIn    int64            `json:"rows_in"`
	RowsOut   int64            `json:"rows_out"`
	BytesIn   int64            `json:"bytes_in"`
	BytesOut  int64            `json:"bytes_out"`
	Elapsed   time.Duration    `json:"elapsed_ns"`
	Engine    time.Duration    `json:"engine_ns"`           // inside DuckDB
	Python    time.Duration    `json:"python_ns"`           // interpreters busy, summed over them
	Read      time.Duration    `json:"read_ns,omitempty"`   // fetching inputs and looking at them, before DuckDB does
	Write     time.Duration    `json:"write_ns,omitempty"`  // making results durable, or sending them
	Commit    time.Duration    `json:"commit_ns,omitempty"` // announcing files and showing them under their names
	Wait      time.Duration    `json:"wait_ns,omitempty"`   // for memory
	Turn      time.Duration    `json:"turn_ns,omitempty"`   // for a free slot of the worker that has claimed it
	PeakBytes int64            `json:"peak_bytes,omitempty"`
	Slot      int              `json:"slot,omitempty"` // of the worker's, from 1 on; 0: not known, or of several batches
	Counters  map[string]int64 `json:"counters,omitempty"`
	Warnings  []string         `json:"warnings,omitempty"` // for people: it succeeded, but may not be what they meant
	Repeats   []Repeat         `json:"repeats,omitempty"`  // warnings that are given once a node
}

// Repeat is a warning that many batches of a node may have. It is given once, with its first case.
type Repeat struct {
	Kind  string `json:"kind"`          // repeats of one kind are given as one
	Batch int    `json:"batch"`         // the first batch that has it, in a tally
	First string `json:"first"`         // text of the first case, with its place
	Count int64  `json:"count"`         // number of cases
	Of    string `json:"of"`            // what is counted, in the plural
	Way   string `json:"way,omitempty"` // what can be done
}

// Text returns the warning for people.
func (r Repeat) Text() string {
	text := r.First
	if r.Count > 1 {
		text += fmt.Sprintf(" (the first of %d %s)", r.Count, r.Of)
	}
	if r.Way != "" {
		text += "; " + r.Way
	}
	return text
}

// Told lists the warnings for people.
func (s *Stats) Told() []string {
	out := slices.Clone(s.Warnings)
	for _, r := range s.Repeats {
		out = append(out, r.Text())
	}
	return out
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
	Again     bool        `json:"again,omitempty"` // of an attempt: its batch is tried again
}

// changing is what differs between failures of one reason: numbers, and what is quoted of the data.
var changing = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// Reason returns a text that failures of the same expression or column have in common if they say the same of other
// values, rows and files.
func (f *Failure) Reason() string {
	said := f.Message
	for p := &f.Place; p != nil; p = p.Origin {
		for _, text := range []string{p.String(), p.File} {
			if text != "" {
				said = strings.ReplaceAll(said, text, "")
			}
		}
	}
	return strings.Join([]string{string(f.Kind), f.Place.Field, f.Place.Expr, changing.ReplaceAllString(said, "#")},
		"\x00")
}

// The orders that continue a run that has failed or was stopped.
const (
	Resume = "resume" // from the sources that it was begun with
	Retry  = "retry"  // in a new run, where the script or its inputs have changed
)

// GoesOn returns the order that continues a run with this failure; nil: with none. It is Retry for failures of data or
// of the script. These have to be corrected, and a run only continues with what it was begun with.
func (f *Failure) GoesOn() string {
	if f != nil && (f.Kind == fault.UserData || f.Kind == fault.Script) {
		return Retry
	}
	return Resume
}

// AfterFailure returns the actions that people are offered when a run has failed. show shows the failure. goOn
// continues the work once the cause is gone.
func (r Run) AfterFailure() (show, goOn action.Action) {
	show = r.Do("show")
	if r.Failure != nil && r.Failure.Node != "" {
		show = r.Do("show", "node", r.Failure.Node)
	}
	return show, r.Do(r.Failure.GoesOn())
}

// Whose names for people the node that failed. If a table that is computed inside
// that node has failed, it names its node, too.
func (f Failure) Whose() string {
	switch inner := f.Place.Node; {
	case inner != "" && inner != f.Node:
		return "node " + inner + ", computed in " + f.Node
	case f.Node != "":
		return "node " + f.Node
	}
	return ""
}

// Text returns the failure for people: place, node and message.
func (f Failure) Text() string {
	text := f.Message
	if whose := f.Whose(); whose != "" {
		text = whose + ": " + text
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
	SideFound  = "found"  // results of checks that several batches share, for the batch that judges; not for people
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
	// Keys is a record of package plan about the keys of the rows; nil: none.
	Keys json.RawMessage `json:"keys,omitempty"`
	// Groups is a record of package plan about the places of the row groups; nil: none.
	Groups   json.RawMessage `json:"groups,omitempty"`
	Schema   string          `json:"schema"`   // fingerprint of names and types
	Checksum string          `json:"checksum"` // "crc32c:%08x" of the object's bytes
	Attempt  int             `json:"attempt,omitempty"`
}

// File is an output file that a committed batch has put under its final name.
type File struct {
	NodeKey
	Batch    int    `json:"batch"`
	URL      string `json:"url"`
	Rows     int64  `json:"rows"`
	Bytes    int64  `json:"bytes"`
	Checksum string `json:"checksum"`
	SHA256   string `json:"sha256,omitempty"`   // only of files that a manifest file lists
	Manifest bool   `json:"manifest,omitempty"` // it is the manifest of the node's other files
}

// Offer is a batch that could be claimed when it was read. A claim succeeds only if the batch is unchanged.
type Offer struct {
	BatchKey
	Epoch   int64  `json:"epoch"`   // of the node
	Attempt int    `json:"attempt"` // the latest, which is over
	Class   string `json:"class,omitempty"`
}

// ClaimRequest asks for a batch that was on offer.
type ClaimRequest struct {
	Offer
	Owner string
	Token string // unique to this request, so that it can be repeated if its answer was lost
	Now   time.Time
	Lease time.Time // until when
}

// Claim is the right to work on a batch until the lease ends. Attempt and Epoch
// are fences: only the latest attempt can commit, and only if its Epoch is not
// below the node's Fence. Every order raises the fence, except to pause or to go on
// after a pause.
type Claim struct {
	BatchKey
	Epoch   int64
	Attempt int
	Tries   int // attempts before it that failed or were lost
	Owner   string
	Lease   time.Time
	Spec    BatchSpec
}

// Outcome is the result that an attempt publishes when it ends. That of a failed attempt has side parts,
// checks and stats only.
type Outcome struct {
	Parts  []Part // Seq is unique among all of them, whatever their Side
	Files  []File
	Checks []CheckResult
	Stats  Stats
}

// Publication is a file that an attempt is about to put under its final name.
type Publication struct {
	BatchKey
	Attempt int    `json:"attempt"`
	Seq     int    `json:"seq"` // unique in the attempt, chosen by the attempt
	Owner   string `json:"owner"`
	Address string `json:"address"`          // final, without secrets
	Temp    string `json:"temp,omitempty"`   // temporary name of the file, in the same directory
	Upload  string `json:"upload,omitempty"` // the server's name of the unfinished upload
	// Begun is the time of the announcement by the attempt's clock. It matters if Upload is "": an upload to
	// Address that was begun long before Begun is not this attempt's.
	Begun time.Time `json:"begun,omitzero"`
}

// CheckResult is the result of a check of a node's rows.
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
	Measured string `json:"measured,omitempty"` // value that a later run's check compares with; opaque here
}

// Attempt is one try at a batch, kept for ever.
type Attempt struct {
	BatchKey
	Attempt    int
	Epoch      int64
	Generation int // of the node
	Owner      string
	Status     Status // claimed, succeeded, failed, released, lost
	Withdrawn  bool   // what it published is not valid any more
	Started    time.Time
	Finished   time.Time
	Failure    *Failure
	Stats      Stats // what it measured, also if it failed
}

// Span is a piece of a run's stream of events: the events of one node with a Seq
// of From to To, both included.
type Span struct {
	Node string `json:"node,omitempty"` // "": the run itself
	From int64  `json:"from"`
	To   int64  `json:"to"`
}

// Role is a duty in a run that one worker has at a time (coordinating it, say).
type Role struct {
	Name  string
	Owner string
	Term  int64 // raised when another owner takes it
	Until time.Time
}

// Page asks for a piece of a list. For lists of batches, and of their attempts,
// parts and files, Limit counts batches, and a page holds whole batches.
type Page struct {
	From  int64 // 0: from the beginning; else next of the answer before
	Limit int   // 0: PageMax, which is also the most
	// Brief asks for little of many. Of runs, Nodes may be left out; of batches, all but Batch, Status, Attempt,
	// Owner, Started, Finished, Stats.Elapsed and Stats.RowsOut.
	Brief bool
}

// PageMax is the largest Limit of a page.
const PageMax = 1_000

// Errors that callers decide on.
var (
	ErrNotFound     = errors.New("not found")
	ErrNotClaimable = errors.New("batch cannot be claimed")            // not any more, or not as it was on offer
	ErrLeaseLost    = errors.New("lease lost")                         // a later attempt or order exists: do not commit
	ErrConflict     = errors.New("state was changed by somebody else") // compare-and-set failed: read again
	ErrIllegalMove  = errors.New("no such transition")                 // the caller's mistake: see status.go
	ErrHeld         = errors.New("somebody else has this role")
	ErrUnknown      = errors.New("not known whether it was done") // the answer was lost: repeat the call, or read
)

// Stray reports whether a claim was refused because its batch is not there, or cannot be
// claimed. Then the request was wrong or late, and the store works.
func Stray(err error) bool { return errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotClaimable) }
