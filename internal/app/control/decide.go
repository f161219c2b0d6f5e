package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// DecisionRequest holds somebody's decision about a gate.
type DecisionRequest struct {
	runtime.Process
	Run     state.RunKey
	Gate    string
	Approve bool
	Comment string
	Digest  string            // of the record that the caller has seen, or its first digits; "": the present one
	Answers map[string]string // as the caller gave them, without defaults
	Shown   func(gate.Record) // called with the record before the decision is made; may be nil
}

// Decided is a decision that was made.
type Decided struct {
	Record  gate.Record
	Answers map[string]string // with defaults
	AtWork  bool              // a process works on the run, and follows the decision
	Paused  bool              // the run is paused, so the decision has no effect before somebody resumes it
}

// Decide approves or rejects a gate that waits, bound to what it shows now. If the
// decision cannot be made, or has no effect, the error says why.
func Decide(ctx context.Context, home *instance.Instance, req DecisionRequest) (out Decided, err error) {
	req.Process = req.WithDefaults()
	t, err := runtime.New(home, req.Process)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if n, done := decidedBy(ctx, t, req); done { // the same request again
		var failed error
		out.Record, err = gate.Decode(n.Gate)
		out.Answers, failed = gate.Answers(*n.Decision)
		out.AtWork = home.AtWork(req.Run)
		return out, errors.Join(err, failed)
	}
	n, err := waitingGate(ctx, t, req)
	if err != nil {
		return out, err
	}
	if out.Record, err = gate.Decode(n.Gate); err != nil {
		return out, err
	}
	role, err := req.role(out.Record)
	if err != nil {
		return out, err
	}
	begun, err := t.Store.Run(ctx, req.Run)
	if err != nil {
		return out, fmt.Errorf("read run %d: %w", req.Run.Run, err)
	}
	if err := out.Record.Refuses(req.Caller.Actor, req.Caller.Verified, begun.Actor); err != nil {
		return out, err
	}
	if err := lookedAt(req, out.Record); err != nil {
		return out, err
	}
	if out.Answers, err = answersTo(out.Record, req); err != nil {
		return out, err
	}
	if req.Shown != nil {
		req.Shown(out.Record)
	}
	if err := unchanged(ctx, t.Store, req.Run, out.Record); err != nil {
		return out, err
	}
	if req.Approve {
		if err := tryAnswers(ctx, t, req.Run, out); err != nil {
			return out, err
		}
	}
	if req.Checkpoint != nil {
		req.Checkpoint(job.Decided)
	}
	mark := req.Caller.Mark(req.Comment)
	order := gate.DecisionRequest{Approve: req.Approve, Mark: mark, Role: role,
		RoleVerified: req.Caller.Verified, Digest: out.Record.Digest,
		Token: mark.OrderToken()}
	if req.Approve {
		order.Answers = out.Answers
	}
	if err := gate.Decide(ctx, t.Store, n.NodeKey, order); err != nil {
		return out, err
	}
	home.Ordered(ctx, req.Run)
	out.AtWork = home.AtWork(req.Run)
	run, err := t.Store.Run(ctx, req.Run)
	out.Paused = err == nil && run.Status == state.Paused // the decision is made, even if the run cannot be read
	return out, nil
}

// decidedBy returns the node of the gate, if the decision about it was made by the caller's request.
func decidedBy(ctx context.Context, t *runtime.Runtime, req DecisionRequest) (state.Node, bool) {
	if req.Caller.Request == "" {
		return state.Node{}, false
	}
	key := state.NodeKey{RunKey: req.Run, Node: gate.Prefix + strings.TrimPrefix(req.Gate, gate.Prefix)}
	n, err := t.Store.Node(ctx, key)
	return n, err == nil && n.Decision != nil && n.Decision.Token == req.Caller.Request
}

