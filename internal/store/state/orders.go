package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Command is a decision about a whole run: an order, as people, events and what is stored call it. It is
// recorded in the run's partition first, then each node follows it in its own, then the run's status does.
// Whoever finds one half carried out carries on (Carry). Commands of a run are
// numbered, and a node that follows a later one ignores an earlier one, so
// that a worker that wakes up late repeats nothing.
type Command struct {
	Epoch int64       `json:"epoch"` // its number: 1, 2, 3 … in a run
	Token string      `json:"token"` // its giver's own, so that it can be repeated
	Kind  CommandKind `json:"kind"`
	From  Status      `json:"from"` // the run's when it was given
	Mark              // who gave it, when, why
	Nodes []Redo      `json:"nodes,omitempty"`   // that it is about; none: all of the run's
	Cause *Failure    `json:"failure,omitempty"` // of CommandFail and CommandReject
	Done  bool        `json:"done,omitempty"`    // carried out
}

// CommandKind says what a command demands. The texts are stored.
type CommandKind string

// The kinds of commands. Each but the pauses makes every claim that was given before it worthless.
const (
	// what is under way ends as it does, nothing more is begun; a running run becomes Paused
	CommandPause      CommandKind = "pause"
	CommandUnpause    CommandKind = "unpause"    // a paused run goes on
	CommandStop       CommandKind = "stop"       // nothing more is done; a running run becomes Stopped
	CommandFail       CommandKind = "fail"       // likewise; it becomes Failed
	CommandReopen     CommandKind = "reopen"     // go on: what failed, stopped or was under way is done again
	CommandRedo       CommandKind = "redo"       // go on, and do these nodes or batches again although they are done
	CommandInvalidate CommandKind = "invalidate" // nobody may read these nodes' tables any more
	CommandApprove    CommandKind = "approve"    // these nodes wait no more, if they still wait for what was decided
	CommandReject     CommandKind = "reject"     // likewise they waited in vain: they fail, with Cause
	// nobody reads, continues or lists the run any more, and what its nodes keep may go (Store.Purge)
	CommandDrop CommandKind = "drop"
)

// Redo names a node that an order is about, and for CommandRedo what of it is to
// be done again; for CommandApprove and CommandReject what was decided upon. With a node
// that is done again its order names, with Replan, all that have read it, themselves
// or through others; in a run that is not over all that may come to.
type Redo struct {
	Node    string `json:"node"`
	Batches []int  `json:"batches,omitempty"` // none: all
	Replan  bool   `json:"replan,omitempty"`  // its inputs have changed: its plan goes, too
	// of the gate that was shown: a node whose Gate has another one ignores the order
	Digest string `json:"digest,omitempty"`
	Role   string `json:"role,omitempty"` // as which somebody decides
	// RoleVerified says that Role is not by their own account.
	RoleVerified bool            `json:"role_verified,omitempty"`
	Answers      json.RawMessage `json:"answers,omitempty"` // to what the gate asks; opaque here
}

// TokenAgain begins the tokens of orders that nobody has given: a node has to be
// planned again, because what it reads is not what it was.
const TokenAgain = "planned again: "

// OfPeople reports whether somebody has given the order, and not the machinery.
func (c Command) OfPeople() bool {
	return c.Kind != CommandFail && !strings.HasPrefix(c.Token, TokenAgain)
}

// about finds what an order says of a node.
func (c Command) about(node string) (Redo, bool) {
	i := slices.IndexFunc(c.Nodes, func(r Redo) bool { return r.Node == node })
	if i >= 0 {
		return c.Nodes[i], true
	}
	return Redo{}, len(c.Nodes) == 0
}

// ReasonAgain is the reason of a stop that the next order of the same giver ends: parts of the run are done
// again.
const ReasonAgain = "parts of it are done again"

// AboutToGoOn reports whether a run is stopped for a moment, unless whoever
// stopped it has died since.
func (r Run) AboutToGoOn() bool {
	return r.Status == Stopped && r.Command != nil && r.Command.Kind == CommandStop && r.Command.Reason == ReasonAgain
}

// Pending reports whether there is an order that is not carried out yet.
func (c *Command) Pending() bool { return c != nil && !c.Done }

// Behind reports whether a node has heard of an order that began after the run was
// read: others may not have heard of it yet. Who has read them so must not
// conclude anything from one about another, but read the run again.
func (r Run) Behind(n Node) bool { return n.Epoch > r.Epoch }

// GoesOn reports whether a run is running, or will be once its order is carried out.
func (r Run) GoesOn() bool {
	if r.Command.Pending() {
		to, _ := r.Command.Leads(r)
		return to == Running
	}
	return r.Status == Running
}

