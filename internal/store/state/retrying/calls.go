package retrying

import (
	"context"
	"time"

	"thalweg/internal/store/state"
)

// CreateRun implements state.Store. Only a run with a token can be repeated.
func (s *Store) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	if run.Token == "" {
		return s.Store.CreateRun(ctx, run, nodes, blobs...)
	}
	return get(ctx, s, "create run", func() (state.RunKey, error) {
		return s.Store.CreateRun(ctx, run, nodes, blobs...)
	})
}

// Run implements state.Store.
func (s *Store) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	return get(ctx, s, "run", func() (state.Run, error) { return s.Store.Run(ctx, key) })
}

// Runs implements state.Store.
func (s *Store) Runs(ctx context.Context, workspace string, page state.Page) ([]state.Run, int64, error) {
	return list(ctx, s, "runs", func() ([]state.Run, int64, error) { return s.Store.Runs(ctx, workspace, page) })
}

// Blob implements state.Store.
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	return get(ctx, s, "blob", func() ([]byte, error) { return s.Store.Blob(ctx, digest) })
}

// PutNote implements state.Store.
func (s *Store) PutNote(ctx context.Context, workspace string, n state.Note) error {
	return again(ctx, s, "put note", func() error { return s.Store.PutNote(ctx, workspace, n) })
}

// RemoveNote implements state.Store.
func (s *Store) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	return again(ctx, s, "remove note", func() error { return s.Store.RemoveNote(ctx, workspace, n) })
}

// Notes implements state.Store.
func (s *Store) Notes(ctx context.Context, workspace, topic, after string, limit int) ([]state.Note, error) {
	return get(ctx, s, "notes", func() ([]state.Note, error) {
		return s.Store.Notes(ctx, workspace, topic, after, limit)
	})
}

// Purge implements state.Store.
func (s *Store) Purge(ctx context.Context, key state.NodeKey) error {
	return again(ctx, s, "purge", func() error { return s.Store.Purge(ctx, key) })
}

// Events implements state.Store.
func (s *Store) Events(ctx context.Context, key state.NodeKey, after int64, limit int) ([]state.Event, error) {
	return get(ctx, s, "events", func() ([]state.Event, error) { return s.Store.Events(ctx, key, after, limit) })
}

// Sequence implements state.Store.
func (s *Store) Sequence(ctx context.Context, key state.RunKey, page state.Page) ([]state.Span, int64, error) {
	return list(ctx, s, "sequence", func() ([]state.Span, int64, error) { return s.Store.Sequence(ctx, key, page) })
}

// ExtendSequence implements state.Store.
func (s *Store) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	return again(ctx, s, "extend sequence", func() error { return s.Store.ExtendSequence(ctx, key, at, spans) })
}

// BeginOrder implements state.Store.
func (s *Store) BeginOrder(ctx context.Context, key state.RunKey, o state.Order) error {
	return again(ctx, s, "begin order", func() error { return s.Store.BeginOrder(ctx, key, o) })
}

// Hear implements state.Store.
func (s *Store) Hear(ctx context.Context, key state.NodeKey, o state.Order) error {
	return again(ctx, s, "hear", func() error { return s.Store.Hear(ctx, key, o) })
}

// EndOrder implements state.Store.
func (s *Store) EndOrder(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	return again(ctx, s, "end order", func() error { return s.Store.EndOrder(ctx, key, epoch, now) })
}

// CompleteRun implements state.Store.
func (s *Store) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return again(ctx, s, "complete run", func() error { return s.Store.CompleteRun(ctx, key, epoch, actor, now) })
}

// Acquire implements state.Store.
func (s *Store) Acquire(ctx context.Context, key state.RunKey, role, owner string, now, until time.Time) (state.Role,
	error) {
	return get(ctx, s, "acquire",
		func() (state.Role, error) { return s.Store.Acquire(ctx, key, role, owner, now, until) })
}

// Resign implements state.Store.
func (s *Store) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return again(ctx, s, "resign", func() error { return s.Store.Resign(ctx, key, role, owner) })
}

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	return get(ctx, s, "nodes", func() ([]state.Node, error) { return s.Store.Nodes(ctx, key) })
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	return get(ctx, s, "node", func() (state.Node, error) { return s.Store.Node(ctx, key) })
}

