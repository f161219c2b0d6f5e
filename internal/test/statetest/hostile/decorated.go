package hostile

import (
	"context"
	"sync"
	"time"

	"thalweg/internal/store/state"
)

// kind classifies calls by the faults that they may suffer.
type kind int

const (
	reads kind = iota
	hints      // a change that may be repeated, but not late: see state.Store.Acquire and PutNote
	changes
)

// decorated is a store each of whose calls goes through call.
type decorated struct {
	state.Store
	tokens bool
	call   func(ctx context.Context, k kind, do func(context.Context) error) error
}

// answer makes a call that gives a value. What it gives when it is done late,
// nobody hears.
func answer[T any](ctx context.Context, d *decorated, k kind, do func(context.Context) (T, error)) (T, error) {
	var mu sync.Mutex
	var v T
	answered := false
	err := d.call(ctx, k, func(ctx context.Context) error {
		got, err := do(ctx)
		mu.Lock()
		defer mu.Unlock()
		if !answered {
			v = got
		}
		return err
	})
	mu.Lock()
	defer mu.Unlock()
	answered = true
	return v, err
}

// page makes a call that gives a piece of a list.
func page[K, T any](ctx context.Context, d *decorated, key K, p state.Page,
	read func(context.Context, K, state.Page) ([]T, int64, error)) (all []T, next int64, err error) {
	err = d.call(ctx, reads, func(ctx context.Context) (err error) {
		all, next, err = read(ctx, key, p)
		return err
	})
	return all, next, err
}

// CreateRun implements state.Store.
func (d *decorated) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	d.token(&run)
	return answer(ctx, d, changes, func(ctx context.Context) (state.RunKey, error) {
		return d.Store.CreateRun(ctx, run,
			nodes, blobs...)
	})
}

// Run implements state.Store.
func (d *decorated) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	return answer(ctx, d, reads, func(ctx context.Context) (state.Run, error) { return d.Store.Run(ctx, key) })
}

// Runs implements state.Store.
func (d *decorated) Runs(ctx context.Context, key string, p state.Page) ([]state.Run, int64, error) {
	return page(ctx, d, key, p, d.Store.Runs)
}

// Blob implements state.Store.
func (d *decorated) Blob(ctx context.Context, digest string) ([]byte, error) {
	return answer(ctx, d, reads, func(ctx context.Context) ([]byte, error) { return d.Store.Blob(ctx, digest) })
}

// PutNote implements state.Store.
func (d *decorated) PutNote(ctx context.Context, workspace string, n state.Note) error {
	return d.call(ctx, hints, func(ctx context.Context) error { return d.Store.PutNote(ctx, workspace, n) })
}

// RemoveNote implements state.Store.
func (d *decorated) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	return d.call(ctx, hints, func(ctx context.Context) error { return d.Store.RemoveNote(ctx, workspace, n) })
}

// Notes implements state.Store.
func (d *decorated) Notes(ctx context.Context, workspace, topic, after string, limit int) ([]state.Note, error) {
	return answer(ctx, d, reads, func(ctx context.Context) ([]state.Note, error) {
		return d.Store.Notes(ctx, workspace, topic, after, limit)
	})
}

// Purge implements state.Store.
func (d *decorated) Purge(ctx context.Context, key state.NodeKey) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Purge(ctx, key) })
}

// Sequence implements state.Store.
func (d *decorated) Sequence(ctx context.Context, key state.RunKey, p state.Page) ([]state.Span, int64, error) {
	return page(ctx, d, key, p, d.Store.Sequence)
}

// ExtendSequence implements state.Store.
func (d *decorated) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.ExtendSequence(ctx, key, at, spans) })
}

// Batch implements state.Store.
func (d *decorated) Batch(ctx context.Context, key state.BatchKey) (state.Batch, []state.Attempt, error) {
	type both struct {
		batch    state.Batch
		attempts []state.Attempt
	}
	got, err := answer(ctx, d, reads, func(ctx context.Context) (b both, err error) {
		b.batch, b.attempts, err = d.Store.Batch(ctx, key)
		return b, err
	})
	return got.batch, got.attempts, err
}

// BeginOrder implements state.Store.
func (d *decorated) BeginOrder(ctx context.Context, key state.RunKey, o state.Order) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.BeginOrder(ctx, key, o) })
}

// Hear implements state.Store.
func (d *decorated) Hear(ctx context.Context, key state.NodeKey, o state.Order) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Hear(ctx, key, o) })
}

// EndOrder implements state.Store.
func (d *decorated) EndOrder(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.EndOrder(ctx, key, epoch, now) })
}

// CompleteRun implements state.Store.
func (d *decorated) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return d.call(ctx, changes,
		func(ctx context.Context) error { return d.Store.CompleteRun(ctx, key, epoch, actor, now) })
}

// Acquire implements state.Store.
func (d *decorated) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (state.Role, error) {
	return answer(ctx, d, hints, func(ctx context.Context) (state.Role, error) {
		return d.Store.Acquire(ctx, key, role, owner, now, until)
	})
}

