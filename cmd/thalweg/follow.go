package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// attachCmd follows a run that others work on.
type attachCmd struct {
	Ref  runRef `arg:"" name:"run" optional:"" help:"Run: its number, or last; default: the latest that is not over, or the last."`
	Wait bool   `help:"Stay while the run waits for people, or is paused."`
	JSON bool   `name:"json" help:"Print events as JSON lines."`
	stateFlags
}

// Run implements kong's command.
func (c *attachCmd) Run(ctx context.Context, a *app) error {
	find := c.Ref.find
	if c.Ref == "" {
		find = a.findOpen
	}
	home, run, err := openRun(ctx, a, c.stateFlags, find)
	if err != nil {
		return err
	}
	defer home.Close()
	return a.follow(ctx, home, run.RunKey, followed{resumed: true, asJSON: c.JSON, wait: c.Wait})
}

// followed says how a run is followed.
type followed struct {
	resumed bool // it had begun before
	asJSON  bool
	wait    bool // also while it waits for people
	started runner.Started
}

// follow shows a run that others work on until it is over, and ends as run does.
func (a *app) follow(ctx context.Context, home *instance.Instance, key state.RunKey, f followed) error {
	store := home.Waiting(newLogger(a, false))
	nodes, err := store.Nodes(ctx, key)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	view := newRunView(a, f.asJSON)
	defer view.close()
	f.started.Key, f.started.Nodes, f.started.Resumed, f.started.Remote = key, nodes, f.resumed, true
	view.begin(f.started)
	events := eventsShown{view: view, sums: map[string]state.Stats{}, from: map[string]*state.NodeKey{}}
	if f.wait { // else it is said at the end
		events.asked = func(node string) (*gate.Asked, error) { return askedNow(ctx, store, key, node) }
	}
	looked := nobodyWatch{app: a, home: home, key: key}
	err = history.Follow(ctx, history.NewStream(store, key, 0),
		history.FollowOptions{Stay: f.wait, Abandoned: looked.abandoned, Every: followPause}, events.tell)
	view.close()
	if ctx.Err() != nil {
		if a.unread() { // who closed standard output has seen enough
			return errReported{exitOK}
		}
		fmt.Fprintf(a.stderr, "run %d is not followed any more, and goes on if it is not over; `%s` comes back to it\n",
			key.Run, a.command(key.Do("attach")))
		return errReported{exitInterrupted}
	}
	if err != nil {
		return err
	}
	sum, err := runner.SummaryOf(ctx, home, key)
	if err == nil && sum.Status == state.Running && home.Cluster() == nil {
		fmt.Fprintf(a.stderr, "nobody works on run %d; `%s` lets it go on\n", key.Run,
			a.command(key.Do("resume")))
		return errReported{exitStopped}
	}
	return finishRun(a, sum, err, f.asJSON)
}

// followPause is how often is looked what a run has come to.
const followPause = 200 * time.Millisecond

// eventsShown shows what is recorded of a run as what happens in it.
type eventsShown struct {
	view *runView
	sums map[string]state.Stats    // of the nodes' batches so far
	from map[string]*state.NodeKey // whose rows nodes have taken over
	// asked is what a gate asks that still waits, nil: it does no more; nil if that is not shown.
	asked func(node string) (*gate.Asked, error)
}

// askedNow is what a gate asks, if it still waits.
func askedNow(ctx context.Context, store state.Store, key state.RunKey, node string) (*gate.Asked, error) {
	n, err := store.Node(ctx, state.NodeKey{RunKey: key, Node: node})
	if err != nil {
		return nil, fmt.Errorf("read what gate %s asks: %w", gate.NameOf(node), err)
	}
	if n.Status != state.Waiting {
		return nil, nil
	}
	r, err := gate.Decode(n.Gate)
	if err != nil { // what cannot be read is not shown
		return nil, nil //nolint:nilerr // `thalweg show` says it
	}
	return &gate.Asked{Run: key.Run, Node: node, Record: r}, nil
}