// waitingGate returns the node of the gate, and refuses one that does not wait. It
// first rejects a gate whose deadline has passed.
func waitingGate(ctx context.Context, t *runtime.Runtime, req DecisionRequest) (state.Node, error) {
	run, err := t.Store.Run(ctx, req.Run)
	if errors.Is(err, state.ErrNotFound) {
		return state.Node{}, instance.RunNotFound(req.Run)
	}
	if err != nil {
		return state.Node{}, fmt.Errorf("read run %d: %w", req.Run.Run, err)
	}
	if err := state.Carry(ctx, t.Store, run, time.Now()); err != nil {
		return state.Node{}, fmt.Errorf("carry out what was ordered of run %d: %w", req.Run.Run, err)
	}
	nodes, err := t.Store.Nodes(ctx, req.Run)
	if err != nil {
		return state.Node{}, fmt.Errorf("read the nodes of run %d: %w", req.Run.Run, err)
	}
	name := strings.TrimPrefix(req.Gate, gate.Prefix)
	i := slices.IndexFunc(nodes, func(n state.Node) bool { return gate.Is(n.NodeSpec) && gate.NameOf(n.Name) == name })
	if i < 0 {
		return state.Node{}, noGate(req, nodes)
	}
	n := nodes[i]
	over, err := gate.Expire(ctx, t.Store, n, req.Caller.Actor, t.Instance.Clock.Now())
	if err != nil {
		return n, err
	}
	if over {
		if n, err = t.Store.Node(ctx, n.NodeKey); err != nil {
			return n, fmt.Errorf("read gate %s: %w", name, err)
		}
		if n.Status == state.Failed {
			if err := gate.Fail(ctx, t.Store, n, req.Caller.Actor, t.Instance.Clock.Now()); err != nil {
				return n, err
			}
		}
	}
	if n.Status != state.Waiting {
		return n, gate.InvalidDecision(n, n.GateDigest)
	}
	return n, nil
}

func noGate(req DecisionRequest, nodes []state.Node) error {
	var names []string
	for _, n := range nodes {
		if gate.Is(n.NodeSpec) {
			names = append(names, gate.NameOf(n.Name))
		}
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("run %d has no gate %s", req.Run.Run, document.Quote(req.Gate)),
		Hint:    document.DidYouMean(req.Gate, names)}
	if len(names) == 0 {
		f.Hint = "its script asks for no approval"
	}
	return f
}

// role returns the role in which the caller decides, and refuses a caller who may not.
func (req DecisionRequest) role(r gate.Record) (string, error) {
	role, ok := req.Caller.RoleOf(r.By)
	if ok {
		return role, nil
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
		Message: fmt.Sprintf("gate %s is decided by %s", r.Gate, strings.Join(r.By, ", ")),
		Hint:    "say as whom with {{set role}}: " + strings.Join(r.By, ", ")}
	if len(req.Caller.Roles) > 0 {
		role = req.Caller.Roles[0]
		f.Message += ", not by " + strings.Join(req.Caller.Roles, ", ")
		if near := similar.Nearest(role, r.By); near != "" {
			f.Hint = fmt.Sprintf("did you mean {{set role}} %q?", near)
		}
	}
	if req.Caller.Verified {
		f.Hint = "whoever has one of these roles may; an admin of * grants them, as gate_roles in workspace " +
			req.Run.Workspace
	}
	return "", f
}

// lookedAt refuses a decision whose Digest is not that of the gate's record.
func lookedAt(req DecisionRequest, r gate.Record) error {
	if req.Digest == "" {
		return nil
	}
	switch same, ok := r.Named(req.Digest); {
	case !ok:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("{{set digest}} %s is no digest", document.Quote(req.Digest)),
			Hint:    "it is in the command that " + req.Run.Beside("approvals").String() + " prints"}
	case !same:
		return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("gate %s no longer shows what {{set digest}} %s stands for: nothing was decided",
				r.Gate, req.Digest),
			Hint: req.Run.Beside("approvals").String() + " has the command that shows it; look at it, and " +
				"decide about that"}
	}
	return nil
}

