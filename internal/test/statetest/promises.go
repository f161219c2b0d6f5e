package statetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// crowd works on a run from many sides at once: workers that hold a batch while others act, coordinators, and
// people who change their minds.
type crowd struct {
	state.Store
	ctx context.Context
	run state.RunKey
}

// What each of a crowd does, and for how long: a slow backend is asked less.
func crowdSteps() int { return effort.Of(150, 400, 5_000) }

func crowdFor() time.Duration { return effort.Of(time.Second, 4*time.Second, time.Minute) }

// testPromises has a crowd on one run and then holds its events to the promises:
// nothing is claimed while it is paused, what is under way then is good and
// behind a stop it is not, a decision is about what was shown and stands.
func testPromises(t *testing.T, open Open) {
	b := newBench(t, open)
	key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}, Created: start},
		[]state.NodeSpec{
			{Name: "a"}, {Name: "b", Ordinal: 1}, {Name: "gate", Ordinal: 2, Kind: state.KindGate}})
	require.NoError(t, err)
	c := crowd{Store: b.Store, ctx: b.ctx, run: key}
	does := []func(*mathrand.Rand, *[]state.Claim) error{c.work, c.work, c.work, c.coordinate, c.coordinate,
		c.order, c.decide}
	end := time.Now().Add(crowdFor())
	errs := together(len(does), func(i int) error {
		rng := mathrand.New(mathrand.NewPCG(uint64(i), 3)) //nolint:gosec // reproducible
		var held []state.Claim
		for range crowdSteps() {
			if time.Now().After(end) {
				break
			}
			if err := does[i](rng, &held); !late(err) {
				return err
			}
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, Audit(b.ctx, b.Store, key))
}

// late reports whether a call came to nothing because others acted before it.
func late(err error) bool {
	return err == nil || errors.Is(err, state.ErrConflict) || errors.Is(err, state.ErrLeaseLost) ||
		errors.Is(err, state.ErrNotClaimable) || errors.Is(err, state.ErrNotFound)
}

// work ends a batch that is held, or claims one more.
func (c crowd) work(rng *mathrand.Rand, held *[]state.Claim) error {
	if n := len(*held); n > 0 && rng.IntN(2) == 0 {
		claim := (*held)[0]
		*held = (*held)[1:]
		switch rng.IntN(6) {
		case 0:
			return c.Fail(c.ctx, claim, failure(), state.Outcome{}, start)
		case 1:
			return c.Retry(c.ctx, claim, failure(), stats(), start, start)
		case 2:
			return c.Release(c.ctx, claim, start)
		}
		return c.Commit(c.ctx, claim, outcome(fmt.Sprint(claim.Node, claim.Batch, claim.Attempt)), start)
	}
	key := state.NodeKey{RunKey: c.run, Node: string("ab"[rng.IntN(2)])}
	offers, _, err := c.Offers(c.ctx, key, start, state.Page{})
	if err != nil || len(offers) == 0 {
		return err
	}
	claim, err := c.Claim(c.ctx, state.ClaimRequest{Offer: offers[rng.IntN(len(offers))], Owner: "w", Token: rand.Text(),
		Now: start, Lease: start.Add(lease)})
	if err == nil {
		*held = append(*held, claim)
	}
	return err
}

// coordinate does what is due, by what it reads: perhaps not what is.
func (c crowd) coordinate(rng *mathrand.Rand, _ *[]state.Claim) error {
	run, err := c.Run(c.ctx, c.run)
	if err != nil {
		return err
	}
	if rng.IntN(2) == 0 {
		if err := state.Carry(c.ctx, c.Store, run, start); err != nil {
			return err
		}
	}
	if run.Status != state.Running || run.Command.Pending() {
		return nil
	}
	nodes, err := c.Nodes(c.ctx, c.run)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		m := state.Move{Epoch: n.Epoch, From: n.Status, Actor: "c", Now: start}
		switch {
		case n.Status == state.Pending && n.Name == "gate" && n.Decision == nil:
			m.To, m.Gate, m.GateDigest = state.Waiting, []byte("?"), fmt.Sprint("shown ", rng.IntN(3))
		case n.Status == state.Pending:
			var batches []state.BatchSpec
			if n.Name != "gate" {
				batches = specs(4)
			}
			_, err := state.PlanNode(c.ctx, c.Store, n.NodeKey, n.Epoch, state.Plan{Batches: batches}, "c", start)
			if !late(err) {
				return err
			}
			continue
		case n.Status == state.Running && n.BatchesDone == n.BatchesTotal:
			m.To = state.Succeeded
		default:
			continue
		}
		if err := c.MoveNode(c.ctx, n.NodeKey, m); !late(err) {
			return err
		}
	}
	return nil
}

func (c crowd) order(rng *mathrand.Rand, _ *[]state.Claim) error {
	kinds := []state.CommandKind{state.CommandPause, state.CommandPause, state.CommandUnpause, state.CommandUnpause,
		state.CommandUnpause, state.CommandStop, state.CommandReopen, state.CommandReopen}
	switch rng.IntN(6) {
	case 0:
		redo := state.CommandNode{Node: "a", Batches: []int{rng.IntN(4)}}
		return state.Direct(c.ctx, c.Store, c.run, order(state.CommandRedo, redo))
	case 1:
		redo := state.CommandNode{Node: "gate", Replan: rng.IntN(2) == 0}
		return state.Direct(c.ctx, c.Store, c.run, order(state.CommandRedo, redo))
	}
	return state.Direct(c.ctx, c.Store, c.run, order(kinds[rng.IntN(len(kinds))]))
}

// decide decides about what the gate showed when it was read, or about what it
// may have shown to somebody else.
func (c crowd) decide(rng *mathrand.Rand, _ *[]state.Claim) error {
	n, err := c.Node(c.ctx, state.NodeKey{RunKey: c.run, Node: "gate"})
	if err != nil {
		return err
	}
	digest := n.GateDigest
	if rng.IntN(3) == 0 {
		digest = fmt.Sprint("shown ", rng.IntN(3))
	}
	kind := state.CommandApprove
	if rng.IntN(3) == 0 {
		kind = state.CommandReject
	}
	return state.Direct(c.ctx, c.Store, c.run, order(kind, state.CommandNode{Node: "gate", Digest: digest}))
}