func (s *eventsShown) tell(lines []history.Line) error {
	for _, l := range lines {
		e, ok := shownEvent(l.Event)
		if !ok {
			continue
		}
		switch sum := s.sums[e.Node]; e.Kind {
		case job.NodePlanned:
			delete(s.sums, e.Node)
			s.from[e.Node] = e.ReusedFrom
		case job.BatchFinished:
			sum.RowsIn, sum.RowsOut, sum.BytesOut = sum.RowsIn+e.Stats.RowsIn, sum.RowsOut+e.Stats.RowsOut,
				sum.BytesOut+e.Stats.BytesOut
			s.sums[e.Node] = sum
		case job.NodeFinished:
			e.Stats, e.ReusedFrom = sum, s.from[e.Node]
		}
		if err := s.show(e); err != nil {
			return err
		}
	}
	return nil
}

// show shows an event, and of a gate that waits what it asks and how to decide.
func (s *eventsShown) show(e job.Event) error {
	if e.Kind != job.NodeWaiting || s.asked == nil {
		s.view.observe(e)
		return nil
	}
	asked, err := s.asked(e.Node)
	if err != nil {
		return err
	}
	if asked != nil {
		e.Gate = &asked.Record
	}
	s.view.observe(e)
	if asked != nil {
		s.view.say(func(w io.Writer) {
			s.view.app.printAsked(w, e.Run.Workspace, *asked, time.Now())
			fmt.Fprintf(w, "run %d waits; it is followed until it is over, and goes on when it is decided\n", e.Run.Run)
		})
	}
	return nil
}

// shownEvent is an event of state as a worker tells it; false if people are shown nothing of it.
func shownEvent(e state.Event) (job.Event, bool) {
	out := job.Event{Run: e.RunKey, Time: e.Time, Node: e.Node, Attempt: e.Attempt, Batches: e.Batches,
		Failure: e.Failure, ReusedFrom: e.ReusedFrom}
	if e.Batch != nil {
		out.Batch = *e.Batch
	}
	out.Stats = state.Stats{RowsIn: e.RowsIn, RowsOut: e.RowsOut, BytesOut: e.BytesOut}
	switch {
	case e.Kind == state.NodePlanned:
		out.Kind = job.NodePlanned
	case e.Kind == state.BatchClaimed:
		out.Kind = job.BatchStarted
	case e.Kind == state.BatchEnded && e.Status == state.Succeeded:
		out.Kind = job.BatchFinished
	case e.Kind == state.BatchEnded && e.Status == state.Released:
		out.Kind = job.BatchReleased
	case e.Kind == state.BatchEnded && e.Status == state.Lost:
		out.Kind = job.BatchLost
	case e.Kind == state.BatchEnded && e.Failure != nil:
		out.Kind = job.BatchFailed
		if e.Failure.Again {
			out.Kind = job.BatchRetried
		}
	case e.Kind == state.NodeMoved && e.Status == state.Succeeded:
		out.Kind = job.NodeFinished
	case e.Kind == state.NodeMoved && e.Status == state.Waiting && gate.Is(state.NodeSpec{Name: e.Node, Kind: gate.Kind}):
		out.Kind = job.NodeWaiting
	default:
		return out, false
	}
	return out, true
}

// nobodyWatch says, now and then, that nobody takes a run.
type nobodyWatch struct {
	app  *app
	home *instance.Instance
	key  state.RunKey
	next time.Time // when it is looked again
	said string
}

// nobodyEvery is how often it is looked who works on a run; a run that is taken at once is not
// called alone before.
const nobodyEvery = 2 * time.Second