// StagePlan implements state.Store.
func (s *Store) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return again(ctx, s, "stage plan", func() error { return s.Store.StagePlan(ctx, key, digest, piece) })
}

// FlipPlan implements state.Store.
func (s *Store) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (string, error) {
	return get(ctx, s, "flip plan", func() (string, error) { return s.Store.FlipPlan(ctx, key, f) })
}

// MoveNode implements state.Store.
func (s *Store) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	return again(ctx, s, "move node", func() error { return s.Store.MoveNode(ctx, key, m) })
}

// Batches implements state.Store.
func (s *Store) Batches(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return list(ctx, s, "batches", func() ([]state.Batch, int64, error) { return s.Store.Batches(ctx, key, page) })
}

// Inputs implements state.Store.
func (s *Store) Inputs(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Input, int64, error) {
	return list(ctx, s, "inputs", func() ([]state.Input, int64, error) { return s.Store.Inputs(ctx, key, page) })
}

// Offers implements state.Store.
func (s *Store) Offers(ctx context.Context, key state.NodeKey, now time.Time, page state.Page) ([]state.Offer,
	int64, error) {
	return list(ctx, s, "offers", func() ([]state.Offer, int64, error) { return s.Store.Offers(ctx, key, now, page) })
}

// Claim implements state.Store.
func (s *Store) Claim(ctx context.Context, b state.Bid) (state.Claim, error) {
	return get(ctx, s, "claim", func() (state.Claim, error) { return s.Store.Claim(ctx, b) })
}

// Extend implements state.Store.
func (s *Store) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return again(ctx, s, "extend", func() error { return s.Store.Extend(ctx, c, lease) })
}

// Announce implements state.Store.
func (s *Store) Announce(ctx context.Context, c state.Claim, publications []state.Publication, lease time.Time) error {
	return again(ctx, s, "announce", func() error { return s.Store.Announce(ctx, c, publications, lease) })
}

// Commit implements state.Store.
func (s *Store) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return again(ctx, s, "commit", func() error { return s.Store.Commit(ctx, c, out, now) })
}

// Fail implements state.Store.
func (s *Store) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	return again(ctx, s, "fail", func() error { return s.Store.Fail(ctx, c, failure, out, now) })
}

// Retry implements state.Store.
func (s *Store) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return again(ctx, s, "retry", func() error { return s.Store.Retry(ctx, c, failure, stats, notBefore, now) })
}

// Release implements state.Store.
func (s *Store) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return again(ctx, s, "release", func() error { return s.Store.Release(ctx, c, now) })
}

// Forget implements state.Store.
func (s *Store) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return again(ctx, s, "forget", func() error { return s.Store.Forget(ctx, key, attempt) })
}

// Parts implements state.Store.
func (s *Store) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	return list(ctx, s, "parts", func() ([]state.Part, int64, error) { return s.Store.Parts(ctx, key, page) })
}

// Attempts implements state.Store.
func (s *Store) Attempts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Attempt, int64, error) {
	return list(ctx, s, "attempts", func() ([]state.Attempt, int64, error) { return s.Store.Attempts(ctx, key, page) })
}

// Publications implements state.Store.
func (s *Store) Publications(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Publication,
	int64, error) {
	return list(ctx, s, "publications",
		func() ([]state.Publication, int64, error) { return s.Store.Publications(ctx, key, page) })
}

// Tally implements state.Store.
func (s *Store) Tally(ctx context.Context, key state.NodeKey) (state.Tally, error) {
	return get(ctx, s, "tally", func() (state.Tally, error) { return s.Store.Tally(ctx, key) })
}

// Unsettled implements state.Store.
func (s *Store) Unsettled(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Batch, int64, error) {
	return list(ctx, s, "unsettled", func() ([]state.Batch, int64, error) { return s.Store.Unsettled(ctx, key, page) })
}

// Checks implements state.Store.
func (s *Store) Checks(ctx context.Context, key state.NodeKey, page state.Page) ([]state.CheckResult, int64, error) {
	return list(ctx, s, "checks", func() ([]state.CheckResult, int64, error) { return s.Store.Checks(ctx, key, page) })
}

// Workspaces implements state.Store.
func (s *Store) Workspaces(ctx context.Context) ([]string, error) {
	return get(ctx, s, "workspaces", func() ([]string, error) { return s.Store.Workspaces(ctx) })
}
