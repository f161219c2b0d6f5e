package cassandra

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// Claim implements state.Store.
func (s *Store) Claim(ctx context.Context, bid state.ClaimRequest) (state.Claim, error) {
	bid.Now, bid.Lease = stored(bid.Now), stored(bid.Lease)
	o := s.operation("Claim", "claim "+nameBatch(bid.BatchKey))
	early := o.fetch(ctx, bid.BatchKey)
	defer early.leave()
	places := []place{segmentPlace(bid.Batch), attemptPlace(bid.Batch, bid.Attempt),
		attemptPlace(bid.Batch, bid.Attempt+1)}
	var claim state.Claim
	var digest string
	err := o.alongside(ctx, bid.NodeKey, places, func(ctx context.Context, n *nodeChange) (changed bool, err error) {
		claim, changed, err = n.claim(ctx, bid)
		digest = n.node.PlanDigest
		return changed, err
	})
	if err != nil { // who has left may be decided all the same
		return state.Claim{}, err
	}
	// What is planned never changes. If it cannot be read, the claim may be repeated: it holds.
	spec, err := early.of(ctx, digest)
	if errors.Is(err, errPurged) {
		err = state.ErrNotClaimable // not any more
	}
	if err != nil {
		return state.Claim{}, o.explain(err)
	}
	claim.Spec = spec
	return claim, nil
}

// claim decides a claim request.
func (n *nodeChange) claim(ctx context.Context, bid state.ClaimRequest) (claim state.Claim, changed bool, err error) {
	if !n.has(bid.Batch) {
		if n.node.Epoch == bid.Epoch && n.node.Status == state.Running {
			return claim, false, state.ErrNotFound
		}
		return claim, false, state.ErrNotClaimable
	}
	token, held := n.latest(bid.Batch)
	l, err := n.layout(ctx)
	if err != nil {
		return claim, false, err
	}
	batch := n.batch(bid.Batch)
	batch.Phase = l.phase(bid.Batch)
	answer := bid.On(n.node, batch, token, n.phase())
	if answer == state.ClaimRefused || answer != state.ClaimTaken && !held {
		return claim, false, state.ErrNotClaimable
	}
	claim = state.Claim{BatchKey: bid.BatchKey, Epoch: bid.Epoch, Attempt: bid.Attempt + 1, Tries: batch.Tries,
		Owner: bid.Owner,
		Lease: bid.Lease}
	if answer == state.ClaimHeld {
		claim.Epoch, claim.Lease = batch.Epoch, batch.Lease
		return claim, false, nil
	}
	if answer == state.ClaimExpired {
		claim.Tries++
		n.end(bid.Batch, bid.Attempt, state.Lost, bid.Now, nil, state.Stats{})
	}
	n.take(bid, claim, batch.Phase)
	return claim, true, nil
}

// early reads the spec of a batch while the batch is claimed, from the latest known plan of the node.
type early struct {
	o      *operation
	key    state.BatchKey
	digest string // ""; nothing is read
	leave  context.CancelFunc
	ended  chan struct{}
	spec   state.BatchSpec
	err    error
}