// abandoned implements history.FollowOptions: a run of a cluster is not left because
// nobody has come yet, only said to be alone.
func (n *nobodyWatch) abandoned(run state.Run) bool {
	if n.home.Cluster() == nil {
		return !n.home.AtWork(run.RunKey)
	}
	now := time.Now()
	if n.next.IsZero() {
		n.next = now.Add(nobodyEvery)
	}
	if now.Before(n.next) {
		return false
	}
	n.next = now.Add(nobodyEvery)
	ctx, cancel := context.WithTimeout(context.Background(), nobodyTimeout)
	defer cancel()
	text, hint, err := registry.NobodyTakes(ctx, n.home, n.key)
	if err == nil && text == "" {
		n.said = ""
	}
	if err != nil || text == "" || text == n.said {
		return false
	}
	n.said = text
	fmt.Fprintf(n.app.stderr, "run %d waits: %s\n  hint: %s\n", n.key.Run, n.app.known.Text(text), hint)
	return false
}

const nobodyTimeout = 5 * time.Second

// submit begins a run of a cluster, or lets one go on, and follows it.
func (w *workplace) submit(ctx context.Context, a *app, flags engineFlags, asJSON bool, opts runner.Options) error {
	opts = w.equip(a, flags, opts)
	key, warnings, err := runner.Submit(ctx, w.home, opts)
	if err != nil {
		if asJSON {
			if perr := printJSON(a.stdout, neverBegan(ctx, opts.Workspace, err)); perr != nil {
				return errors.Join(err, perr)
			}
		}
		return err
	}
	if !opts.Resume && !opts.Wait {
		if err := a.awaitTaken(ctx, w.home, key); err != nil {
			if asJSON {
				err = errors.Join(err, printJSON(a.stdout, neverBegan(ctx, opts.Workspace, err)))
			}
			return err
		}
	}
	if w.detach {
		a.printDiagnostics(warnings)
		if asJSON {
			return printJSON(a.stdout, submitted{Event: "run_submitted", Workspace: key.Workspace, Run: key.Run})
		}
		fmt.Fprintf(a.stdout, "run %d submitted in workspace %s; `%s` follows it\n", key.Run, key.Workspace,
			a.command(key.Do("attach")))
		return nil
	}
	return a.follow(ctx, w.home, key, followed{resumed: opts.Resume, asJSON: asJSON, wait: opts.Wait,
		started: runner.Started{Warnings: warnings, Budget: budget.Budget{}}})
}

// awaitTaken waits until the workers have looked at a new run. Where none of them
// can work on it, it is stopped before anything of it is done.
func (a *app) awaitTaken(ctx context.Context, home *instance.Instance, key state.RunKey) error {
	c, err := registry.AwaitCandidates(ctx, home, key, newLogger(a, false))
	if ctx.Err() != nil {
		return nil // it goes on, as one does that nobody follows
	}
	if err != nil { // the run was submitted, whoever takes it
		fmt.Fprintf(a.stderr, "it could not be seen whether a worker takes run %d: %v\n", key.Run, err)
		return nil
	}
	reasons := c.Reasons()
	for i, text := range reasons {
		reasons[i] = a.known.Text(text)
	}
	if !c.None() {
		for _, text := range reasons {
			fmt.Fprintf(a.stderr, "cannot work on run %d: %s\n", key.Run, text)
		}
		return nil
	}
	if _, err := control.Stop(ctx, home, key,
		a.caller().Mark(shortReason("no worker can take it: "+strings.Join(reasons, "; ")))); err != nil {
		return fmt.Errorf("stop run %d, which no worker can take: %w", key.Run, err)
	}
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("no worker can take run %d, so it is stopped:\n%s",
		key.Run, strings.Join(reasons, "\n")),
		Hint: "mend these, or start a worker that can; with --wait the run waits for one"}
}

// reasonMost is how many characters of why no worker takes a run are kept as the reason of its end.
const reasonMost = 400

func shortReason(text string) string {
	if r := []rune(text); len(r) > reasonMost {
		return string(r[:reasonMost]) + "…"
	}
	return text
}

// submitted is the JSON form of a run that was submitted and not followed.
type submitted struct {
	Event     string `json:"event"`
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
}
