package hostile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Claim implements state.Store.
func (s *Store) Claim(ctx context.Context, bid state.ClaimRequest) (c state.Claim, err error) {
	bid.Now, bid.Lease = milli(bid.Now), milli(bid.Lease)
	err = s.inNode(ctx, bid.NodeKey, func(p *nodePartition) error {
		if bid.Batch < 0 || bid.Batch >= len(p.batches) {
			if p.node.Epoch != bid.Epoch || p.node.Status != state.Running {
				return state.ErrNotClaimable
			}
			return state.ErrNotFound
		}
		b := p.batches[bid.Batch]
		switch bid.On(p.node, b.Batch, b.token, p.phase()) {
		case state.ClaimRefused:
			return state.ErrNotClaimable
		case state.ClaimExpired:
			p.end(b, state.Lost, bid.Now, nil, state.Outcome{})
			b.Tries++
			p.take(b, bid)
		case state.ClaimTaken:
			p.take(b, bid)
		}
		c = state.Claim{BatchKey: bid.BatchKey, Epoch: b.Epoch, Attempt: b.Attempt, Tries: b.Tries, Owner: b.Owner,
			Lease: b.Lease, Spec: p.plan.batches[bid.Batch]}
		return nil
	})
	return c, err
}

func (p *nodePartition) take(b *batch, bid state.ClaimRequest) {
	b.Status, b.Attempt, b.Epoch, b.Owner, b.token, b.Lease, b.Started = state.Claimed, bid.Attempt+1, bid.Epoch,
		bid.Owner, bid.Token, bid.Lease, bid.Now
	b.NotBefore = time.Time{}
	p.attempts[bid.Batch] = append(p.attempts[bid.Batch],
		&attempt{Attempt: state.Attempt{BatchKey: bid.BatchKey, Attempt: b.Attempt,
			Epoch: bid.Epoch, Generation: p.node.Generation, Owner: bid.Owner, Status: state.Claimed,
			Started: bid.Now}})
	if p.node.Started.IsZero() {
		p.node.Started = bid.Now
	}
	p.tell(state.BatchClaimed, bid.Owner, bid.Now, state.EventData{Status: state.Claimed, Batch: &bid.Batch,
		Attempt: b.Attempt})
}

// end ends a batch's latest attempt.
func (p *nodePartition) end(b *batch, to state.Status, now time.Time, failure *state.Failure, out state.Outcome) {
	a := p.latest(b)
	a.finish(to, now, failure)
	a.out = out
	until := a.Finished
	if to == state.Lost {
		until = b.Lease
	}
	p.node.Spent = p.node.Spent.Plus(state.SpentOn(to, a.Started, until))
	batch := b.BatchKey.Batch
	p.tell(state.BatchEnded, a.Owner, now, state.EventData{Status: to, Batch: &batch, Attempt: a.Attempt.Attempt,
		Failure: failure,
		RowsIn:  out.Stats.RowsIn, RowsOut: out.Stats.RowsOut, BytesOut: out.Stats.BytesOut})
}

// held does something for a claim that holds. An attempt that ended in wanted
// needs nothing more.
func (s *Store) held(ctx context.Context, c state.Claim, wanted state.Status,
	do func(p *nodePartition, b *batch)) error {
	return s.inNode(ctx, c.NodeKey, func(p *nodePartition) error {
		attempts := p.attempts[c.Batch]
		if c.Attempt < 1 || c.Attempt > len(attempts) || attempts[c.Attempt-1].Owner != c.Owner ||
			attempts[c.Attempt-1].Epoch != c.Epoch {
			if (c.Batch < 0 || c.Batch >= len(p.batches)) && p.node.Epoch == c.Epoch {
				return state.ErrNotFound
			}
			return state.ErrLeaseLost
		}
		a := attempts[c.Attempt-1]
		switch {
		case a.Status == wanted:
			return nil
		case a.Status != state.Claimed || !p.node.Holds(c.Epoch): // the latest: an earlier one has ended
			return state.ErrLeaseLost
		}
		do(p, p.batches[c.Batch])
		return nil
	})
}

// ends ends a claim that holds.
func (s *Store) ends(ctx context.Context, c state.Claim, to state.Status, now time.Time, failure *state.Failure,
	out state.Outcome, do func(b *batch)) error {
	return s.held(ctx, c, to, func(p *nodePartition, b *batch) {
		p.end(b, to, now, failure, out)
		if to == state.Succeeded {
			p.forget(c.Batch, c.Attempt)
		}
		do(b)
	})
}

// none is no status: of an attempt that has not ended, all may be done again.
const none state.Status = "none"

// Extend implements state.Store.
func (s *Store) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return s.held(ctx, c, none, func(_ *nodePartition, b *batch) { b.extend(lease) })
}

func (b *batch) extend(lease time.Time) {
	if lease = milli(lease); lease.After(b.Lease) {
		b.Lease = lease
	}
}

// Announce implements state.Store.
func (s *Store) Announce(ctx context.Context, c state.Claim, publications []state.Publication, lease time.Time) error {
	return s.held(ctx, c, none, func(p *nodePartition, b *batch) {
		b.extend(lease)
		for _, pub := range publications {
			pub.BatchKey, pub.Attempt, pub.Owner = c.BatchKey, c.Attempt, c.Owner
			same := func(q state.Publication) bool {
				return q.Batch == pub.Batch && q.Attempt == pub.Attempt && q.Seq == pub.Seq
			}
			if !slices.ContainsFunc(p.publications, same) {
				p.publications = append(p.publications, pub)
			}
		}
		slices.SortFunc(p.publications, func(a, b state.Publication) int {
			return cmp.Or(cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Seq, b.Seq))
		})
	})
}