// answersTo checks the answers, and adds defaults for questions without one.
func answersTo(r gate.Record, req DecisionRequest) (map[string]string, error) {
	if !req.Approve && len(req.Answers) > 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "a rejection takes no answers",
			Hint: "leave {{set answer}} out"}
	}
	names := make([]string, len(r.Answers))
	out := map[string]string{}
	for i, q := range r.Answers {
		names[i] = q.Name
		given, ok := req.Answers[q.Name]
		if !ok {
			out[q.Name] = q.Default
			continue
		}
		a := script.Answer{Name: q.Name, Type: q.Type, Default: q.Default, Message: q.Message, Min: q.Min, Max: q.Max,
			OneOf: q.OneOf}
		value, err := a.Value(given)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("{{set answer}} %s: %s", q.Name, err),
				Hint: fmt.Sprintf("gate %s asks for %s", r.Gate, q.Wants())}
		}
		out[q.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(req.Answers)) {
		if !slices.Contains(names, name) {
			f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("gate %s does not ask for %s", r.Gate,
				document.Quote(name)), Hint: document.DidYouMean(name, names)}
			if len(names) == 0 {
				f.Hint = "leave {{set answer}} out"
			}
			return nil, f
		}
	}
	return out, nil
}

// unchanged refuses a decision if a table has changed since the gate began to wait.
func unchanged(ctx context.Context, store state.Store, run state.RunKey, r gate.Record) error {
	for _, s := range r.Shows {
		key := state.NodeKey{RunKey: state.RunKey{Workspace: run.Workspace, Run: s.Run}, Node: s.Node}
		digest, err := digestNow(ctx, store, key)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && digest == s.Digest:
		case err == nil:
			return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
				Message: fmt.Sprintf("table %s is not as gate %s has shown it: it is made again", s.Table, r.Gate),
				Hint:    "look at what waits when that is done: " + run.Beside("approvals").String()}
		default:
			f := &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("table %s, which gate %s shows, cannot be read any more: %s", s.Table, r.Gate,
					fault.Of(err).Message), Err: err,
				Hint: run.Do("stop").String() + " and " +
					run.Do("resume").String() + " let the gate ask about what there is then"}
			if s.Run == run.Run {
				f.Hint = run.Do("retry", "node", s.Node).String() +
					" makes it again, and the gate asks about that"
			}
			return f
		}
	}
	return nil
}

// digestNow returns the present digest of a table; an error if the table cannot or must not be read.
func digestNow(ctx context.Context, store state.Store, key state.NodeKey) (string, error) {
	n, err := store.Node(ctx, key)
	if err == nil && n.Status == state.Invalidated {
		err = pipeline.Voided(ctx, store, n)
	}
	if err != nil {
		return "", err
	}
	t, err := pipeline.ReadTable(ctx, store, key)
	if err != nil {
		return "", err
	}
	digest, _, _ := gate.TableDigest(t.Parts)
	return digest, nil
}

// tryAnswers loads the run's script with the answers, so that the caller is told what
// is wrong with them. If the run's sources are not all pinned, it checks nothing.
// Then the failure comes when the run goes on.
func tryAnswers(ctx context.Context, t *runtime.Runtime, key state.RunKey, d Decided) error {
	if !slices.ContainsFunc(d.Record.Answers, func(q gate.Question) bool { return d.Answers[q.Name] != q.Default }) {
		return nil
	}
	run, err := t.Store.Run(ctx, key)
	if err != nil {
		return fmt.Errorf("read run %d: %w", key.Run, err)
	}
	if pins, err := runtime.PinnedOf(ctx, t.Store, run); err != nil || pins == nil {
		return err
	}
	rec, err := t.Recall(ctx, key)
	if err != nil {
		return err
	}
	_, err = t.Answered(runtime.JobSpec{Policy: rec.Policy, Script: rec.Script, Sources: &rec.Sources,
		Run: key})(ctx, d.Answers)
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := fault.Of(err)
	return &fault.Error{Kind: f.Kind, Place: f.Place,
		Message: "nothing is decided, because the run's script cannot be read with these answers: " + err.Error(),
		Hint:    f.Hint, Err: err}
}