// Concerns reports whether a node has to hear of the order. What goes on in
// nodes that need not is not disturbed.
func (c Command) Concerns(node string) bool {
	switch c.Kind {
	case CommandStop, CommandFail, CommandReopen, CommandPause, CommandUnpause, CommandDrop:
		return true
	case CommandRedo:
		if c.From != Running { // all others go on where they were
			return true
		}
	}
	_, about := c.about(node)
	return about
}

// Leads gives the status that a run gets by an order; ok is false if it cannot
// have it as it is.
func (c Command) Leads(run Run) (to Status, ok bool) {
	alive := run.Status == Running || run.Status == Paused
	void := run.Invalidated != nil || run.Dropped != nil
	switch c.Kind {
	case CommandStop:
		return Stopped, alive
	case CommandFail:
		return Failed, alive
	case CommandPause:
		return Paused, run.Status == Running && len(c.Nodes) == 0
	case CommandUnpause:
		return Running, run.Status == Paused && len(c.Nodes) == 0
	case CommandReopen:
		return Running, run.Status != Complete && !void
	case CommandRedo:
		return Running, len(c.Nodes) > 0 && !void
	case CommandInvalidate:
		return run.Status, !alive && run.Dropped == nil
	case CommandApprove, CommandReject:
		return run.Status, len(c.Nodes) > 0 && alive
	case CommandDrop:
		return run.Status, !alive && run.Dropped == nil && len(c.Nodes) == 0
	}
	return run.Status, false
}

// Direct gives an order to a run and carries it out. It chooses the number; an
// order before it that is not carried out yet is carried out first. ErrConflict
// if a run in its status cannot have it.
//
// A run that was over and goes on is noted as open before and after that: the
// first note is for the case that this process dies, the second for that of
// somebody who finds the first one wrong before the order has begun.
func Direct(ctx context.Context, s Store, key RunKey, c Command) error {
	return Decide(ctx, s, key, c.Token, c.Time, func(Run) (Command, error) { return c, nil })
}

// Decide gives the order that is decided on a run as it is, and carries it out
// as Direct does. If the run's status or its latest order is another one when
// the order begins, it is decided again.
func Decide(ctx context.Context, s Store, key RunKey, token string, now time.Time,
	decide func(Run) (Command, error)) error {
	var reopens *Note
	for {
		run, err := s.Run(ctx, key)
		if err != nil {
			return fmt.Errorf("read run %d: %w", key.Run, err)
		}
		if err := Carry(ctx, s, run, now); err != nil {
			return err
		}
		if run.Command != nil && run.Command.Token == token { // begun, here or by a call whose answer was lost
			return directed(ctx, s, run, reopens)
		}
		if run.Command.Pending() {
			continue
		}
		c, err := decide(run)
		if err != nil {
			return err
		}
		to, ok := c.Leads(run)
		if !ok {
			return fmt.Errorf("%s run %d, which is %s: %w", c.Kind, key.Run, run.Status, ErrConflict)
		}
		if run.Status.Terminal() && !to.Terminal() {
			note := OpenNote(key.Run, token, c.Time)
			if err := s.PutNote(ctx, key.Workspace, note); err != nil {
				return fmt.Errorf("note that run %d is open: %w", key.Run, err)
			}
			reopens = &note
		}
		c.Epoch, c.From, c.Token = run.Epoch+1, run.Status, token
		// In the way: another order, or the run's own progress. It is looked at again.
		if err := s.BeginCommand(ctx, key, c); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknown) {
			return err
		}
	}
}

// directed brings the note of a run up to date that an order was given to. A run
// whose order leads to an end is read again when that is carried out.
func directed(ctx context.Context, s Store, run Run, reopens *Note) error {
	if reopens != nil {
		if err := s.PutNote(ctx, run.Workspace, *reopens); err != nil {
			return fmt.Errorf("note that run %d is open: %w", run.Run, err)
		}
		return nil
	}
	if to, _ := run.Command.Leads(Run{Status: run.Command.From}); !to.Terminal() {
		return nil
	}
	return closeRun(ctx, s, run.RunKey)
}

// Carry carries out a run's order, if it has one that is not carried out yet. Who
// reads a table hears of it before who writes that: else, of two nodes that are
// done again in a run that goes on, the first could have new rows while a claim
// of the second, given before the order, still reads and commits.
func Carry(ctx context.Context, s Store, run Run, now time.Time) error {
	if !run.Command.Pending() {
		return nil
	}
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range slices.Backward(nodes) {
		if !run.Command.Concerns(n.Name) || n.Epoch >= run.Command.Epoch {
			continue
		}
		if err := s.ApplyCommand(ctx, n.NodeKey, *run.Command); err != nil {
			return fmt.Errorf("%s node %s: %w", run.Command.Kind, n.Name, err)
		}
	}
	err = s.CommitCommand(ctx, run.RunKey, run.Command.Epoch, now)
	if errors.Is(err, ErrConflict) {
		return nil // others have carried it out, and there is a later one
	}
	return err
}