// Resign implements state.Store.
func (d *decorated) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return d.call(ctx, hints, func(ctx context.Context) error { return d.Store.Resign(ctx, key, role, owner) })
}

// Nodes implements state.Store.
func (d *decorated) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	return answer(ctx, d, reads, func(ctx context.Context) ([]state.Node, error) { return d.Store.Nodes(ctx, key) })
}

// Node implements state.Store.
func (d *decorated) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	return answer(ctx, d, reads, func(ctx context.Context) (state.Node, error) { return d.Store.Node(ctx, key) })
}

// StagePlan implements state.Store.
func (d *decorated) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.StagePlan(ctx, key, digest, piece) })
}

// FlipPlan implements state.Store.
func (d *decorated) FlipPlan(ctx context.Context, key state.NodeKey, f state.Flip) (string, error) {
	return answer(ctx, d, changes, func(ctx context.Context) (string, error) { return d.Store.FlipPlan(ctx, key, f) })
}

// MoveNode implements state.Store.
func (d *decorated) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.MoveNode(ctx, key, m) })
}

// Batches implements state.Store.
func (d *decorated) Batches(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Batch, int64, error) {
	return page(ctx, d, key, p, d.Store.Batches)
}

// Unsettled implements state.Store.
func (d *decorated) Unsettled(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Batch, int64, error) {
	return page(ctx, d, key, p, d.Store.Unsettled)
}

// Specs implements state.Store.
func (d *decorated) Specs(ctx context.Context, key state.NodeKey, p state.Page) ([]state.BatchSpec, int64, error) {
	return page(ctx, d, key, p, d.Store.Specs)
}

// Inputs implements state.Store.
func (d *decorated) Inputs(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Input, int64, error) {
	return page(ctx, d, key, p, d.Store.Inputs)
}

// Offers implements state.Store.
func (d *decorated) Offers(ctx context.Context, key state.NodeKey, now time.Time, p state.Page) ([]state.Offer,
	int64, error) {
	return page(ctx, d, key, p, func(ctx context.Context, key state.NodeKey,
		p state.Page) ([]state.Offer, int64, error) {
		return d.Store.Offers(ctx, key, now, p)
	})
}

// Claim implements state.Store.
func (d *decorated) Claim(ctx context.Context, b state.Bid) (state.Claim, error) {
	return answer(ctx, d, changes, func(ctx context.Context) (state.Claim, error) { return d.Store.Claim(ctx, b) })
}

// Extend implements state.Store.
func (d *decorated) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Extend(ctx, c, lease) })
}

// Announce implements state.Store.
func (d *decorated) Announce(ctx context.Context, c state.Claim, publications []state.Publication,
	lease time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error {
		return d.Store.Announce(ctx, c, publications, lease)
	})
}

// Commit implements state.Store.
func (d *decorated) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Commit(ctx, c, out, now) })
}

// Fail implements state.Store.
func (d *decorated) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Fail(ctx, c, failure, out, now) })
}

// Retry implements state.Store.
func (d *decorated) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error {
		return d.Store.Retry(ctx, c, failure, stats,
			notBefore, now)
	})
}

// Release implements state.Store.
func (d *decorated) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Release(ctx, c, now) })
}

// Attempts implements state.Store.
func (d *decorated) Attempts(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Attempt, int64, error) {
	return page(ctx, d, key, p, d.Store.Attempts)
}

// Publications implements state.Store.
func (d *decorated) Publications(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Publication,
	int64, error) {
	return page(ctx, d, key, p, d.Store.Publications)
}

// Forget implements state.Store.
func (d *decorated) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return d.call(ctx, changes, func(ctx context.Context) error { return d.Store.Forget(ctx, key, attempt) })
}

// Parts implements state.Store.
func (d *decorated) Parts(ctx context.Context, key state.NodeKey, p state.Page) ([]state.Part, int64, error) {
	return page(ctx, d, key, p, d.Store.Parts)
}

// Tally implements state.Store.
func (d *decorated) Tally(ctx context.Context, key state.NodeKey) (state.Tally, error) {
	return answer(ctx, d, reads, func(ctx context.Context) (state.Tally, error) { return d.Store.Tally(ctx, key) })
}

// Checks implements state.Store.
func (d *decorated) Checks(ctx context.Context, key state.NodeKey, p state.Page) ([]state.CheckResult, int64, error) {
	return page(ctx, d, key, p, d.Store.Checks)
}

// Files implements state.Store.
func (d *decorated) Files(ctx context.Context, key state.NodeKey, p state.Page) ([]state.File, int64, error) {
	return page(ctx, d, key, p, d.Store.Files)
}

// Events implements state.Store.
func (d *decorated) Events(ctx context.Context, key state.NodeKey, after int64, limit int) ([]state.Event, error) {
	return answer(ctx, d, reads, func(ctx context.Context) ([]state.Event, error) {
		return d.Store.Events(ctx, key,
			after, limit)
	})
}

// Workspaces implements state.Store.
func (d *decorated) Workspaces(ctx context.Context) ([]string, error) {
	return answer(ctx, d, reads, d.Store.Workspaces)
}
