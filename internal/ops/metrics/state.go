package metrics

import (
	"context"
	"errors"
	"time"

	"thalweg/internal/store/state"
)

// stateStore measures each call of a state.
type stateStore struct {
	state.Store
	m      *Metrics
	claims claims
}

// State measures a state.
func (m *Metrics) State(s state.Store) state.Store {
	return &stateStore{Store: s, m: m, claims: claims{up: map[claimed]bool{}}}
}

// Outcomes of calls.
const (
	done    = "done"
	lost    = "lost"
	unknown = "unknown"
)

// call counts one that began then.
func (s *stateStore) call(operation string, began time.Time, err *error) {
	outcome := failed
	switch e := *err; {
	case e == nil:
		outcome = done
	case state.Stray(e), errors.Is(e, state.ErrLeaseLost), errors.Is(e, state.ErrConflict), errors.Is(e, state.ErrHeld):
		outcome = lost
	case errors.Is(e, state.ErrUnknown):
		outcome = unknown
	}
	s.m.stateCalls.WithLabelValues(operation, outcome).Inc()
	s.m.stateSeconds.WithLabelValues(operation).Observe(time.Since(began).Seconds())
}

// ends is a call that ends a claim.
func (s *stateStore) ends(operation string, began time.Time, c state.Claim, err *error) {
	s.call(operation, began, err)
	s.landed(c, errors.Is(*err, state.ErrLeaseLost))
}

// CreateRun implements state.Store.
func (s *stateStore) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (_ state.RunKey, err error) {
	defer s.call("create_run", time.Now(), &err)
	return s.Store.CreateRun(ctx, run, nodes, blobs...)
}

// Run implements state.Store.
func (s *stateStore) Run(ctx context.Context, key state.RunKey) (_ state.Run, err error) {
	defer s.call("run", time.Now(), &err)
	return s.Store.Run(ctx, key)
}

// Runs implements state.Store.
func (s *stateStore) Runs(ctx context.Context, workspace string, page state.Page) (_ []state.Run, _ int64, err error) {
	defer s.call("runs", time.Now(), &err)
	return s.Store.Runs(ctx, workspace, page)
}

// Workspaces implements state.Store.
func (s *stateStore) Workspaces(ctx context.Context) (_ []string, err error) {
	defer s.call("workspaces", time.Now(), &err)
	return s.Store.Workspaces(ctx)
}

// Blob implements state.Store.
func (s *stateStore) Blob(ctx context.Context, digest string) (_ []byte, err error) {
	defer s.call("blob", time.Now(), &err)
	return s.Store.Blob(ctx, digest)
}

// PutNote implements state.Store.
func (s *stateStore) PutNote(ctx context.Context, workspace string, n state.Note) (err error) {
	defer s.call("put_note", time.Now(), &err)
	return s.Store.PutNote(ctx, workspace, n)
}

// RemoveNote implements state.Store.
func (s *stateStore) RemoveNote(ctx context.Context, workspace string, n state.Note) (err error) {
	defer s.call("remove_note", time.Now(), &err)
	return s.Store.RemoveNote(ctx, workspace, n)
}

// Notes implements state.Store.
func (s *stateStore) Notes(ctx context.Context, workspace, topic, after string, limit int) (_ []state.Note, err error) {
	defer s.call("notes", time.Now(), &err)
	return s.Store.Notes(ctx, workspace, topic, after, limit)
}

// BeginOrder implements state.Store.
func (s *stateStore) BeginOrder(ctx context.Context, key state.RunKey, o state.Order) (err error) {
	defer s.call("begin_order", time.Now(), &err)
	return s.Store.BeginOrder(ctx, key, o)
}

// Hear implements state.Store.
func (s *stateStore) Hear(ctx context.Context, key state.NodeKey, o state.Order) (err error) {
	defer s.call("hear", time.Now(), &err)
	return s.Store.Hear(ctx, key, o)
}

