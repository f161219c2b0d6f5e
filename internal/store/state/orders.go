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

// Command is a decision about a whole run. People, events and stored texts call it an order. It is recorded
// in the run's partition first. Then each node follows it in its own partition, and at last the run's status
// changes. Any process that finds a command half carried out finishes it (Carry). Commands of a run are
// numbered. A node that has followed one ignores earlier ones, so that a late worker repeats nothing.
type Command struct {
	Epoch int64         `json:"epoch"` // its number: 1, 2, 3 … in a run
	Token string        `json:"token"` // unique to the call that gave it, so that the call can be repeated
	Kind  CommandKind   `json:"kind"`
	From  Status        `json:"from"` // the run's status when it was given
	Mark                // who gave it, when, why
	Nodes []CommandNode `json:"nodes,omitempty"`   // the nodes that it is about; none: all of the run's
	Cause *Failure      `json:"failure,omitempty"` // of CommandFail and CommandReject
	Limit *Limit        `json:"limit,omitempty"`   // of a command that lets a run go on: its new one; nil: as before
	// Left is when somebody last worked on a run that nobody had ended; zero: until the command.
	Left *time.Time `json:"left,omitempty"`
	Done bool       `json:"done,omitempty"` // carried out
}

// CommandKind says what a command demands. The texts are stored.
type CommandKind string

// The kinds of commands. Claims that were given before a command cannot publish anything after it. That does not
// hold for CommandPause, CommandUnpause, CommandTake and CommandForesee.
const (
	// claimed batches are finished, no others are begun; a running run becomes Paused
	CommandPause      CommandKind = "pause"
	CommandUnpause    CommandKind = "unpause"    // a paused run goes on
	CommandStop       CommandKind = "stop"       // nothing more is done; a running run becomes Stopped
	CommandFail       CommandKind = "fail"       // nothing more is done; a running run becomes Failed
	CommandReopen     CommandKind = "reopen"     // go on: what failed, stopped or was under way is done again
	CommandRedo       CommandKind = "redo"       // go on, and do these nodes or batches again although they are done
	CommandInvalidate CommandKind = "invalidate" // nobody may read these nodes' tables any more
	CommandApprove    CommandKind = "approve"    // these gates are approved, if they still show what was decided on
	CommandReject     CommandKind = "reject"     // these gates fail with Cause, under the same condition
	// nobody reads, continues or lists the run any more; the data of its nodes may be removed (Store.Purge)
	CommandDrop CommandKind = "drop"
	// somebody looks after a failed run: nothing of it changes, and others see who does until its next order
	CommandTake CommandKind = "take"
	// a running run is expected to reach its limit: nothing of it changes, and it is told once
	CommandForesee CommandKind = "foresee"
)

// CommandNode names a node that a command is about. For CommandRedo it says which batches
// are done again. For CommandApprove and CommandReject it says what was decided on.
// A CommandRedo also names, with Replan, all nodes that have read such a node, directly
// or through others. In a run that is not over, it names all that may still read it.
type CommandNode struct {
	Node    string `json:"node"`
	Batches []int  `json:"batches,omitempty"` // none: all
	Replan  bool   `json:"replan,omitempty"`  // its inputs change, so its plan is dropped, too
	// Digest is that of the gate that was shown. A node whose Gate has another one ignores the command.
	Digest string `json:"digest,omitempty"`
	Role   string `json:"role,omitempty"` // in which somebody decides
	// RoleVerified is false if only the decider says that they have the role.
	RoleVerified bool            `json:"role_verified,omitempty"`
	Answers      json.RawMessage `json:"answers,omitempty"` // to what the gate asks; opaque here
}

// TokenAgain begins the tokens of commands that no person has given: a node is
// planned again, because its inputs have changed.
const TokenAgain = "planned again: "

// OfPeople reports whether a person has given the command, not the program itself.
func (c Command) OfPeople() bool {
	return c.Kind != CommandFail && !strings.HasPrefix(c.Token, TokenAgain) && !c.OfLimit()
}

// about returns what a command says about a node; false: it is not about that node.
func (c Command) about(node string) (CommandNode, bool) {
	i := slices.IndexFunc(c.Nodes, func(r CommandNode) bool { return r.Node == node })
	if i >= 0 {
		return c.Nodes[i], true
	}
	return CommandNode{}, len(c.Nodes) == 0
}

// ReasonAgain is the reason of a stop that only prepares a CommandRedo by the same caller.
const ReasonAgain = "parts of it are done again"