func (o *operation) fetch(ctx context.Context, key state.BatchKey) *early {
	digest, _ := o.latest.get(key.NodeKey)
	e := &early{o: o, key: key, digest: digest, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	e.leave = func() {
		cancel()
		<-e.ended
	}
	go func() {
		defer close(e.ended)
		if e.digest != "" {
			e.spec, e.err = o.spec(ctx, key, e.digest)
		}
	}()
	return e
}

// of gives it as it is in the plan that has been claimed of.
func (e *early) of(ctx context.Context, digest string) (state.BatchSpec, error) {
	<-e.ended
	if e.digest == digest && e.err == nil {
		return e.spec, nil
	}
	return e.o.spec(ctx, e.key, digest)
}

// latest gives the token of a batch's latest attempt, if that has been read.
func (m *image) latest(batch int) (token string, read bool) {
	a := m.attempts[attemptPlace(batch, m.entry(batch).attempt)]
	if a == nil {
		return "", false
	}
	return a.Token, true
}

// take begins a new attempt.
func (n *nodeChange) take(bid state.ClaimRequest, c state.Claim, phase int) {
	n.setEntry(bid.Batch, entry{status: entryClaimed, attempt: c.Attempt, until: bid.Lease.UnixMilli()})
	n.putAttempt(attemptPlace(bid.Batch, c.Attempt), &attemptRow{Epoch: bid.Epoch, Generation: n.node.Generation,
		Owner:  bid.Owner,
		Token:  bid.Token,
		Status: state.Claimed, Started: bid.Now, Era: n.head.Era, Tries: c.Tries, Phase: phase})
	if n.head.Started.IsZero() {
		n.head.Started = bid.Now
	}
	n.tell(state.BatchClaimed, bid.Owner, bid.Now, state.EventData{Status: state.Claimed, Batch: &bid.Batch,
		Attempt: c.Attempt})
}

// end moves an attempt from Claimed to one of its last states, and tells of it.
func (n *nodeChange) end(batch, attempt int, to state.Status, now time.Time, failure *state.Failure, stats state.Stats,
	more ...column) {
	at := attemptPlace(batch, attempt)
	a := *n.attempts[at]
	a.Status, a.Finished, a.Failure = to, stored(now), failure
	if to == state.Succeeded || to == state.Failed {
		a.Stats = &stats
	}
	until := a.Finished
	if e := n.entry(batch); to == state.Lost {
		until = e.moment() // of its lease
	}
	spent := state.SpentOn(to, a.Started, until)
	n.head.Worked += spent.Worked.Milliseconds()
	n.head.Lost += spent.Lost.Milliseconds()
	n.putAttempt(at, &a, more...)
	n.tell(state.BatchEnded, a.Owner, now, state.EventData{Status: to, Batch: &batch, Attempt: attempt,
		Failure: failure, RowsIn: stats.RowsIn, RowsOut: stats.RowsOut, BytesOut: stats.BytesOut})
}

// hold changes a node for a claim that holds. An attempt that ended in wanted
// needs nothing more.
func (o *operation) hold(ctx context.Context, c state.Claim, wanted state.Status,
	do func(n *nodeChange, at place) (changed bool)) error {
	at := attemptPlace(c.Batch, c.Attempt)
	return o.alongside(ctx, c.NodeKey, []place{segmentPlace(c.Batch), at},
		func(_ context.Context, n *nodeChange) (bool, error) {
			a := n.attempts[at]
			if a == nil || c.Attempt < 1 || a.Owner != c.Owner || a.Epoch != c.Epoch {
				if !n.has(c.Batch) && n.node.Epoch == c.Epoch {
					return false, state.ErrNotFound
				}
				return false, state.ErrLeaseLost
			}
			if a.Status == wanted && !a.lost(n.head) {
				return false, nil
			}
			e := n.entry(c.Batch)
			latest := n.has(c.Batch) && e.status == entryClaimed && e.attempt == c.Attempt
			if a.Status != state.Claimed || a.lost(n.head) || !latest || !n.node.Holds(c.Epoch) {
				return false, state.ErrLeaseLost
			}
			return do(n, at), nil
		})
}

// atWork is no status that an attempt ends in.
const atWork state.Status = ""

// extend moves the end of a lease, never back.
func (n *nodeChange) extend(batch int, lease time.Time) bool {
	e := n.entry(batch)
	if lease.UnixMilli() <= e.until {
		return false
	}
	e.until = lease.UnixMilli()
	n.setEntry(batch, e)
	return true
}

// Extend implements state.Store.
func (s *Store) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	o := s.operation("Extend", "extend lease on "+nameBatch(c.BatchKey))
	return o.hold(ctx, c, atWork, func(n *nodeChange, _ place) bool { return n.extend(c.Batch, lease) })
}

// Announce implements state.Store.
func (s *Store) Announce(ctx context.Context, c state.Claim, publications []state.Publication, lease time.Time) error {
	o := s.operation("Announce", "announce what is published of "+nameBatch(c.BatchKey))
	return o.hold(ctx, c, atWork, func(n *nodeChange, at place) bool {
		changed := n.extend(c.Batch, lease)
		all := n.pubs[at]
		for _, p := range publications {
			if slices.ContainsFunc(all, func(q state.Publication) bool { return q.Seq == p.Seq }) {
				continue
			}
			p.BatchKey, p.Attempt, p.Owner = c.BatchKey, c.Attempt, c.Owner
			all = append(all, p)
		}
		if len(all) == len(n.pubs[at]) {
			return changed
		}
		slices.SortFunc(all, func(a, b state.Publication) int { return cmp.Compare(a.Seq, b.Seq) })
		n.put(at, column{"pubs", n.pack(all)})
		n.pubs[at] = all
		if key := (pubKey{c.Batch, c.Attempt}); !slices.Contains(n.head.Pubs, key) {
			n.head.Pubs = append(n.head.Pubs, key)
		}
		return true
	})
}

