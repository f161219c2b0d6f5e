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
// It is made of three kinds of partitions:
//
//   - a workspace's: numbers of its runs, notes
//   - a run's: its record, commands, roles, events, sequence
//   - a node's: its record, plan, batches, attempts, results, publications, events
//
// Each method changes one partition, in one atomic step, and its conditions are about
// that partition alone. Only CreateRun writes several, the run's own last. Changes
// to a whole run combine such steps: see Direct and the other functions of this package.
//
// Every method may be called concurrently, from several processes where the
// backend allows it. What it has changed is durable when it returns nil. Every method
// may fail with ErrUnknown or an error of the backend. The caller does not know then
// whether the change was made, and may repeat the call with the same arguments. A call
// that arrives late, or twice, changes nothing that has moved on meanwhile.
// Times are passed in, so that leases can be tested; they are kept to the
// millisecond, in UTC.
//
// Every method returns ErrNotFound for a run, node or batch that is not there.
// Lists that cover several partitions are not a snapshot of one moment.
type Store interface {
	// CreateRun stores a new run in status Running, with its nodes Pending, and
	// the blobs that its pins name. It returns its number, one more than the
	// workspace's last. It first puts the note that the run is open (OpenNote).
	CreateRun(ctx context.Context, run Run, nodes []NodeSpec, blobs ...Blob) (RunKey, error) //around:change
	Run(ctx context.Context, key RunKey) (Run, error)
	// Runs lists a workspace's runs, the latest first, with Run.Nodes and without
	// the fields that only Run fills.
	Runs(ctx context.Context, workspace string, page Page) (runs []Run, next int64, err error)
	// Workspaces lists the workspaces that have runs, by name.
	Workspaces(ctx context.Context) ([]string, error)
	// Blob returns the content that was pinned under a digest.
	Blob(ctx context.Context, digest string) ([]byte, error)

	// PutNote stores a note under its topic and name, and replaces an earlier one.
	// Notes are hints and decide nothing: a call that arrives late may overwrite a
	// newer note, or bring back a removed one. A reader checks a note against the
	// run that it names, and removes it if it does not hold any more.
	PutNote(ctx context.Context, workspace string, n Note) error //around:hint
	// RemoveNote removes a note if it is still as it was read; a no-op otherwise.
	RemoveNote(ctx context.Context, workspace string, n Note) error //around:hint
	// Notes lists those of a topic's notes whose names sort after a given one, by name.
	Notes(ctx context.Context, workspace, topic, after string, limit int) ([]Note, error)

	// BeginCommand records a command as the run's latest. Its number must be the
	// one after the run's Epoch. ErrConflict if it is not, if the command before
	// is not carried out yet, or if a run in this status cannot have it.
	BeginCommand(ctx context.Context, key RunKey, c Command) error //around:name=begin_order
	// ApplyCommand makes a node follow a command: its epoch rises to the command's, and
	// Command.On says what becomes of it and its batches. A no-op if the node has
	// followed that command or a later one.
	ApplyCommand(ctx context.Context, key NodeKey, c Command) error //around:name=hear
	// CommitCommand records that every node follows the command: the run gets the
	// status that the command leads to. ErrConflict if it is not the run's latest.
	CommitCommand(ctx context.Context, key RunKey, epoch int64, now time.Time) error //around:name=end_order
	// CompleteRun moves a run from Running to Complete; ErrConflict if it is
	// not Running, has another epoch, or a command is being carried out.
	CompleteRun(ctx context.Context, key RunKey, epoch int64, actor string, now time.Time) error

	// Acquire takes a role that is free or has expired before now, or renews it for
	// its owner. The role then expires at until; renewing never shortens it. If
	// another owner has it, it returns the role as it is and ErrHeld. Roles only save
	// duplicate work, and no other method depends on them. A call that arrives late
	// may take a role for an owner that is gone, or give up one that is still needed.
	Acquire(ctx context.Context, key RunKey, role, owner string, now, until time.Time) (Role, error) //around:hint
	// Resign gives a role up; a no-op if it is not the owner's.
	Resign(ctx context.Context, key RunKey, role, owner string) error //around:hint

	// Nodes lists a run's nodes by ordinal, without their plans.
	Nodes(ctx context.Context, key RunKey) ([]Node, error)
	Node(ctx context.Context, key NodeKey) (Node, error)
	// StagePlan stores a piece of a plan under the plan's digest. Nobody sees it until
	// AdoptPlan. The call may be repeated: a digest always stands for the same plan.
	StagePlan(ctx context.Context, key NodeKey, digest string, piece PlanPiece) error
	// AdoptPlan makes a staged plan the node's, and moves it from Pending to
	// Running. It returns the digest of the node's plan, which is another one if
	// another planner came first. ErrConflict if the node cannot be planned (any
	// more), or has another epoch.
	AdoptPlan(ctx context.Context, key NodeKey, f Adoption) (standing string, err error) //around:change
	// MoveNode moves a node along a transition that coordinators make (Settles);
	// ErrConflict if it is no longer in From, or has another epoch. A move that has
	// been made already is a no-op.
	MoveNode(ctx context.Context, key NodeKey, m Move) error

	// Purge removes what a node of a dropped run keeps: its plan, batches,
	// attempts, results and publications. Its record, its tally and its events
	// stay. ErrConflict if it does not follow the command that dropped its run yet.
	// Late calls of StagePlan may store pieces again, so Purge may be repeated.
	Purge(ctx context.Context, key NodeKey) error

	// Batch reads a batch with its work, and its attempts by number: the latest
	// of them if there are more than PageMax.
	Batch(ctx context.Context, key BatchKey) (Batch, []Attempt, error)
	// Batches lists a node's batches by number, without their work.
	Batches(ctx context.Context, key NodeKey, page Page) (batches []Batch, next int64, err error)
	// Unsettled lists the batches that are claimed, have failed, or wait to be tried
	// again, by number. Its cost grows with its result, not with the node.
	Unsettled(ctx context.Context, key NodeKey, page Page) (batches []Batch, next int64, err error)
	// Specs lists the batches as they were planned.
	Specs(ctx context.Context, key NodeKey, page Page) (specs []BatchSpec, next int64, err error)
	// Inputs lists the files that the node was planned to read.
	Inputs(ctx context.Context, key NodeKey, page Page) (inputs []Input, next int64, err error)
	// Offers lists the batches of a Running node that can be claimed now, by number.
	// They are of its first phase that is not done, and Pending or with a lease that
	// ended before now. Its cost grows with its result, not with the node.
	Offers(ctx context.Context, key NodeKey, now time.Time, page Page) (offers []Offer, next int64, err error)

	// Claim takes a batch that is unchanged since it was offered. The node must be
	// Running. Its epoch and the batch's latest attempt must be those of the offer.
	// The batch must be Pending and past NotBefore, or Claimed with a lease that ended
	// before now; that earlier attempt becomes Lost. ErrNotClaimable otherwise.
	// Repeated with its token, Claim returns the same claim while that is the batch's
	// latest and has not ended.
	Claim(ctx context.Context, b ClaimRequest) (Claim, error) //around:change
	// Extend moves the end of the lease, never back; ErrLeaseLost if the attempt
	// is no longer the latest, has ended, or was claimed before the node's Fence.
	Extend(ctx context.Context, c Claim, lease time.Time) error
	// Announce records what the attempt is about to publish, and extends its
	// lease; ErrLeaseLost as Extend. A record never changes: later knowledge is
	// announced under another Seq. Commit removes the records, because the files are
	// published then. If the attempt ends in another way, they stay until somebody
	// has cleaned up its files, and calls Forget.
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
	// Retry marks the attempt Failed and the batch Pending, with one try used up. The
	// batch cannot be claimed before notBefore. stats are kept with the attempt only.
	// ErrLeaseLost as Extend.
	Retry(ctx context.Context, c Claim, failure Failure, stats Stats, notBefore, now time.Time) error
	// Release marks the batch Pending without using up a try, for workers that shut
	// down. ErrLeaseLost as Extend.
	Release(ctx context.Context, c Claim, now time.Time) error
	// Attempts lists a node's attempts by batch and number.
	Attempts(ctx context.Context, key NodeKey, page Page) (attempts []Attempt, next int64, err error)
	// Publications lists what attempts have announced and not committed, by
	// batch, attempt and place.
	Publications(ctx context.Context, key NodeKey, page Page) (publications []Publication, next int64, err error)
	// Forget removes what an attempt announced.
	Forget(ctx context.Context, key BatchKey, attempt int) error

	// Parts lists the valid parts of a node's table and side tables, in order of
	// batch and seq. These are all parts of batches that succeeded, and the side parts
	// of those that failed. Manifest and SideParts separate them.
	Parts(ctx context.Context, key NodeKey, page Page) (parts []Part, next int64, err error)
	// Checks lists what a node's checks found, by batch and in the order in
	// which its attempt named them.
	Checks(ctx context.Context, key NodeKey, page Page) (results []CheckResult, next int64, err error)
	// Files lists a node's committed output files, in the same order.
	Files(ctx context.Context, key NodeKey, page Page) (files []File, next int64, err error)
	// Tally sums up the measurements of the node's ended batches. It is derived, and
	// may differ from them for a moment while an attempt ends.
	Tally(ctx context.Context, key NodeKey) (Tally, error)
	// Events lists the events of a node, or with an empty Node those of the run
	// itself, with a Seq above after. Seq counts 1, 2, 3 … without gaps.
	Events(ctx context.Context, key NodeKey, after int64, limit int) ([]Event, error)
	// Sequence lists spans of the events of a run and its nodes. Their order is fixed
	// by the first reader, so that all readers see the same stream.
	Sequence(ctx context.Context, key RunKey, page Page) (spans []Span, next int64, err error)
	// ExtendSequence appends spans to a sequence that has at spans. A no-op if the same
	// spans follow there already; ErrConflict if others do.
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
	Gate       []byte   // to Waiting: the record of what is asked
	GateDigest string   // to Waiting: digest of what is shown; a decision must name it
	Actor      string
	Now        time.Time
}

// PlanPiece is a piece of a plan that is too large to be stored at once.
type PlanPiece struct {
	Batches []BatchSpec
	Inputs  []Input
	First   int // place of the first of Inputs among all of the plan's
}

// Adoption makes a plan the node's.
type Adoption struct {
	Epoch       int64 // of the node, as its planner knows it
	Digest      string
	Record      []byte // see Node.Plan
	Batches     int    // number of the plan's batches
	InputDigest string
	ReusedFrom  *NodeKey
	Rest        PlanPiece // the piece that was not staged: all of a small plan
	Actor       string
	Now         time.Time
}

// NewBlob returns a blob of a content, with its digest.
func NewBlob(content []byte) Blob {
	sum := sha256.Sum256(content)
	return Blob{Digest: "sha256:" + hex.EncodeToString(sum[:]), Content: content}
}