// AboutToGoOn reports whether a run is stopped only until the same caller continues
// it (ReasonAgain). If that caller has died, nobody does.
func (r Run) AboutToGoOn() bool {
	return r.Status == Stopped && r.Command != nil && r.Command.Kind == CommandStop && r.Command.Reason == ReasonAgain
}

// Taken returns who looks after the failure of a run; nil: nobody does.
func (r Run) Taken() *Mark {
	if r.Status != Failed || r.Command == nil || r.Command.Kind != CommandTake || r.Command.Pending() {
		return nil
	}
	return &r.Command.Mark
}

// Pending reports whether there is an order that is not carried out yet.
func (c *Command) Pending() bool { return c != nil && !c.Done }

// Behind reports whether a node has followed a command that began after the run was
// read. Other nodes may not have followed it yet. The caller must not compare
// nodes then, but read the run again.
func (r Run) Behind(n Node) bool { return n.Epoch > r.Epoch }

// GoesOn reports whether a run is running, or will be once its order is carried out.
func (r Run) GoesOn() bool {
	if r.Command.Pending() {
		to, _ := r.Command.Leads(r)
		return to == Running
	}
	return r.Status == Running
}

// Concerns reports whether a node has to follow the command. Work in other nodes
// is not disturbed.
func (c Command) Concerns(node string) bool {
	switch c.Kind {
	case CommandStop, CommandFail, CommandReopen, CommandPause, CommandUnpause, CommandDrop:
		return true
	case CommandTake, CommandForesee:
		return false
	case CommandRedo:
		if c.From != Running { // the other nodes go on, too
			return true
		}
	}
	_, about := c.about(node)
	return about
}

// Leads returns the status that a command gives to a run; ok is false if a run in
// this status cannot have the command.
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
	case CommandTake:
		return run.Status, run.Status == Failed && !void && len(c.Nodes) == 0
	case CommandForesee:
		told := run.Limit == nil || run.Limit.Foreseen
		return run.Status, run.Status == Running && !told && len(c.Nodes) == 0
	}
	return run.Status, false
}

// Direct gives a command to a run and carries it out. It chooses the number. An
// earlier command that is not carried out yet is carried out first. ErrConflict
// if a run in its status cannot have the command.
//
// If the command continues a run that was over, Direct notes the run as open twice.
// The note before the command is needed if this process dies. The note after it is
// needed if another process has removed the first one, or is about to: it is another
// note, so that who has read the first one does not remove it.
func Direct(ctx context.Context, s Store, key RunKey, c Command) error {
	return Decide(ctx, s, key, c.Token, c.Time, func(Run) (Command, error) { return c, nil })
}

// Decide calls decide with the run as it is, gives the command that it returns, and
// carries it out as Direct does. If the run's status or latest command changes
// before the command begins, Decide calls decide again.
func Decide(ctx context.Context, s Store, key RunKey, token string, now time.Time,
	decide func(Run) (Command, error)) error {
	for {
		run, err := s.Run(ctx, key)
		if err != nil {
			return fmt.Errorf("read run %d: %w", key.Run, err)
		}
		if err := Carry(ctx, s, run, now); err != nil {
			return err
		}
		if run.Command != nil && run.Command.Token == token { // begun, here or by a call whose answer was lost
			return directed(ctx, s, run)
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
			if err := s.PutNote(ctx, key.Workspace, OpenNote(key.Run, token, c.Time)); err != nil {
				return fmt.Errorf("note that run %d is open: %w", key.Run, err)
			}
		}
		c.Epoch, c.From, c.Token = run.Epoch+1, run.Status, token
		// ErrConflict: another command came first, or the run has moved. Read it again.
		if err := s.BeginCommand(ctx, key, c); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrUnknown) {
			return err
		}
	}
}

// directed updates the note that a run is open, after a command was carried out. It
// puts another one if the command continues a run that was over, and calls closeRun if it ends the run.
func directed(ctx context.Context, s Store, run Run) error {
	to, _ := run.Command.Leads(Run{Status: run.Command.From})
	switch {
	case to.Terminal():
		return closeRun(ctx, s, run.RunKey)
	case !run.Command.From.Terminal():
		return nil
	}
	if err := s.PutNote(ctx, run.Workspace, OpenNote(run.Run, run.Command.Token+" again", run.Command.Time)); err != nil {
		return fmt.Errorf("note that run %d is open: %w", run.Run, err)
	}
	return nil
}

// Carry carries out a run's command, if that is not done yet. Nodes that read a table
// follow the command before the node that writes it. Otherwise a node that is done
// again could publish new rows too early: an earlier claim of its reader could still
// read them and commit.
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
		return nil // another process has carried it out, and a later command exists
	}
	return err
}
