package statetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"thalweg/internal/state"
)

// randomFor bounds the random operations: a slow backend, or one under the
// race detector, is asked fewer of them.
const randomFor = 8 * time.Second

// testRandom does the same random operations to the store and to the model
// and expects the same answers and the same picture after each of them.
func testRandom(t *testing.T, open Open) {
	b := newBench(t, open)
	var round atomic.Int64
	var failed atomic.Bool // then time is no object: a short counterexample is searched for
	end := time.Now().Add(randomFor)
	defer func() { t.Logf("%d sequences of operations", round.Load()) }()
	rapid.Check(t, func(rt *rapid.T) {
		if time.Now().After(end) && !failed.Load() {
			return
		}
		defer func() {
			if rt.Failed() {
				failed.Store(true)
			}
		}()
		p := &pair{
			ctx: b.ctx, store: b.Store, model: newModel(), now: start,
			workspace: fmt.Sprintf("%s_%d", b.workspace, round.Add(1)),
		}
		p.create(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":        func(rt *rapid.T) { p.compare(rt, p.touched) },
			"create":  p.create,
			"run":     p.moveRun,
			"node":    p.moveNode,
			"plan":    p.plan,
			"claim":   p.claim,
			"claim2":  p.claim, // twice as often: the rest lives on claims
			"extend":  p.extend,
			"commit":  p.commit,
			"commit2": p.commit,
			"fail":    p.fail,
			"release": p.release,
			"reopen":  p.reopen,
			"clock":   p.tick,
		})
		p.compare(rt, p.runs...) // a run that no operation meant is as it was
	})
}

// pair is a store beside its model, with what random operations draw from.
type pair struct {
	ctx          context.Context
	store, model state.Store
	workspace    string
	now          time.Time
	runs         []state.RunKey
	touched      state.RunKey // by the latest operation
	claims       []state.Claim
	part         int
}

var randomNodes = []string{"a", "b", "c"}

// agree checks that both stores answered alike: both well, or with the same
// sentinel.
func agree(rt *rapid.T, modelErr, storeErr error) {
	rt.Helper()
	if modelErr == nil && storeErr == nil {
		return
	}
	if modelErr == nil || storeErr == nil || !errors.Is(storeErr, modelErr) {
		rt.Fatalf("model says %v, store says %v", modelErr, storeErr)
	}
}

// compare takes pictures of runs in both stores.
func (p *pair) compare(rt *rapid.T, runs ...state.RunKey) {
	for _, key := range runs {
		want, modelErr := take(p.ctx, p.model, key)
		got, storeErr := take(p.ctx, p.store, key)
		agree(rt, modelErr, storeErr)
		level(&want)
		level(&got)
		same(rt, want, got)
	}
}

// level replaces the moments that come from a store's own clock by whether
// there is one.
func level(p *picture) {
	flatten := func(at *time.Time) {
		if !at.IsZero() {
			*at = start
		}
	}
	flatten(&p.Run.Finished)
	for i := range p.Nodes {
		flatten(&p.Nodes[i].Finished)
	}
}

func (p *pair) create(rt *rapid.T) {
	if len(p.runs) == 3 {
		rt.Skip("enough runs")
	}
	run := state.Run{RunKey: state.RunKey{Workspace: p.workspace}, Created: p.now}
	specs := make([]state.NodeSpec, len(randomNodes))
	for i, name := range randomNodes {
		specs[i] = state.NodeSpec{Name: name, Ordinal: len(specs) - i}
	}
	want, modelErr := p.model.CreateRun(p.ctx, run, specs)
	got, storeErr := p.store.CreateRun(p.ctx, run, specs)
	agree(rt, modelErr, storeErr)
	same(rt, want, got)
	p.runs = append(p.runs, got)
	p.touched = got
}

func (p *pair) drawRun(rt *rapid.T) state.RunKey {
	p.touched = rapid.SampledFrom(p.runs).Draw(rt, "run")
	return p.touched
}

func (p *pair) drawNode(rt *rapid.T) state.NodeKey {
	return state.NodeKey{RunKey: p.drawRun(rt), Node: rapid.SampledFrom(randomNodes).Draw(rt, "node")}
}

