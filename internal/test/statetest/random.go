package statetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/hostile"
)

// randomFor bounds the random operations: a slow backend, or one under the
// race detector, is asked fewer of them.
func randomFor() time.Duration { return effort.Of(2*time.Second, 8*time.Second, 2*time.Minute) }

// testRandom does the same random operations to the store and to the model
// and expects the same answers and the same picture after each of them.
func testRandom(t *testing.T, open Open) {
	b := newBench(t, open)
	var round atomic.Int64
	var failed atomic.Bool // then time is no object: a short counterexample is searched for
	end := time.Now().Add(randomFor())
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
			ctx: b.ctx, store: b.Store, model: hostile.New().Open(), now: start,
			workspace: fmt.Sprintf("%s_%d", b.workspace, round.Add(1)),
		}
		p.create(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":         func(rt *rapid.T) { p.compare(rt, p.touched) },
			"create":   p.create,
			"order":    p.order,
			"hear":     p.hear,
			"end":      p.endOrder,
			"complete": p.complete,
			"role":     p.role,
			"node":     p.moveNode,
			"plan":     p.plan,
			"plan2":    p.plan,
			"claim":    p.claim,
			"claim2":   p.claim, // more often: the rest lives on claims
			"claim3":   p.claim,
			"extend":   p.extend,
			"announce": p.announce,
			"commit":   p.commit,
			"commit2":  p.commit,
			"fail":     p.fail,
			"retry":    p.retry,
			"release":  p.release,
			"clock":    p.tick,
			"purge":    p.purge,
			"note":     p.note,
			"sequence": p.sequence,
		})
		p.compare(rt, p.runs...) // a run that no operation meant is as it was
		for _, key := range p.runs {
			if err := Audit(p.ctx, p.store, key); err != nil {
				rt.Fatal(err)
			}
		}
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
	requests     []state.ClaimRequest
	orders       []givenOrder
	part, token  int
}

type givenOrder struct {
	run   state.RunKey
	order state.Command
}

var (
	randomNodes = []string{"a", "b", "c"}
	randomGates = []string{"this", "that"} // digests of what is decided upon
)

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
		want, modelErr := take(p.ctx, p.model, key, p.now)
		got, storeErr := take(p.ctx, p.store, key, p.now)
		agree(rt, modelErr, storeErr)
		same(rt, want, got)
	}
}

