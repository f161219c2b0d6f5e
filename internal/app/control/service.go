package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/gc"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Service gives orders to the runs of one instance, each in the name of a caller.
//
// Orders that remove or invalidate something can be previewed. A preview has a token. An
// order with that token does what was previewed, or fails with fault.Conflict.
type Service struct {
	Home    *instance.Instance
	Process runtime.Process // what orders may use
}

// What of a run is done again: see package orders.
type (
	RedoSelection = orders.RedoSelection
	RedoBatches   = orders.Batches
)

// Preview says what an order would do.
type Preview[T any] struct {
	Would T
	Token string // digest of Would
}

// PreviewOf returns a preview with its token.
func PreviewOf[T any](would T) (Preview[T], error) {
	text, err := view.JSON(would)
	sum := sha256.Sum256(text)
	return Preview[T]{would, hex.EncodeToString(sum[:])}, err
}

// confirmed refuses an order if its preview has changed since token was given; "": there was no preview.
func confirmed[T any](token string, preview func() (Preview[T], error)) error {
	if token == "" {
		return nil
	}
	now, err := preview()
	if err == nil && now.Token != token {
		err = &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nothing was done: what it would do has changed since it was shown",
			Hint:    "look at it again, and order it again"}
	}
	return err
}

// mark returns what is recorded of an order: by whom, when and why, without secrets.
func (s *Service) mark(by caller.Caller, reason string) state.Mark {
	return by.Mark(s.Process.Known.Text(reason))
}

// in returns s.Process with a caller.
func (s *Service) in(by caller.Caller) runtime.Process {
	p := s.Process
	p.Caller = by
	return p
}

// Stop stops a run in all processes that work on it: see StopBound.
func (s *Service) Stop(ctx context.Context, by caller.Caller, key state.RunKey, reason string) (view.Stopped, error) {
	out, err := Stop(ctx, s.Home, key, s.mark(by, reason))
	return view.Stopped{Workspace: key.Workspace, Run: key.Run, Before: out.Before, Status: out.After,
		AtWork: out.AtWork, MS: out.Took.Milliseconds(), Took: out.Took}, err
}

// Pause pauses a run: claimed batches are finished, no others are begun.
func (s *Service) Pause(ctx context.Context, by caller.Caller, key state.RunKey, reason string) (view.Paused, error) {
	status, inFlight, err := Pause(ctx, s.Home, key, s.mark(by, reason))
	return view.Paused{Workspace: key.Workspace, Run: key.Run, Status: status, InFlight: inFlight}, err
}

// PreviewOrder says what a stop, pause or resume of a run would do.
func (s *Service) PreviewOrder(ctx context.Context, key state.RunKey, kind string) (view.Outlook, error) {
	kinds := map[string]state.CommandKind{"stop": state.CommandStop, "pause": state.CommandPause,
		"resume": state.CommandReopen}
	command, ok := kinds[kind]
	if !ok {
		return view.Outlook{}, fault.New(fault.Bug, "a preview of %s", kind)
	}
	out, err := orders.Preview(ctx, s.Home.State, key, command)
	at := s.Home.AtWork(key) && out.Before == state.Running // then it goes on already
	if err == nil && command == state.CommandReopen && !at {
		err = runner.PlanResume(ctx, s.Home, key, s.Process)
	}
	return out, err
}

// Take records that a caller looks after the failure of a run, and says so with the comment.
func (s *Service) Take(ctx context.Context, by caller.Caller, key state.RunKey, comment string) (view.Taken, error) {
	if err := TakeReason(comment); err != nil {
		return view.Taken{}, err
	}
	mark := s.mark(by, comment)
	before, err := orders.Take(ctx, s.Home.Control(), key, mark)
	if err != nil {
		return view.Taken{}, err
	}
	return view.Taken{Workspace: key.Workspace, Run: key.Run, Taken: &mark, Before: before}, nil
}

// Given reports whether a run has had an order with a caller's Request.
func (s *Service) Given(ctx context.Context, key state.RunKey, request string) (bool, error) {
	return orders.Given(ctx, s.Home.State, key, request)
}

