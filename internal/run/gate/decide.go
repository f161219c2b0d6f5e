package gate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Stands judges what was decided about a gate, given what it would ask now: it
// marks the record as passed by an approval. One that was given too late, or about
// what has changed since, is an error: the gate fails, and can be asked about again.
func Stands(n state.Node, now *Record) error {
	d := n.Decision
	if d == nil {
		return nil
	}
	who := fmt.Sprintf("%s at %s", d.Actor, d.Time.UTC().Format(time.RFC3339))
	if !d.Approved || d.Digest != now.Digest {
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the decision about gate %s is void: what %s decided on has changed since", now.Gate,
				who),
			Hint: AskAgain(n.RunKey)}
	}
	asked, err := Decode(n.Gate)
	if err != nil {
		return err
	}
	if asked.Over(d.Time) {
		return TooLate(n.RunKey, asked)
	}
	now.Since, now.Until = asked.Since, asked.Until
	now.Passed = "approved by " + who
	return nil
}

// TooLate is the failure of a gate whose time was over before it was approved.
func TooLate(run state.RunKey, r Record) *fault.Error {
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("nobody has approved gate %s within %s: it has been rejected since %s", r.Gate, r.Timeout,
			r.Until.Format(time.RFC3339)), Hint: AskAgain(run)}
}

// AskAgain says how a gate that was rejected is asked about again.
func AskAgain(run state.RunKey) string {
	return fmt.Sprintf("%s asks again; what is before the gate stays as it is",
		run.Do("retry"))
}

// Failure returns the failure that state keeps of a gate that fails.
func Failure(err *fault.Error, node string) *state.Failure {
	return &state.Failure{Kind: err.Kind, Message: err.Message, Hint: err.Hint, Node: node, Batch: -1}
}

// Answers are those of an approval, by name.
func Answers(d state.Decision) (map[string]string, error) {
	if len(d.Answers) == 0 {
		return nil, nil
	}
	var out map[string]string
	if err := json.Unmarshal(d.Answers, &out); err != nil {
		return nil, fmt.Errorf("read the answers of %s: %w", d.Actor, err)
	}
	return out, nil
}

// DecisionRequest is a decision that somebody wants to make.
type DecisionRequest struct {
	Approve bool
	state.Mark
	Role string
	// RoleVerified says that Role is not by the decider's own account.
	RoleVerified bool
	Answers      map[string]string // all that the gate asks for
	Digest       string            // of the record that was shown
	Token        string            // see state.Command
}

// Decide gives the order about a gate that waits, bound to the digest, and
// looks whether it stands: others may have come first, or what was shown may
// have changed.
func Decide(ctx context.Context, s state.Store, key state.NodeKey, w DecisionRequest) error {
	about := state.Redo{Node: key.Node, Digest: w.Digest, Role: w.Role, RoleVerified: w.RoleVerified}
	order := state.Command{Kind: state.CommandApprove, Token: w.Token, Mark: w.Mark}
	if w.Approve && len(w.Answers) > 0 {
		data, err := json.Marshal(w.Answers)
		if err != nil {
			return fmt.Errorf("write the answers to gate %s: %w", NameOf(key.Node), err)
		}
		about.Answers = data
	}
	if !w.Approve {
		order.Kind = state.CommandReject
		order.Cause = Failure(&fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s has rejected gate %s: %s", w.Actor,
			NameOf(key.Node), w.Reason), Hint: AskAgain(key.RunKey)}, key.Node)
	}
	order.Nodes = []state.Redo{about}
	err := state.Direct(ctx, s, key.RunKey, order)
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("record what was decided about gate %s: %w", NameOf(key.Node), err)
	}
	n, readErr := s.Node(ctx, key)
	if readErr != nil {
		return fmt.Errorf("look whether the decision stands: %w", readErr)
	}
	if !w.made(n.Decision) {
		return Void(n, w.Digest)
	}
	if w.Approve {
		return nil
	}
	return Fail(ctx, s, n, w.Actor, w.Time)
}