func (p *pair) create(rt *rapid.T) {
	if len(p.runs) == 3 {
		rt.Skip("enough runs")
	}
	run := state.Run{RunKey: state.RunKey{Workspace: p.workspace}, Token: p.next(), Created: p.now, Limit: drawLimit(rt)}
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

// drawLimit draws what a run may take: mostly anything.
func drawLimit(rt *rapid.T) *state.Limit {
	limits := []*state.Limit{nil, nil, {}, {Elapsed: time.Minute}, {Cost: 7, Expected: map[string]time.Duration{"a": 1}}}
	return rapid.SampledFrom(limits).Draw(rt, "limit")
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
	c := p.claims[len(p.claims)-1]
	if rapid.Bool().Draw(rt, "an old one") {
		c = rapid.SampledFrom(p.claims).Draw(rt, "claim")
	}
	p.touched = c.RunKey
	return c
}

func (p *pair) next() string {
	p.token++
	return fmt.Sprint("token ", p.token)
}

var everyOrder = []state.CommandKind{state.CommandStop, state.CommandFail, state.CommandReopen, state.CommandRedo,
	state.CommandRedo, state.CommandInvalidate, state.CommandApprove, state.CommandReject,
	state.CommandPause, state.CommandUnpause, state.CommandDrop, state.CommandTake,
	state.CommandForesee}

// order begins an order, a new one or again one that was begun before.
func (p *pair) order(rt *rapid.T) {
	key := p.drawRun(rt)
	run, err := p.model.Run(p.ctx, key)
	if err != nil {
		rt.Fatal(err)
	}
	o := state.Command{Kind: rapid.SampledFrom(everyOrder).Draw(rt, "kind"), Epoch: run.Epoch + 1, From: run.Status,
		Token: p.next(), Mark: state.Mark{Actor: "boss", Time: p.now}, Limit: drawLimit(rt)}
	if rapid.Bool().Draw(rt, "about") {
		redo := state.CommandNode{Node: rapid.SampledFrom(randomNodes).Draw(rt, "node"),
			Replan: rapid.Bool().Draw(rt, "replan"),
			Digest: rapid.SampledFrom(randomGates).Draw(rt, "gate"), Role: "r", Answers: []byte(`{"a":1}`)}
		if rapid.Bool().Draw(rt, "a batch") {
			redo.Batches = []int{rapid.IntRange(0, 2).Draw(rt, "batch")}
		}
		o.Nodes = []state.CommandNode{redo}
	}
	if len(p.orders) > 0 && rapid.IntRange(0, 4).Draw(rt, "late") == 0 {
		late := p.drawOrder(rt)
		key, o = late.run, late.order
	}
	p.orders = append(p.orders, givenOrder{key, o})
	agree(rt, p.model.BeginCommand(p.ctx, key, o), p.store.BeginCommand(p.ctx, key, o))
	if rapid.Bool().Draw(rt, "carried out") {
		for _, s := range []state.Store{p.model, p.store} {
			run, err := s.Run(p.ctx, key)
			if err != nil {
				rt.Fatal(err)
			}
			if err := state.Carry(p.ctx, s, run, p.now); err != nil {
				rt.Fatal(err)
			}
		}
	}
}

// drawOrder draws an order that was begun at some time: mostly the latest.
func (p *pair) drawOrder(rt *rapid.T) givenOrder {
	if len(p.orders) == 0 {
		rt.Skip("no order yet")
	}
	o := p.orders[len(p.orders)-1]
	if rapid.IntRange(0, 2).Draw(rt, "an old one") == 0 {
		o = rapid.SampledFrom(p.orders).Draw(rt, "order")
	}
	p.touched = o.run
	return o
}

func (p *pair) hear(rt *rapid.T) {
	o := p.drawOrder(rt)
	key := state.NodeKey{RunKey: o.run, Node: rapid.SampledFrom(randomNodes).Draw(rt, "node")}
	run, err := p.model.Run(p.ctx, o.run)
	if err != nil {
		rt.Fatal(err)
	}
	if !o.order.Concerns(key.Node) || o.order.Epoch > run.Epoch || o.order.Epoch == run.Epoch &&
		o.order.Token != run.Command.Token {
		rt.Skip("an order that was never begun")
	}
	agree(rt, p.model.ApplyCommand(p.ctx, key, o.order), p.store.ApplyCommand(p.ctx, key, o.order))
}

func (p *pair) endOrder(rt *rapid.T) {
	o := p.drawOrder(rt)
	agree(rt, p.model.CommitCommand(p.ctx, o.run, o.order.Epoch, p.now),
		p.store.CommitCommand(p.ctx, o.run, o.order.Epoch, p.now))
}

func (p *pair) complete(rt *rapid.T) {
	key, epoch := p.drawRun(rt), int64(rapid.IntRange(0, 2).Draw(rt, "epoch"))
	agree(rt, p.model.CompleteRun(p.ctx, key, epoch, "w", p.now), p.store.CompleteRun(p.ctx, key, epoch, "w", p.now))
}

func (p *pair) role(rt *rapid.T) {
	key, owner := p.drawRun(rt), rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "owner")
	if rapid.IntRange(0, 3).Draw(rt, "resign") == 0 {
		agree(rt, p.model.Resign(p.ctx, key, "r", owner), p.store.Resign(p.ctx, key, "r", owner))
		return
	}
	end := p.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "lease")) * time.Minute)
	want, modelErr := p.model.Acquire(p.ctx, key, "r", owner, p.now, end)
	got, storeErr := p.store.Acquire(p.ctx, key, "r", owner, p.now, end)
	agree(rt, modelErr, storeErr)
	same(rt, want, got)
}

func (p *pair) moveNode(rt *rapid.T) {
	key := p.drawNode(rt)
	at, err := p.model.Node(p.ctx, key)
	if err != nil {
		rt.Fatal(err)
	}
	f := failure()
	m := state.Move{Epoch: at.Epoch, From: at.Status, To: rapid.SampledFrom(everyStatus).Draw(rt, "to"), Failure: &f,
		Gate: []byte("g"), GateDigest: rapid.SampledFrom(randomGates).Draw(rt, "gate"), Actor: "w", Now: p.now}
	if rapid.IntRange(0, 2).Draw(rt, "as it is not") == 0 {
		m.From = rapid.SampledFrom(everyStatus).Draw(rt, "from")
		m.Epoch = int64(rapid.IntRange(0, 2).Draw(rt, "epoch"))
	}
	agree(rt, p.model.MoveNode(p.ctx, key, m), p.store.MoveNode(p.ctx, key, m))
}

func (p *pair) plan(rt *rapid.T) {
	key := p.drawNode(rt)
	at, err := p.model.Node(p.ctx, key)
	if err != nil {
		rt.Fatal(err)
	}
	batches := specs(rapid.IntRange(0, 3).Draw(rt, "batches"))
	for i := range batches {
		batches[i].Phase = rapid.IntRange(0, 1).Draw(rt, "phase")
	}
	plan := state.Plan{Record: []byte(rapid.SampledFrom([]string{"", "x"}).Draw(rt, "plan")), Batches: batches}
	plan.Inputs = []state.Input{{Address: "a", Time: p.now}}
	epoch := max(at.Epoch-int64(rapid.IntRange(0, 3).Draw(rt, "late")/3), 0)
	want, modelErr := state.PlanNode(p.ctx, p.model, key, epoch, plan, "w", p.now)
	got, storeErr := state.PlanNode(p.ctx, p.store, key, epoch, plan, "w", p.now)
	agree(rt, modelErr, storeErr)
	same(rt, want, got)
}