// PreviewInvalidation says what would be invalid: a run, or nodes of it.
func (s *Service) PreviewInvalidation(ctx context.Context, key state.RunKey,
	nodes []string) (Preview[view.Invalidated], error) {
	would, err := s.invalidate(ctx, key, InvalidateOptions{Nodes: nodes, DryRun: true})
	if err != nil {
		return Preview[view.Invalidated]{}, err
	}
	return PreviewOf(would)
}

// Invalidate declares a run, or nodes of it, invalid: no run reads its tables
// any more. token is that of a preview; "": without one.
func (s *Service) Invalidate(ctx context.Context, by caller.Caller, key state.RunKey, nodes []string,
	reason, token string) (view.Invalidated, error) {
	if err := InvalidationReason(reason); err != nil {
		return view.Invalidated{}, err
	}
	if err := confirmed(token, func() (Preview[view.Invalidated], error) {
		return s.PreviewInvalidation(ctx, key, nodes)
	}); err != nil {
		return view.Invalidated{}, err
	}
	return s.invalidate(ctx, key, InvalidateOptions{Nodes: nodes, By: s.mark(by, reason)})
}

func (s *Service) invalidate(ctx context.Context, key state.RunKey, o InvalidateOptions) (view.Invalidated, error) {
	out, err := Invalidate(ctx, s.Home, key, o)
	said := view.Invalidated{Workspace: key.Workspace, Run: key.Run, DryRun: o.DryRun, Nodes: out.Nodes,
		Files: []string{}, Made: append([]orders.Touched{}, out.Made...), Origins: []state.NodeKey{}, Lost: []view.LostTable{}}
	for _, f := range out.Files {
		said.Files = append(said.Files, f.URL)
	}
	for _, n := range out.Lost {
		tally, failed := s.Home.State.Tally(ctx, n.NodeKey)
		if failed != nil && err == nil {
			err = fmt.Errorf("read what %s measured: %w", n.Name, failed)
		}
		said.Lost = append(said.Lost, view.LostTable{Node: n.Name, Table: n.Table, Rows: n.RowsOut, Bytes: n.BytesOut,
			Elapsed: tally.Stats.Elapsed})
	}
	for _, n := range out.Origin {
		said.Origins = append(said.Origins, *n.ReusedFrom)
	}
	return said, err
}

// PreviewDrop says what dropping runs would mean.
func (s *Service) PreviewDrop(ctx context.Context, keys []state.RunKey) (Preview[[]view.Dropped], error) {
	would, err := s.drop(ctx, keys, DropOptions{DryRun: true})
	if err != nil {
		return Preview[[]view.Dropped]{Would: would}, err
	}
	return PreviewOf(would)
}

// Drop drops runs: nobody reads, continues or lists them any more. Beside an
// error it returns those that were dropped.
func (s *Service) Drop(ctx context.Context, by caller.Caller, keys []state.RunKey,
	reason, token string) ([]view.Dropped, error) {
	if err := DropReason(reason); err != nil {
		return nil, err
	}
	if err := confirmed(token, func() (Preview[[]view.Dropped], error) {
		return s.PreviewDrop(ctx, keys)
	}); err != nil {
		return nil, err
	}
	return s.drop(ctx, keys, DropOptions{By: s.mark(by, reason)})
}

func (s *Service) drop(ctx context.Context, keys []state.RunKey, o DropOptions) ([]view.Dropped, error) {
	out, err := Drop(ctx, s.Home, keys, o)
	said := []view.Dropped{}
	for _, d := range out {
		said = append(said, view.Dropped{Workspace: d.Run.Workspace, Run: d.Run.Run, DryRun: o.DryRun,
			Nodes: append([]string{}, d.Nodes...), Bytes: d.Bytes, Made: append([]orders.Touched{}, d.Made...)})
	}
	return said, err
}

// needReason refuses an order without a reason. what names the order, whom says who is shown the reason.
func needReason(reason, what, whom string) error {
	if strings.TrimSpace(reason) != "" {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: what + " needs a reason", Hint: "{{set reason=TEXT}} is " + whom}
}

// InvalidationReason refuses an invalidation without a reason.
func InvalidationReason(reason string) error {
	return needReason(reason, "an invalidation", "shown to everybody who wants to read the tables")
}

