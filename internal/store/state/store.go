package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

//go:generate go run ./generate

// Store keeps runs, nodes, batches, attempts, leases and results.
//
// It is made of partitions that cannot see each other: a workspace's (numbers
// of its runs, notes), a run's (its record, commands, roles, events, sequence) and
// a node's (its record, plan, batches, attempts, results, publications, events). Each method
// changes one of them, in one step, on conditions about that one alone; only
// CreateRun writes several, the run's last. What concerns a whole run is made
// of such steps: Direct and the other functions of this package.
//
// Every method may be called concurrently, from several processes where the
// backend allows it, and is durable when it returns nil. Every method may fail
// with ErrUnknown (or an error of the backend): whether it was done is not
// known then, and calling it again with the same arguments is right. A call
// that arrives late, or twice, changes nothing that has moved on meanwhile.
// Moments are passed in, so that leases can be tested; they are kept to the
// millisecond, in UTC.
//
// Every method is ErrNotFound for a run, node or batch that is not there.
// Lists that go over several partitions are not of one moment.
type Store interface {
	// CreateRun stores a new run in status Running with its nodes Pending, and
	// the blobs that its pins name, and returns its number: one more than the
	// workspace's last. The run's note that it is open (OpenNote) comes before it.
	CreateRun(ctx context.Context, run Run, nodes []NodeSpec, blobs ...Blob) (RunKey, error) //around:change
	Run(ctx context.Context, key RunKey) (Run, error)
	// Runs lists a workspace's runs, the latest first, without what only Run
	// gives, and with their nodes in brief.
	Runs(ctx context.Context, workspace string, page Page) (runs []Run, next int64, err error)
	// Workspaces lists the workspaces that have runs, by name.
	Workspaces(ctx context.Context) ([]string, error)
	// Blob gives what was pinned under a digest.
	Blob(ctx context.Context, digest string) ([]byte, error)

	// PutNote stores a note under its topic and name, in place of what was there.
	// Notes are hints and decide nothing: a call that arrives late may bring back
	// what somebody has put since, or removed. Whoever finds one verifies it in the
	// run that it names, and removes it if it does not hold any more.
	PutNote(ctx context.Context, workspace string, n Note) error //around:hint
	// RemoveNote removes a note if it is still as it was read; a no-op otherwise.
	RemoveNote(ctx context.Context, workspace string, n Note) error //around:hint
	// Notes lists a topic's notes by name, those with names after that one.
	Notes(ctx context.Context, workspace, topic, after string, limit int) ([]Note, error)

	// BeginCommand records a command as the run's latest. Its number must be the
	// one after the run's Epoch. ErrConflict if it is not, if the command before
	// is not carried out yet, or if a run in this status cannot have it.
	BeginCommand(ctx context.Context, key RunKey, c Command) error //around:name=begin_order
	// ApplyCommand makes a node follow a command: its epoch rises to the command's, and
	// Command.On says what becomes of it and its batches. A no-op if it has followed
	// that command or a later one.
	ApplyCommand(ctx context.Context, key NodeKey, c Command) error //around:name=hear
	// CommitCommand records that every node follows: the run gets the status that
	// the command leads to. ErrConflict if it is not the run's latest.
	CommitCommand(ctx context.Context, key RunKey, epoch int64, now time.Time) error //around:name=end_order
	// CompleteRun moves a run from Running to Complete; ErrConflict if it is
	// not Running, or of another epoch, or a command is being carried out.
	CompleteRun(ctx context.Context, key RunKey, epoch int64, actor string, now time.Time) error

	// Acquire takes a role that is free, or whose time was over before now, or
	// renews the owner's own: it ends at until, or later if it did before.
	// ErrHeld otherwise, beside the role as it is. Roles save work and decide
	// nothing: a call that arrives late may take one for an owner that is gone, or
	// give one up that is wanted again, and nothing else is conditional on them.
	Acquire(ctx context.Context, key RunKey, role, owner string, now, until time.Time) (Role, error) //around:hint
	// Resign gives a role up; a no-op if it is not the owner's.
	Resign(ctx context.Context, key RunKey, role, owner string) error //around:hint

	// Nodes lists a run's nodes by ordinal, without their plans.
	Nodes(ctx context.Context, key RunKey) ([]Node, error)
	Node(ctx context.Context, key NodeKey) (Node, error)
	// StagePlan stores pieces of a plan under its digest, for FlipPlan to make
	// true: it may be repeated, and nobody sees them until then. What a digest
	// stands for never changes.
	StagePlan(ctx context.Context, key NodeKey, digest string, piece PlanPiece) error
	// FlipPlan makes a staged plan the node's, and moves it from Pending to
	// Running. It answers with the digest of the plan that stands: another one
	// if another planner came first. ErrConflict if the node cannot be planned
	// (any more), or is of another epoch.
	FlipPlan(ctx context.Context, key NodeKey, f Flip) (standing string, err error) //around:change
	// MoveNode moves a node along a transition that is a coordinator's to make
	// (Settles); ErrConflict if it is no longer in From, or of another epoch.
	// One that has been made already is a no-op.
	MoveNode(ctx context.Context, key NodeKey, m Move) error

	// Purge removes what a node of a dropped run keeps: its plan, batches,
	// attempts, results and publications. Its record, its tally and its events
	// stay. ErrConflict if it does not follow the command that dropped its run yet. What arrives
	// late may be staged again (StagePlan), so it may be repeated.
	Purge(ctx context.Context, key NodeKey) error

	// Batch reads a batch with its work, and its attempts by number: the latest
	// of them if there are more than PageMax.
	Batch(ctx context.Context, key BatchKey) (Batch, []Attempt, error)
	// Batches lists a node's batches by number, without their work.
	Batches(ctx context.Context, key NodeKey, page Page) (batches []Batch, next int64, err error)
	// Unsettled lists those of them that are claimed, have failed, or wait to be
	// tried again, by number. Reading it costs what it gives.
	Unsettled(ctx context.Context, key NodeKey, page Page) (batches []Batch, next int64, err error)
	// Specs lists the batches as they were planned.
	Specs(ctx context.Context, key NodeKey, page Page) (specs []BatchSpec, next int64, err error)
	// Inputs lists the files that the node was planned to read.
	Inputs(ctx context.Context, key NodeKey, page Page) (inputs []Input, next int64, err error)
	// Offers lists batches that can be claimed now, by number: of a node that is
	// Running, of its first phase that is not done, Pending or with a lease that
	// ended before now. Reading it costs what it gives.
	Offers(ctx context.Context, key NodeKey, now time.Time, page Page) (offers []Offer, next int64, err error)

	// Claim takes a batch that is as it was on offer: the node Running and of
	// that epoch, the batch's latest attempt that one, Pending and not before its
	// time, or Claimed with a lease that ended before now (the earlier attempt
	// becomes Lost). ErrNotClaimable otherwise. Repeated with its token while
	// the claim is the batch's latest and not ended, it gives the same claim.
	Claim(ctx context.Context, b Bid) (Claim, error) //around:change
	// Extend moves the end of the lease, never back; ErrLeaseLost if the attempt
	// is no longer the latest, has ended, or was claimed before the node's Fence.
	Extend(ctx context.Context, c Claim, lease time.Time) error
	// Announce records what the attempt is about to publish, and extends its
	// lease; ErrLeaseLost as Extend. What was announced under a Seq stays: who
	// learns more says it under another. The records go with Commit: what was
	// announced is published then. Else they stay, however the attempt ends,
	// until somebody has seen to what it left and calls Forget.
	Announce(ctx context.Context, c Claim, publications []Publication, lease time.Time) error
	// Commit marks the attempt and its batch Succeeded and publishes its
	// outcome; ErrLeaseLost as Extend. The manifest never shows any other
	// attempt's parts. Commit, Fail, Retry and Release are no-ops for an attempt
	// that the same call has already ended.
	Commit(ctx context.Context, c Claim, out Outcome, now time.Time) error
	// Fail marks the attempt and its batch Failed, and publishes its side parts
	// and checks; ErrLeaseLost as Extend. An outcome with parts of the table
	// itself or with files is refused.
	Fail(ctx context.Context, c Claim, failure Failure, out Outcome, now time.Time) error
	// Retry marks the attempt Failed and gives the batch back to Pending, with
	// one try used up, not to be claimed before notBefore; ErrLeaseLost as Extend.
	// What it measured is the attempt's alone.
	Retry(ctx context.Context, c Claim, failure Failure, stats Stats, notBefore, now time.Time) error
	// Release gives the batch back to Pending without using up a try: the
	// worker is shutting down. ErrLeaseLost as Extend.
	Release(ctx context.Context, c Claim, now time.Time) error
	// Attempts lists a node's attempts by batch and number.
	Attempts(ctx context.Context, key NodeKey, page Page) (attempts []Attempt, next int64, err error)
	// Publications lists what attempts have announced and not committed, by
	// batch, attempt and place.
	Publications(ctx context.Context, key NodeKey, page Page) (publications []Publication, next int64, err error)
	// Forget removes what an attempt announced.
	Forget(ctx context.Context, key BatchKey, attempt int) error

	// Parts lists the parts of a node's table and side tables that count, in
	// order of batch and seq: those of batches that succeeded, and the side
	// parts of those that failed. Manifest and SideParts tell them apart.
	Parts(ctx context.Context, key NodeKey, page Page) (parts []Part, next int64, err error)
	// Checks lists what a node's checks found, by batch and in the order in
	// which its attempt named them.
	Checks(ctx context.Context, key NodeKey, page Page) (results []CheckResult, next int64, err error)
	// Files lists a node's committed output files, likewise.
	Files(ctx context.Context, key NodeKey, page Page) (files []File, next int64, err error)
	// Tally sums up what the node's ended batches measured. It is derived, and
	// agrees with them when nothing is under way.
	Tally(ctx context.Context, key NodeKey) (Tally, error)
	// Events lists what has happened to a node, or with an empty Node to the
	// run itself, with Seq after that one: numbered 1, 2, 3 … without gaps.
	Events(ctx context.Context, key NodeKey, after int64, limit int) ([]Event, error)
	// Sequence lists spans of a run's events, its own and its nodes', in the order
	// in which somebody has read them first: that of one stream of all of them.
	Sequence(ctx context.Context, key RunKey, page Page) (spans []Span, next int64, err error)
	// ExtendSequence appends spans to the sequence if it still has at of them;
	// ErrConflict otherwise, unless they are what follows there already.
	ExtendSequence(ctx context.Context, key RunKey, at int64, spans []Span) error
	Close() error
}