// claim requests for a batch: on offer or not, or again as before.
func (p *pair) claim(rt *rapid.T) {
	key := p.drawNode(rt)
	offers, _, err := p.model.Offers(p.ctx, key, p.now, state.Page{})
	if err != nil {
		rt.Fatal(err)
	}
	request := state.ClaimRequest{Offer: state.Offer{BatchKey: batchOf(key, rapid.IntRange(0, 2).Draw(rt, "batch"))}}
	if len(offers) > 0 && rapid.IntRange(0, 4).Draw(rt, "on offer") > 0 {
		request.Offer = rapid.SampledFrom(offers).Draw(rt, "offer")
	}
	request.Owner, request.Token, request.Now = rapid.SampledFrom([]string{"w1", "w2"}).Draw(rt, "owner"), p.next(), p.now
	request.Lease = p.now.Add(time.Duration(rapid.IntRange(1, 3).Draw(rt, "lease")) * time.Minute)
	if len(p.requests) > 0 && rapid.IntRange(0, 5).Draw(rt, "again") == 0 {
		request = rapid.SampledFrom(p.requests).Draw(rt, "request")
		p.touched = request.RunKey
	}
	p.requests = append(p.requests, request)
	want, modelErr := p.model.Claim(p.ctx, request)
	got, storeErr := p.store.Claim(p.ctx, request)
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
	out.Stats.Elapsed, out.Stats.PeakBytes = time.Duration(p.part)*time.Second, int64(p.part)
	out.Stats.Warnings = []string{fmt.Sprint("warning ", p.part)}
	out.Stats.Repeats = []state.Repeat{{Kind: fmt.Sprint(p.part % 2), First: fmt.Sprint("first ", p.part),
		Count: int64(p.part), Of: "values"}}
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

func (p *pair) retry(rt *rapid.T) {
	c, at := p.drawClaim(rt), p.now.Add(time.Duration(rapid.IntRange(0, 100).Draw(rt, "wait"))*time.Second)
	agree(rt, p.model.Retry(p.ctx, c, failure(), stats(), at, p.now), p.store.Retry(p.ctx, c, failure(), stats(),
		at, p.now))
}

func (p *pair) announce(rt *rapid.T) {
	c, end := p.drawClaim(rt), p.now.Add(time.Minute)
	all := []state.Publication{{Address: "a"}, {Seq: 1, Address: "b", Upload: "u"}}[:rapid.IntRange(0,
		2).Draw(rt, "files")]
	agree(rt, p.model.Announce(p.ctx, c, all, end), p.store.Announce(p.ctx, c, all, end))
	if rapid.IntRange(0, 3).Draw(rt, "forget") == 0 {
		agree(rt, p.model.Forget(p.ctx, c.BatchKey, c.Attempt), p.store.Forget(p.ctx, c.BatchKey, c.Attempt))
	}
}

func (p *pair) purge(rt *rapid.T) {
	key := p.drawNode(rt)
	agree(rt, p.model.Purge(p.ctx, key), p.store.Purge(p.ctx, key))
}

func (p *pair) note(rt *rapid.T) {
	n := state.OpenNote(p.drawRun(rt).Run, rapid.SampledFrom([]string{"", "x"}).Draw(rt, "token"), p.now)
	if rapid.Bool().Draw(rt, "remove") {
		agree(rt, p.model.RemoveNote(p.ctx, p.workspace, n), p.store.RemoveNote(p.ctx, p.workspace, n))
		return
	}
	agree(rt, p.model.PutNote(p.ctx, p.workspace, n), p.store.PutNote(p.ctx, p.workspace, n))
}

func (p *pair) sequence(rt *rapid.T) {
	key, at := p.drawRun(rt), int64(rapid.IntRange(0, 3).Draw(rt, "at"))
	spans := []state.Span{{From: 1, To: at + 1}, {Node: "a", From: at + 1, To: at + 2}}[:rapid.IntRange(0,
		2).Draw(rt, "spans")]
	agree(rt, p.model.ExtendSequence(p.ctx, key, at, spans), p.store.ExtendSequence(p.ctx, key, at, spans))
}

func (p *pair) tick(rt *rapid.T) {
	p.now = p.now.Add(time.Duration(rapid.IntRange(1, 200).Draw(rt, "seconds")) * time.Second)
}
