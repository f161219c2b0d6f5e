package control

import (
	"context"
	"crypto/rand"
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
	Digest  string            // of what the decider has looked at, or its first digits; "": of what the gate shows now
	Answers map[string]string // of the command line
	Shown   func(gate.Record) // called with what is decided on, before it is; may be nil
}

// Decided is a decision that stands.
type Decided struct {
	Record  gate.Record
	Answers map[string]string // all of them
	AtWork  bool              // a process works on the run, and sees the decision
	Paused  bool              // the run is, and goes on when somebody lets it
}

// Decide approves or rejects a gate that waits, bound to what it shows now. A
// decision that cannot be made, or does not stand, is an error that says why.
func Decide(ctx context.Context, home *instance.Instance, w DecisionRequest) (out Decided, err error) {
	w.Process = w.WithDefaults()
	t, err := runtime.New(home, w.Process)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	n, err := waitingGate(ctx, t, w)
	if err != nil {
		return out, err
	}
	if out.Record, err = gate.Decode(n.Gate); err != nil {
		return out, err
	}
	role, err := w.role(out.Record)
	if err != nil {
		return out, err
	}
	if err := lookedAt(w, out.Record); err != nil {
		return out, err
	}
	if out.Answers, err = answersTo(out.Record, w); err != nil {
		return out, err
	}
	if w.Shown != nil {
		w.Shown(out.Record)
	}
	if err := unchanged(ctx, t.Store, w.Run, out.Record); err != nil {
		return out, err
	}
	if w.Approve {
		if err := tryAnswers(ctx, t, w.Run, out); err != nil {
			return out, err
		}
	}
	if w.Checkpoint != nil {
		w.Checkpoint(job.Decided)
	}
	order := gate.DecisionRequest{Approve: w.Approve, Mark: w.Caller.Mark(w.Comment), Role: role,
		RoleVerified: w.Caller.Verified, Digest: out.Record.Digest,
		Token: rand.Text()}
	if w.Approve {
		order.Answers = out.Answers
	}
	if err := gate.Decide(ctx, t.Store, n.NodeKey, order); err != nil {
		return out, err
	}
	home.Ordered(ctx, w.Run)
	out.AtWork = home.AtWork(w.Run)
	run, err := t.Store.Run(ctx, w.Run)
	out.Paused = err == nil && run.Status == state.Paused // the decision stands, whatever is known of the run
	return out, nil
}

// waitingGate finds the gate, and refuses one that does not wait. One whose
// time is over is rejected by looking at it.
func waitingGate(ctx context.Context, t *runtime.Runtime, w DecisionRequest) (state.Node, error) {
	run, err := t.Store.Run(ctx, w.Run)
	if errors.Is(err, state.ErrNotFound) {
		return state.Node{}, instance.RunNotFound(w.Run)
	}
	if err != nil {
		return state.Node{}, fmt.Errorf("read run %d: %w", w.Run.Run, err)
	}
	if err := state.Carry(ctx, t.Store, run, time.Now()); err != nil {
		return state.Node{}, fmt.Errorf("carry out what was ordered of run %d: %w", w.Run.Run, err)
	}
	nodes, err := t.Store.Nodes(ctx, w.Run)
	if err != nil {
		return state.Node{}, fmt.Errorf("read the nodes of run %d: %w", w.Run.Run, err)
	}
	name := strings.TrimPrefix(w.Gate, gate.Prefix)
	i := slices.IndexFunc(nodes, func(n state.Node) bool { return gate.Is(n.NodeSpec) && gate.NameOf(n.Name) == name })
	if i < 0 {
		return state.Node{}, noGate(w, nodes)
	}
	n := nodes[i]
	over, err := gate.Expire(ctx, t.Store, n, w.Caller.Actor, t.Instance.Clock.Now())
	if err != nil {
		return n, err
	}
	if over {
		if n, err = t.Store.Node(ctx, n.NodeKey); err != nil {
			return n, fmt.Errorf("read gate %s: %w", name, err)
		}
		if n.Status == state.Failed {
			if err := gate.Fail(ctx, t.Store, n, w.Caller.Actor, t.Instance.Clock.Now()); err != nil {
				return n, err
			}
		}
	}
	if n.Status != state.Waiting {
		return n, gate.Void(n, n.GateDigest)
	}
	return n, nil
}

func noGate(w DecisionRequest, nodes []state.Node) error {
	var names []string
	for _, n := range nodes {
		if gate.Is(n.NodeSpec) {
			names = append(names, gate.NameOf(n.Name))
		}
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("run %d has no gate %s", w.Run.Run, document.Quote(w.Gate)),
		Hint:    document.DidYouMean(w.Gate, names)}
	if len(names) == 0 {
		f.Hint = "its script asks for no approval"
	}
	return f
}

// role returns the role in which the caller decides, and refuses a caller who may not.
func (w DecisionRequest) role(r gate.Record) (string, error) {
	role, ok := w.Caller.RoleOf(r.By)
	if ok {
		return role, nil
	}
	f := &fault.Error{Kind: fault.Script, Code: fault.Forbidden,
		Message: fmt.Sprintf("gate %s is decided by %s", r.Gate, strings.Join(r.By, ", ")),
		Hint:    "say as whom with {{set role}}: " + strings.Join(r.By, ", ")}
	if len(w.Caller.Roles) > 0 {
		role = w.Caller.Roles[0]
		f.Message += ", not by " + strings.Join(w.Caller.Roles, ", ")
		if near := similar.Nearest(role, r.By); near != "" {
			f.Hint = fmt.Sprintf("did you mean {{set role}} %q?", near)
		}
	}
	return "", f
}

// lookedAt refuses a decision about something else than the gate shows now.
func lookedAt(w DecisionRequest, r gate.Record) error {
	if w.Digest == "" {
		return nil
	}
	switch same, ok := r.Named(w.Digest); {
	case !ok:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("{{set digest}} %s is no digest", document.Quote(w.Digest)),
			Hint:    "it is in the command that " + w.Run.Beside("approvals").String() + " prints"}
	case !same:
		return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: fmt.Sprintf("gate %s no longer shows what {{set digest}} %s stands for: nothing was decided",
				r.Gate, w.Digest),
			Hint: w.Run.Beside("approvals").String() + " has the command that shows it; look at it, and " +
				"decide about that"}
	}
	return nil
}

// answersTo checks what is answered, and adds the defaults of what is not.
func answersTo(r gate.Record, w DecisionRequest) (map[string]string, error) {
	if !w.Approve && len(w.Answers) > 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "a rejection takes no answers",
			Hint: "leave {{set answer}} out"}
	}
	names := make([]string, len(r.Answers))
	out := map[string]string{}
	for i, q := range r.Answers {
		names[i] = q.Name
		given, ok := w.Answers[q.Name]
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
	for _, name := range slices.Sorted(maps.Keys(w.Answers)) {
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

// unchanged refuses to decide about tables that are not as they were shown.
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

// digestNow is of a table as it is; an error if nobody may read it.
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

// tryAnswers reads the run's script with the answers, so that who gives them is
// told what is wrong with them. A run that is not all pinned is told when it goes on.
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
	_, err = t.Answered(runtime.JobSpec{Script: rec.Script, Sources: &rec.Sources, Run: key})(ctx, d.Answers)
	if err == nil || ctx.Err() != nil {
		return err
	}
	f := fault.Of(err)
	return &fault.Error{Kind: f.Kind, Place: f.Place,
		Message: "nothing is decided, because the run's script cannot be read with these answers: " + err.Error(),
		Hint:    f.Hint, Err: err}
}