// Blob is a content with its digest.
type Blob struct {
	Digest  string
	Content []byte
}

// BlobBytesMax is the largest content that is pinned.
const BlobBytesMax = 4 << 20

// Move is a step of a node.
type Move struct {
	Epoch      int64 // of the node, as its coordinator knows it
	From, To   Status
	Failure    *Failure // to Failed
	Gate       []byte   // to Waiting: what is asked, for whoever decides
	GateDigest string   // to Waiting: of what a decision is bound to
	Actor      string
	Now        time.Time
}

// PlanPiece is a piece of a plan that is too large to be stored at once.
type PlanPiece struct {
	Batches []BatchSpec
	Inputs  []Input
	First   int // place of the first of Inputs among all of the plan's
}

// Flip makes a plan the node's.
type Flip struct {
	Epoch       int64 // of the node, as its planner knows it
	Digest      string
	Record      []byte // see Node.Plan
	Batches     int    // how many there are
	InputDigest string
	ReusedFrom  *NodeKey
	Rest        PlanPiece // the piece that was not staged: all of a small plan
	Actor       string
	Now         time.Time
}

// NewBlob gives a content its digest.
func NewBlob(content []byte) Blob {
	sum := sha256.Sum256(content)
	return Blob{Digest: "sha256:" + hex.EncodeToString(sum[:]), Content: content}
}