func (p *pair) drawClaim(rt *rapid.T) state.Claim {
	if len(p.claims) == 0 {
		rt.Skip("no claim yet")
	}
	c := rapid.SampledFrom(p.claims).Draw(rt, "claim")
	p.touched = c.RunKey
	return c
}

func (p *pair) moveRun(rt *rapid.T) {
	key := p.drawRun(rt)
	from := rapid.SampledFrom(everyStatus).Draw(rt, "from")
	if at, err := p.model.Run(p.ctx, key); err == nil && rapid.Bool().Draw(rt, "as it is") {
		from = at.Status
	}
	to := rapid.SampledFrom(everyStatus).Draw(rt, "to")
	f := failure()
	agree(rt, p.model.SetRunStatus(p.ctx, key, from, to, &f), p.store.SetRunStatus(p.ctx, key, from, to, &f))
}

func (p *pair) moveNode(rt *rapid.T) {
	key := p.drawNode(rt)
	from := rapid.SampledFrom(everyStatus).Draw(rt, "from")
	if at, err := p.model.Node(p.ctx, key); err == nil && rapid.Bool().Draw(rt, "as it is") {
		from = at.Status
	}
	to := rapid.SampledFrom(everyStatus).Draw(rt, "to")
	agree(rt, p.model.SetNodeStatus(p.ctx, key, from, to), p.store.SetNodeStatus(p.ctx, key, from, to))
}

func (p *pair) plan(rt *rapid.T) {
	key := p.drawNode(rt)
	batches := specs(rapid.IntRange(0, 3).Draw(rt, "batches"))
	plan := []byte(rapid.SampledFrom([]string{"", "x"}).Draw(rt, "plan"))
	agree(rt, p.model.PlanNode(p.ctx, key, plan, batches), p.store.PlanNode(p.ctx, key, plan, batches))
}

func (p *pair) claim(rt *rapid.T) {
	key := batchOf(p.drawNode(rt), rapid.IntRange(0, 2).Draw(rt, "batch"))
	owner := rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "owner")
	end := p.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "lease")) * time.Minute)
	want, modelErr := p.model.Claim(p.ctx, key, owner, p.now, end)
	got, storeErr := p.store.Claim(p.ctx, key, owner, p.now, end)
	agree(rt, modelErr, storeErr)
	same(rt, want, got)
	if storeErr == nil {
		p.claims = append(p.claims, got)
	}
}

func (p *pair) extend(rt *rapid.T) {
	c := p.drawClaim(rt)
	end := p.now.Add(time.Minute)
	agree(rt, p.model.Extend(p.ctx, c, end), p.store.Extend(p.ctx, c, end))
}

func (p *pair) commit(rt *rapid.T) {
	c := p.drawClaim(rt)
	p.part++
	out := outcome(fmt.Sprint("part ", p.part))
	out.Files = []state.File{{URL: fmt.Sprint("file ", p.part)}}
	out.Parts = append(out.Parts, p.side(rt)...)
	agree(rt, p.model.Commit(p.ctx, c, out, p.now), p.store.Commit(p.ctx, c, out, p.now))
}

func (p *pair) fail(rt *rapid.T) {
	c := p.drawClaim(rt)
	out := state.Outcome{Parts: p.side(rt), Checks: []state.CheckResult{{Name: "c", Failed: int64(p.part)}}}
	agree(rt, p.model.Fail(p.ctx, c, failure(), out, p.now), p.store.Fail(p.ctx, c, failure(), out, p.now))
}

// side is a part of a side table, or none.
func (p *pair) side(rt *rapid.T) []state.Part {
	if !rapid.Bool().Draw(rt, "side") {
		return nil
	}
	p.part++
	return []state.Part{{Key: fmt.Sprint("part ", p.part), Side: state.SideFailed, Seq: 1}}
}

func (p *pair) release(rt *rapid.T) {
	c := p.drawClaim(rt)
	agree(rt, p.model.Release(p.ctx, c, p.now), p.store.Release(p.ctx, c, p.now))
}

func (p *pair) reopen(rt *rapid.T) {
	key := p.drawRun(rt)
	agree(rt, p.model.Reopen(p.ctx, key, p.now), p.store.Reopen(p.ctx, key, p.now))
}

func (p *pair) tick(rt *rapid.T) {
	p.now = p.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds")) * time.Second)
}