// TakeReason refuses to take a failure without a comment.
func TakeReason(comment string) error {
	if strings.TrimSpace(comment) != "" {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: "taking a failure needs a comment",
		Hint: "{{set comment=TEXT}} says to all others what you do about it"}
}

// DropReason refuses to drop runs without a reason.
func DropReason(reason string) error { return needReason(reason, "dropping a run", "recorded with it") }

// Limits say which runs a collection drops.
type Limits = gc.Limits

// PreviewCollection says what a collection would remove in a workspace. The token covers
// only the runs that would be dropped, because the rest changes while runs are at work.
func (s *Service) PreviewCollection(ctx context.Context, workspace string,
	limits Limits) (Preview[view.Collected], error) {
	out, err := s.collect(ctx, CollectOptions{Process: s.Process, Workspace: workspace, Limits: limits, DryRun: true})
	if err != nil {
		return Preview[view.Collected]{}, err
	}
	drops, err := PreviewOf(out.Drops)
	return Preview[view.Collected]{Would: out, Token: drops.Token}, err
}

// Collect removes what nobody needs any more, and drops runs that are over the limits.
func (s *Service) Collect(ctx context.Context, by caller.Caller, workspace string, limits Limits,
	reason, token string) (view.Collected, error) {
	if err := confirmed(token, func() (Preview[view.Collected], error) {
		return s.PreviewCollection(ctx, workspace, limits)
	}); err != nil {
		return view.Collected{}, err
	}
	return s.collect(ctx, CollectOptions{Process: s.in(by), Workspace: workspace, Limits: limits,
		By: s.mark(by, reason)})
}

func (s *Service) collect(ctx context.Context, o CollectOptions) (view.Collected, error) {
	out, err := Collect(ctx, s.Home, o)
	return view.Collected{Workspace: o.Workspace, DryRun: o.DryRun, Collection: out}, err
}

// Asking is a gate that waits, and the run that waits there.
type Asking struct {
	view.GateAsked
	Of state.Run
}

// Approvals lists what waits for a decision in a workspace.
func (s *Service) Approvals(ctx context.Context, workspace string) ([]Asking, error) {
	asked, err := gate.Waiting(ctx, s.Home.State, workspace, time.Now())
	if err != nil {
		return nil, err
	}
	out := make([]Asking, len(asked))
	for i, g := range asked {
		run, err := s.Home.State.Run(ctx, state.RunKey{Workspace: workspace, Run: g.Run})
		if err != nil {
			return nil, fmt.Errorf("read run %d, which waits: %w", g.Run, err)
		}
		out[i] = Asking{g, run}
	}
	return out, nil
}

// Decide decides about a gate in a caller's name.
func (s *Service) Decide(ctx context.Context, by caller.Caller, req DecisionRequest) (Decided, error) {
	req.Process = s.in(by)
	req.Comment = s.Process.Known.Text(req.Comment)
	return Decide(ctx, s.Home, req)
}

// PlanRetry finds out what a retry of a run does, and does none of it.
func (s *Service) PlanRetry(ctx context.Context, by caller.Caller, key state.RunKey,
	again orders.RedoSelection) (runner.Retry, error) {
	return runner.PlanRetry(ctx, s.Home, key, runner.RetryOptions{Again: again, Process: s.in(by)})
}

// LastTime returns planned nodes with the rows that those that are computed wrote in a run, and the time that it took.
func (s *Service) LastTime(ctx context.Context, key state.RunKey, planned []view.PlannedNode) ([]view.PlannedNode, error) {
	nodes, err := s.Home.State.Nodes(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	for i, p := range planned {
		at := slices.IndexFunc(nodes, func(n state.Node) bool { return n.Name == p.Node })
		if at < 0 || p.From != nil {
			continue
		}
		tally, err := s.Home.State.Tally(ctx, nodes[at].NodeKey)
		if err != nil {
			return nil, fmt.Errorf("read what %s measured: %w", p.Node, err)
		}
		planned[i].Rows, planned[i].Elapsed = nodes[at].RowsOut, tally.Stats.Elapsed
	}
	return planned, nil
}