// made reports whether a decision is what came of the wish. One without a token is known by who
// decided what, when.
func (w DecisionRequest) made(d *state.Decision) bool {
	if d == nil || d.Token != "" {
		return d != nil && d.Token == w.Token
	}
	return d.Approved == w.Approve && d.Actor == w.Actor && d.Time.UnixMilli() == w.Time.UnixMilli()
}

// Fail ends the run of a gate that has failed, as whoever works on it would do
// next: there may be nobody. A gate that is asked again since fails nothing.
func Fail(ctx context.Context, s state.Store, n state.Node, actor string, now time.Time) error {
	o := state.Command{Kind: state.CommandFail, Cause: n.Failure, Mark: state.Mark{Actor: actor, Time: now,
		Reason: "gate " + NameOf(n.Name) + " was rejected"}}
	err := state.Decide(ctx, s, n.RunKey, rand.Text(), now, func(state.Run) (state.Command, error) {
		stands, err := s.Node(ctx, n.NodeKey)
		if err == nil && (stands.Status != state.Failed || stands.Epoch != n.Epoch) {
			err = state.ErrConflict
		}
		return o, err
	})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("record that run %d failed at gate %s: %w", n.Run, NameOf(n.Name), err)
	}
	return nil
}

// Void says why a decision about what had that digest does not count.
func Void(n state.Node, digest string) *fault.Error {
	name := NameOf(n.Name)
	f := &fault.Error{Kind: fault.Script, Code: fault.Conflict,
		Message: fmt.Sprintf("gate %s does not wait for a decision: it is %s", name, n.Status)}
	switch d := n.Decision; {
	case d != nil && d.Approved:
		f.Message = fmt.Sprintf("gate %s is approved already: by %s at %s%s", name, d.Actor,
			d.Time.UTC().Format(time.RFC3339), said(d.Reason))
	case d != nil:
		f.Message = fmt.Sprintf("gate %s is rejected already: by %s at %s%s", name, d.Actor,
			d.Time.UTC().Format(time.RFC3339), said(d.Reason))
		f.Hint = AskAgain(n.RunKey)
	case n.Status == state.Waiting && n.GateDigest != digest:
		f.Message = fmt.Sprintf("the decision about gate %s is void: what it shows has changed", name)
		f.Hint = "look at the tables again, and decide again"
	case n.Status == state.Pending:
		f.Message = fmt.Sprintf("gate %s does not wait yet: what it shows is not there, or is made again", name)
		f.Hint = n.RunKey.Beside("approvals").String() + " lists what waits"
	case n.Status == state.Failed && n.Failure != nil:
		f.Message, f.Hint = n.Failure.Message, AskAgain(n.RunKey)
	case n.Status == state.Stopped:
		f.Message = fmt.Sprintf("gate %s does not wait for a decision: its run was stopped, or has failed", name)
		f.Hint = n.RunKey.Do("resume").String() + " lets the run go on, and the gate asks again"
	case n.Status == state.Succeeded:
		f.Message = fmt.Sprintf("gate %s has asked nobody: no check that would ask has failed", name)
	case n.Status == state.Invalidated:
		f.Message = fmt.Sprintf("gate %s does not wait for a decision: what it has shown was declared "+
			"invalid, or dropped", name)
	}
	return f
}

func said(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// Expire rejects a gate whose time is over. It is a no-op if it is not.
func Expire(ctx context.Context, s state.Store, n state.Node, actor string, now time.Time) (over bool, err error) {
	if n.Status != state.Waiting || !Is(n.NodeSpec) {
		return false, nil
	}
	r, err := Decode(n.Gate)
	if err != nil || !r.Over(now) {
		return false, err
	}
	err = s.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: state.Waiting, To: state.Failed,
		Failure: Failure(TooLate(n.RunKey, r), n.Name), Actor: actor, Now: now})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return false, fmt.Errorf("reject gate %s, whose time is over: %w", r.Gate, err)
	}
	return true, nil
}