// forget removes what an attempt announced, if it did.
func (n *nodeChange) forget(batch, attempt int) (columns []column) {
	i := slices.Index(n.head.Pubs, pubKey{batch, attempt})
	if i < 0 {
		return nil
	}
	n.head.Pubs = slices.Delete(n.head.Pubs, i, i+1)
	delete(n.pubs, attemptPlace(batch, attempt))
	return []column{{"pubs", []byte{}}} // and not NULL, which would be kept as a deletion
}

// Forget implements state.Store.
func (s *Store) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	o := s.operation("Forget", "forget what was announced of "+nameBatch(key))
	return o.alongside(ctx, key.NodeKey, nil, func(_ context.Context, n *nodeChange) (bool, error) {
		columns := n.forget(key.Batch, attempt)
		if columns == nil {
			return false, nil
		}
		n.put(attemptPlace(key.Batch, attempt), columns...)
		return true, nil
	})
}

// results gives what an attempt publishes, as columns of its row.
func (n *nodeChange) results(out state.Outcome) (has uint8, columns []column) {
	if len(out.Parts) > 0 {
		has, columns = has|hasParts, append(columns, column{"parts", n.pack(out.Parts)})
	}
	if len(out.Files) > 0 {
		has, columns = has|hasFiles, append(columns, column{"files", n.pack(out.Files)})
	}
	if len(out.Checks) > 0 {
		has, columns = has|hasChecks, append(columns, column{"checks", n.pack(out.Checks)})
	}
	return has, columns
}

// Commit implements state.Store.
func (s *Store) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	o := s.operation("Commit", "commit "+nameBatch(c.BatchKey))
	if err := out.Check(); err != nil {
		return o.explain(err)
	}
	return o.hold(ctx, c, state.Succeeded, func(n *nodeChange, at place) bool {
		has, columns := n.results(out)
		columns = append(columns, n.forget(c.Batch, c.Attempt)...)
		n.end(c.Batch, c.Attempt, state.Succeeded, now, nil, out.Stats, columns...)
		n.setEntry(c.Batch, entry{status: entrySucceeded, has: has, attempt: c.Attempt})
		h := &n.head
		h.Done++
		h.RowsIn, h.RowsOut, h.BytesIn, h.BytesOut = h.RowsIn+out.Stats.RowsIn, h.RowsOut+out.Stats.RowsOut,
			h.BytesIn+out.Stats.BytesIn,
			h.BytesOut+out.Stats.BytesOut
		phase := n.attempts[at].Phase
		if h.Open[phase]--; h.Open[phase] <= 0 {
			delete(h.Open, phase)
		}
		n.tally().Good.Count(c.Batch, state.Succeeded, out.Stats)
		return true
	})
}

// Fail implements state.Store.
func (s *Store) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	o := s.operation("Fail", "fail "+nameBatch(c.BatchKey))
	if err := errors.Join(out.Check(), out.CheckFailed()); err != nil {
		return o.explain(err)
	}
	return o.hold(ctx, c, state.Failed, func(n *nodeChange, _ place) bool {
		has, columns := n.results(out)
		n.end(c.Batch, c.Attempt, state.Failed, now, &failure, out.Stats, columns...)
		n.setEntry(c.Batch, entry{status: entryFailed, has: has, attempt: c.Attempt})
		n.head.Failed++
		n.tally().Bad.Count(c.Batch, state.Failed, out.Stats)
		return true
	})
}

// Retry implements state.Store.
func (s *Store) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	o := s.operation("Retry", "retry "+nameBatch(c.BatchKey))
	return o.hold(ctx, c, state.Failed, func(n *nodeChange, at place) bool {
		n.attempts[at].Retried = true
		n.end(c.Batch, c.Attempt, state.Failed, now, &failure, stats)
		e := entry{attempt: c.Attempt}
		if !notBefore.IsZero() {
			e.status, e.until = entryWaiting, notBefore.UnixMilli()
		}
		n.setEntry(c.Batch, e)
		return true
	})
}

// Release implements state.Store.
func (s *Store) Release(ctx context.Context, c state.Claim, now time.Time) error {
	o := s.operation("Release", "release "+nameBatch(c.BatchKey))
	return o.hold(ctx, c, state.Released, func(n *nodeChange, _ place) bool {
		n.end(c.Batch, c.Attempt, state.Released, now, nil, state.Stats{})
		n.setEntry(c.Batch, entry{attempt: c.Attempt})
		return true
	})
}