// EndOrder implements state.Store.
func (s *stateStore) EndOrder(ctx context.Context, key state.RunKey, epoch int64, now time.Time) (err error) {
	defer s.call("end_order", time.Now(), &err)
	return s.Store.EndOrder(ctx, key, epoch, now)
}

// CompleteRun implements state.Store.
func (s *stateStore) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string,
	now time.Time) (err error) {
	defer s.call("complete_run", time.Now(), &err)
	return s.Store.CompleteRun(ctx, key, epoch, actor, now)
}

// Acquire implements state.Store.
func (s *stateStore) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (_ state.Role, err error) {
	defer s.call("acquire", time.Now(), &err)
	return s.Store.Acquire(ctx, key, role, owner, now, until)
}

// Resign implements state.Store.
func (s *stateStore) Resign(ctx context.Context, key state.RunKey, role, owner string) (err error) {
	defer s.call("resign", time.Now(), &err)
	return s.Store.Resign(ctx, key, role, owner)
}

// Nodes implements state.Store.
func (s *stateStore) Nodes(ctx context.Context, key state.RunKey) (_ []state.Node, err error) {
	defer s.call("nodes", time.Now(), &err)
	return s.Store.Nodes(ctx, key)
}

// Node implements state.Store.
func (s *stateStore) Node(ctx context.Context, key state.NodeKey) (_ state.Node, err error) {
	defer s.call("node", time.Now(), &err)
	return s.Store.Node(ctx, key)
}

// StagePlan implements state.Store.
func (s *stateStore) StagePlan(ctx context.Context, key state.NodeKey, digest string,
	piece state.PlanPiece) (err error) {
	defer s.call("stage_plan", time.Now(), &err)
	return s.Store.StagePlan(ctx, key, digest, piece)
}

// FlipPlan implements state.Store.
func (s *stateStore) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (_ string, err error) {
	defer s.call("flip_plan", time.Now(), &err)
	return s.Store.FlipPlan(ctx, key, f)
}

// MoveNode implements state.Store.
func (s *stateStore) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) (err error) {
	defer s.call("move_node", time.Now(), &err)
	return s.Store.MoveNode(ctx, key, m)
}

// Purge implements state.Store.
func (s *stateStore) Purge(ctx context.Context, key state.NodeKey) (err error) {
	defer s.call("purge", time.Now(), &err)
	return s.Store.Purge(ctx, key)
}

// Batch implements state.Store.
func (s *stateStore) Batch(ctx context.Context, key state.BatchKey) (_ state.Batch, _ []state.Attempt, err error) {
	defer s.call("batch", time.Now(), &err)
	return s.Store.Batch(ctx, key)
}

// Batches implements state.Store.
func (s *stateStore) Batches(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Batch, _ int64,
	err error) {
	defer s.call("batches", time.Now(), &err)
	return s.Store.Batches(ctx, key, page)
}

// Unsettled implements state.Store.
func (s *stateStore) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Batch, _ int64,
	err error) {
	defer s.call("unsettled", time.Now(), &err)
	return s.Store.Unsettled(ctx, key, page)
}

// Specs implements state.Store.
func (s *stateStore) Specs(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.BatchSpec, _ int64,
	err error) {
	defer s.call("specs", time.Now(), &err)
	return s.Store.Specs(ctx, key, page)
}

// Inputs implements state.Store.
func (s *stateStore) Inputs(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Input, _ int64,
	err error) {
	defer s.call("inputs", time.Now(), &err)
	return s.Store.Inputs(ctx, key, page)
}

// Offers implements state.Store.
func (s *stateStore) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) (_ []state.Offer,
	_ int64, err error) {
	defer s.call("offers", time.Now(), &err)
	return s.Store.Offers(ctx, key, now, page)
}

// Claim implements state.Store.
func (s *stateStore) Claim(ctx context.Context, b state.Bid) (c state.Claim, err error) {
	defer s.call("claim", time.Now(), &err)
	if c, err = s.Store.Claim(ctx, b); err == nil {
		s.claimed(c)
	}
	return c, err
}