func (p *nodePartition) forget(batch, attempt int) {
	p.publications = slices.DeleteFunc(p.publications, func(pub state.Publication) bool {
		return pub.Batch == batch &&
			pub.Attempt == attempt
	})
}

// Forget implements state.Store.
func (s *Store) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return s.inNode(ctx, key.NodeKey, func(p *nodePartition) error { p.forget(key.Batch, attempt); return nil })
}

// Publications implements state.Store.
func (s *Store) Publications(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Publication,
	int64, error) {
	end := func(p *nodePartition) int {
		if len(p.publications) == 0 {
			return 0
		}
		return p.publications[len(p.publications)-1].Batch + 1
	}
	return list(ctx, s, key, page, end, func(p *nodePartition, at int) (some []state.Publication, _ bool) {
		for _, pub := range p.publications {
			if pub.Batch == at {
				some = append(some, pub)
			}
		}
		return some, len(some) > 0
	})
}

// Commit implements state.Store.
func (s *Store) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	if err := out.Check(); err != nil {
		return err
	}
	return s.ends(ctx, c, state.Succeeded, now, nil, out, func(b *batch) {
		b.Status, b.Lease, b.Finished, b.Stats = state.Succeeded, time.Time{}, milli(now), out.Stats
	})
}

// Fail implements state.Store.
func (s *Store) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	if err := errors.Join(out.Check(), out.CheckFailed()); err != nil {
		return err
	}
	return s.ends(ctx, c, state.Failed, now, &failure, out, func(b *batch) {
		b.Status, b.Lease, b.Finished, b.Stats, b.Failure = state.Failed, time.Time{}, milli(now), out.Stats, &failure
	})
}

// Retry implements state.Store.
func (s *Store) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return s.ends(ctx, c, state.Failed, now, &failure, state.Outcome{Stats: stats}, func(b *batch) {
		b.reset()
		b.Tries++
		b.NotBefore = milli(notBefore)
	})
}

// Release implements state.Store.
func (s *Store) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return s.ends(ctx, c, state.Released, now, nil, state.Outcome{}, func(b *batch) { b.reset() })
}

// Attempts implements state.Store.
func (s *Store) Attempts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Attempt, int64, error) {
	end := func(p *nodePartition) (n int) {
		for batch := range p.attempts {
			n = max(n, batch+1)
		}
		return n
	}
	return list(ctx, s, key, page, end, func(p *nodePartition, at int) (some []state.Attempt, _ bool) {
		some = p.told(at)
		return some, len(some) > 0
	})
}

// told lists the attempts of a batch, as they are told.
func (p *nodePartition) told(batch int) (all []state.Attempt) {
	for _, a := range p.attempts[batch] {
		told := a.Attempt
		told.Withdrawn = a.Status == state.Succeeded && !p.counts(batch, a)
		told.Stats = a.out.Stats
		all = append(all, told)
	}
	return all
}

// counts reports whether what an attempt published does: it is its batch's
// latest, and the batch is as it left it.
func (p *nodePartition) counts(batch int, a *attempt) bool {
	return batch < len(p.batches) && p.batches[batch].Attempt == a.Attempt.Attempt &&
		p.batches[batch].Status == a.Status
}

// published lists what the attempts that count have published.
func published[T any](ctx context.Context, s *Store, key state.NodeKey, page state.Page, of func(a *attempt) []T) ([]T,
	int64, error) {
	return list(ctx, s, key, page, batchesOf, func(p *nodePartition, at int) ([]T, bool) {
		b := p.batches[at]
		if b.Status != state.Succeeded && b.Status != state.Failed {
			return nil, false
		}
		return of(p.latest(b)), true
	})
}

// Parts implements state.Store.
func (s *Store) Parts(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Part, int64, error) {
	return published(ctx, s, key, page, func(a *attempt) []state.Part {
		parts := slices.Clone(a.out.Parts)
		for i := range parts {
			parts[i].Batch, parts[i].Attempt = a.Batch, a.Attempt.Attempt
		}
		slices.SortFunc(parts, func(a, b state.Part) int { return cmp.Compare(a.Seq, b.Seq) })
		return parts
	})
}

// Checks implements state.Store.
func (s *Store) Checks(ctx context.Context, key state.NodeKey, page state.Page) ([]state.CheckResult, int64, error) {
	return published(ctx, s, key, page, func(a *attempt) []state.CheckResult {
		checks := slices.Clone(a.out.Checks)
		for i := range checks {
			checks[i].NodeKey, checks[i].Batch = a.NodeKey, a.Batch
		}
		return checks
	})
}

// Files implements state.Store.
func (s *Store) Files(ctx context.Context, key state.NodeKey, page state.Page) ([]state.File, int64, error) {
	return published(ctx, s, key, page, func(a *attempt) []state.File {
		files := slices.Clone(a.out.Files)
		for i := range files {
			files[i].NodeKey, files[i].Batch = a.NodeKey, a.Batch
		}
		return files
	})
}
