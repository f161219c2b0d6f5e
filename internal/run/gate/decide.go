package gate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/store/state"
)

// CheckDecision checks whether the decision about a gate is still valid; now is the record of
// what the gate would ask now. If it is, CheckDecision marks now as passed. An approval that
// came too late, or whose tables have changed since, is an error: the gate fails. No
// decision is no error.
func CheckDecision(n state.Node, now *Record) error {
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

// TooLate returns the failure of a gate that nobody approved in time.
func TooLate(run state.RunKey, r Record) *fault.Error {
	return &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("nobody has approved gate %s within %s: it has been rejected since %s", r.Gate, r.within(),
			r.Until.Format(time.RFC3339)), Hint: AskAgain(run)}
}

// within is the timeout for people.
func (r Record) within() string {
	if d, err := time.ParseDuration(r.Timeout); err == nil {
		return format.Span(d)
	}
	return r.Timeout
}

// AskAgain says how people make a rejected gate ask again.
func AskAgain(run state.RunKey) string {
	return fmt.Sprintf("%s asks again; what is before the gate stays as it is",
		run.Do("retry"))
}

// Failure returns the failure that state keeps of a gate that fails.
func Failure(err *fault.Error, node string) *state.Failure {
	return &state.Failure{Kind: err.Kind, Message: err.Message, Hint: err.Hint, Node: node, Batch: -1}
}

// Answers returns the answers of an approval, by name.
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
	// RoleVerified is false if only the decider says that they have the role.
	RoleVerified bool
	Answers      map[string]string // all that the gate asks for
	Digest       string            // of the record that was shown
	Token        string            // see state.Command
}

// Decide gives the order to approve or reject a gate that waits, bound to the digest.
// It then reads whether the decision was made. If another decision came first, or
// what was shown has changed, it returns the error of InvalidDecision.
func Decide(ctx context.Context, s state.Store, key state.NodeKey, req DecisionRequest) error {
	about := state.CommandNode{Node: key.Node, Digest: req.Digest, Role: req.Role, RoleVerified: req.RoleVerified}
	order := state.Command{Kind: state.CommandApprove, Token: req.Token, Mark: req.Mark}
	if req.Approve && len(req.Answers) > 0 {
		data, err := json.Marshal(req.Answers)
		if err != nil {
			return fmt.Errorf("write the answers to gate %s: %w", NameOf(key.Node), err)
		}
		about.Answers = data
	}
	if !req.Approve {
		order.Kind = state.CommandReject
		order.Cause = Failure(&fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%s has rejected gate %s: %s",
			req.Actor, NameOf(key.Node), req.Reason), Hint: AskAgain(key.RunKey)}, key.Node)
	}
	order.Nodes = []state.CommandNode{about}
	err := state.Direct(ctx, s, key.RunKey, order)
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("record what was decided about gate %s: %w", NameOf(key.Node), err)
	}
	n, readErr := s.Node(ctx, key)
	if readErr != nil {
		return fmt.Errorf("look whether the decision stands: %w", readErr)
	}
	if !req.made(n.Decision) {
		return InvalidDecision(n, req.Digest)
	}
	if req.Approve {
		return nil
	}
	return Fail(ctx, s, n, req.Actor, req.Time)
}

// made reports whether a decision was made by this request. A decision without a token is recognized by its
// actor, its time and whether it approves.
func (req DecisionRequest) made(d *state.Decision) bool {
	if d == nil || d.Token != "" {
		return d != nil && d.Token == req.Token
	}
	return d.Approved == req.Approve && d.Actor == req.Actor && d.Time.UnixMilli() == req.Time.UnixMilli()
}

// Fail ends the run of a gate that has failed. A coordinator would do the same, but
// there may be none. It does nothing if the gate has been planned again since.
func Fail(ctx context.Context, s state.Store, n state.Node, actor string, now time.Time) error {
	o := state.Command{Kind: state.CommandFail, Cause: n.Failure, Mark: state.Mark{Actor: actor, Time: now,
		Reason: "gate " + NameOf(n.Name) + " was rejected"}}
	err := state.Decide(ctx, s, n.RunKey, rand.Text(), now, func(state.Run) (state.Command, error) {
		current, err := s.Node(ctx, n.NodeKey)
		if err == nil && (current.Status != state.Failed || current.Epoch != n.Epoch) {
			err = state.ErrConflict
		}
		return o, err
	})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return fmt.Errorf("record that run %d failed at gate %s: %w", n.Run, NameOf(n.Name), err)
	}
	return nil
}

// InvalidDecision returns the error that says why a decision with that digest is not valid.
func InvalidDecision(n state.Node, digest string) *fault.Error {
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

// Expire rejects a gate whose deadline has passed, and reports whether it has passed. Else it is a no-op.
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