// Extend implements state.Store.
func (s *stateStore) Extend(ctx context.Context, c state.Claim, lease time.Time) (err error) {
	defer s.call("extend", time.Now(), &err)
	if err = s.Store.Extend(ctx, c, lease); errors.Is(err, state.ErrLeaseLost) {
		s.landed(c, true)
	}
	return err
}

// Announce implements state.Store.
func (s *stateStore) Announce(ctx context.Context, c state.Claim, publications []state.Publication,
	lease time.Time) (err error) {
	defer s.call("announce", time.Now(), &err)
	return s.Store.Announce(ctx, c, publications, lease)
}

// Commit implements state.Store.
func (s *stateStore) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) (err error) {
	defer s.ends("commit", time.Now(), c, &err)
	return s.Store.Commit(ctx, c, out, now)
}

// Fail implements state.Store.
func (s *stateStore) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) (err error) {
	defer s.ends("fail", time.Now(), c, &err)
	return s.Store.Fail(ctx, c, failure, out, now)
}

// Retry implements state.Store.
func (s *stateStore) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) (err error) {
	defer s.ends("retry", time.Now(), c, &err)
	return s.Store.Retry(ctx, c, failure, stats, notBefore, now)
}

// Release implements state.Store.
func (s *stateStore) Release(ctx context.Context, c state.Claim, now time.Time) (err error) {
	defer s.ends("release", time.Now(), c, &err)
	return s.Store.Release(ctx, c, now)
}

// Attempts implements state.Store.
func (s *stateStore) Attempts(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Attempt, _ int64,
	err error) {
	defer s.call("attempts", time.Now(), &err)
	return s.Store.Attempts(ctx, key, page)
}

// Publications implements state.Store.
func (s *stateStore) Publications(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Publication,
	_ int64, err error) {
	defer s.call("publications", time.Now(), &err)
	return s.Store.Publications(ctx, key, page)
}

// Forget implements state.Store.
func (s *stateStore) Forget(ctx context.Context, key state.BatchKey, attempt int) (err error) {
	defer s.call("forget", time.Now(), &err)
	return s.Store.Forget(ctx, key, attempt)
}

// Parts implements state.Store.
func (s *stateStore) Parts(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.Part, _ int64,
	err error) {
	defer s.call("parts", time.Now(), &err)
	return s.Store.Parts(ctx, key, page)
}

// Checks implements state.Store.
func (s *stateStore) Checks(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.CheckResult, _ int64,
	err error) {
	defer s.call("checks", time.Now(), &err)
	return s.Store.Checks(ctx, key, page)
}

// Files implements state.Store.
func (s *stateStore) Files(ctx context.Context, key state.NodeKey, page state.Page) (_ []state.File, _ int64,
	err error) {
	defer s.call("files", time.Now(), &err)
	return s.Store.Files(ctx, key, page)
}

// Tally implements state.Store.
func (s *stateStore) Tally(ctx context.Context, key state.NodeKey) (_ state.Tally, err error) {
	defer s.call("tally", time.Now(), &err)
	return s.Store.Tally(ctx, key)
}

// Events implements state.Store.
func (s *stateStore) Events(ctx context.Context, key state.NodeKey, after int64, limit int) (_ []state.Event,
	err error) {
	defer s.call("events", time.Now(), &err)
	return s.Store.Events(ctx, key, after, limit)
}

// Sequence implements state.Store.
func (s *stateStore) Sequence(ctx context.Context, key state.RunKey, page state.Page) (_ []state.Span, _ int64,
	err error) {
	defer s.call("sequence", time.Now(), &err)
	return s.Store.Sequence(ctx, key, page)
}

// ExtendSequence implements state.Store.
func (s *stateStore) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) (err error) {
	defer s.call("extend_sequence", time.Now(), &err)
	return s.Store.ExtendSequence(ctx, key, at, spans)
}
