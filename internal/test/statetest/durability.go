package statetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// hostileTexts have tripped stores before: quotes, wildcards, other
// alphabets, control characters, what looks like another type.
var hostileTexts = []string{
	"'", `"`, "''; DROP TABLE runs; --", "%_*?", `\`, "a b", " ", "\n\t", "ß漢字🦊", "null", "0", "-1", "1e9",
	"$1 ?", "ΑΒΓ", "\u00e9", "e\u0301",
	strings.Repeat("x", 300),
}

func testHostileText(t *testing.T, open Open) {
	b := newBench(t, open)
	for i, text := range hostileTexts {
		run := state.Run{
			RunKey: state.RunKey{Workspace: b.workspace}, Created: start, StartNodes: []string{text},
			Script: text, ScriptPath: text, ParamsPath: text, Fingerprint: text, Description: text,
			Actor: text, Token: text, Pins: []state.Pin{{Kind: text, Name: text}},
		}
		key, err := b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: text, Kind: text, Table: text,
			Inputs: []string{text}}},
			state.Blob{Digest: text, Content: []byte(text)})
		require.NoError(t, err)
		require.Equal(t, int64(i+1), key.Run)
		run.RunKey, run.Status = key, state.Running
		got, err := b.Run(b.ctx, key)
		require.NoError(t, err)
		same(t, run, got)

		node := state.NodeKey{RunKey: key, Node: text}
		content, err := b.Blob(b.ctx, text)
		require.NoError(t, err)
		require.Equal(t, []byte(text), content)
		require.NoError(t, b.plan(node, []byte(text), specs(1)))
		c := b.claim(node, 0, text, 0)
		part := state.Part{Key: text, Schema: text, Checksum: text, Attempt: 1}
		file := state.File{NodeKey: node, URL: text, Checksum: text}
		require.NoError(t, b.Commit(b.ctx, c, state.Outcome{Parts: []state.Part{part},
			Files: []state.File{file}}, start))
		parts, err := state.Manifest(b.ctx, b.Store, node)
		require.NoError(t, err)
		same(t, []state.Part{part}, parts)
		files, err := state.All(b.ctx, b.Files, node)
		require.NoError(t, err)
		same(t, []state.File{file}, files)
		require.Equal(t, text, b.theBatch(node, 0).Owner)
	}
	for _, text := range hostileTexts { // as workspaces, each is apart from the others
		key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace + text}}, nil)
		require.NoError(t, err)
		require.Equal(t, int64(1), key.Run, "%q", text)
	}
	_, err := b.CreateRun(b.ctx, state.Run{}, nil)
	require.Error(t, err, "a workspace has a name")
	_, err = b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}},
		[]state.NodeSpec{{Name: "n"}, {Name: "n"}})
	require.Error(t, err, "a node's name is its own")
}

// picture is all that a store says about a run.
type picture struct {
	Run    state.Run
	Notes  []state.Note // of its workspace, on open runs
	Spans  []state.Span
	Events []state.Event
	Listed []state.Node
	Nodes  []nodePicture
}

type nodePicture struct {
	Node         state.Node
	Batches      []state.Batch
	First        state.Batch     // with its work
	Tried        []state.Attempt // of the first
	Unsettled    []state.Batch
	Specs        []state.BatchSpec
	Inputs       []state.Input
	Offers       []state.Offer
	Attempts     []state.Attempt
	Parts        []state.Part
	Files        []state.File
	Checks       []state.CheckResult
	Tally        state.Tally
	Publications []state.Publication
	Events       []state.Event
}

// take takes a picture of a run, with what is on offer now.
func take(ctx context.Context, s state.Store, key state.RunKey, now time.Time) (p picture, err error) {
	if p.Run, err = s.Run(ctx, key); err != nil {
		return p, err
	}
	if p.Events, err = s.Events(ctx, state.NodeKey{RunKey: key}, 0, 0); err != nil {
		return p, err
	}
	if p.Notes, err = state.AllNotes(ctx, s, key.Workspace, state.TopicOpen); err != nil {
		return p, err
	}
	if p.Spans, err = state.All(ctx, s.Sequence, key); err != nil {
		return p, err
	}
	if p.Listed, err = s.Nodes(ctx, key); err != nil {
		return p, err
	}
	for _, n := range p.Listed {
		one, err := takeNode(ctx, s, n.NodeKey, now)
		if err != nil {
			return p, err
		}
		p.Nodes = append(p.Nodes, one)
	}
	return p, nil
}

func takeNode(ctx context.Context, s state.Store, key state.NodeKey, now time.Time) (p nodePicture, err error) {
	errs := make([]error, 14)
	p.Node, errs[0] = s.Node(ctx, key)
	p.Batches, errs[1] = state.All(ctx, s.Batches, key)
	p.Specs, errs[2] = state.All(ctx, s.Specs, key)
	p.Inputs, errs[3] = state.All(ctx, s.Inputs, key)
	p.Attempts, errs[4] = state.All(ctx, s.Attempts, key)
	p.Parts, errs[5] = state.All(ctx, s.Parts, key)
	p.Files, errs[6] = state.All(ctx, s.Files, key)
	p.Checks, errs[7] = state.All(ctx, s.Checks, key)
	p.Publications, errs[8] = state.All(ctx, s.Publications, key)
	p.Events, errs[9] = s.Events(ctx, key, 0, 0)
	p.Offers, _, errs[10] = s.Offers(ctx, key, now, state.Page{})
	p.Tally, errs[11] = s.Tally(ctx, key)
	p.Unsettled, errs[12] = state.All(ctx, s.Unsettled, key)
	if len(p.Batches) > 0 {
		p.First, p.Tried, errs[13] = s.Batch(ctx, state.BatchKey{NodeKey: key})
	}
	return p, errors.Join(errs...)
}

// nodeLists asks for every list of a node, for the error alone.
func nodeLists(ctx context.Context, s state.Store, key state.NodeKey) map[string]error {
	errs := map[string]error{}
	keep := func(name string) func(any, int64, error) {
		return func(_ any, _ int64, err error) { errs[name] = err }
	}
	ask(ctx, s.Batches, key, keep("Batches"))
	ask(ctx, s.Unsettled, key, keep("Unsettled"))
	ask(ctx, s.Specs, key, keep("Specs"))
	ask(ctx, s.Inputs, key, keep("Inputs"))
	ask(ctx, s.Attempts, key, keep("Attempts"))
	ask(ctx, s.Parts, key, keep("Parts"))
	ask(ctx, s.Files, key, keep("Files"))
	ask(ctx, s.Checks, key, keep("Checks"))
	ask(ctx, s.Publications, key, keep("Publications"))
	_, errs["Events"] = s.Events(ctx, key, 0, 0)
	_, _, errs["Offers"] = s.Offers(ctx, key, start, state.Page{})
	_, errs["Node"] = s.Node(ctx, key)
	_, errs["Tally"] = s.Tally(ctx, key)
	_, _, errs["Batch"] = s.Batch(ctx, batchOf(key, 0))
	return errs
}

func ask[T any](ctx context.Context, read func(context.Context, state.NodeKey, state.Page) ([]T, int64, error),
	key state.NodeKey, then func(any, int64, error)) {
	all, next, err := read(ctx, key, state.Page{})
	then(all, next, err)
}

// What a method has said stays said when the store is closed and opened.
func testDurability(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(4)
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 0, "w", 0), outcome("p"), start))
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 1, "w", 0), failure(), beside(), start))
	held := b.claim(key, 2, "w", 0)
	require.NoError(t, b.move(key, state.Running, state.Failed))
	before, err := take(b.ctx, b.Store, key.RunKey, start)
	require.NoError(t, err)
	require.NoError(t, b.Close())

	again := newBench(t, open)
	after, err := take(again.ctx, again.Store, key.RunKey, start)
	require.NoError(t, err)
	same(t, before, after)
	require.NoError(t, again.Commit(again.ctx, held, outcome("q"), start))
	require.Equal(t, int64(2), again.run().Run)
}

// Two open handles see each other's work at once and exclude each other.
func testTwoHandles(t *testing.T, open Open) {
	one, two := newBench(t, open), newBench(t, open)
	key := one.planned(20)
	require.Equal(t, 20, two.theNode(key).BatchesTotal)
	errs := together(40, func(i int) error {
		b := []*bench{one, two}[i%2]
		c, err := b.Claim(b.ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: batchOf(key, i/2)},
			Owner: fmt.Sprint("worker ", i), Token: "t", Now: start, Lease: start.Add(lease)})
		if err != nil {
			return err
		}
		return b.Commit(b.ctx, c, outcome(fmt.Sprint("part ", i/2)), start)
	})
	require.Equal(t, 20, split(t, errs, state.ErrNotClaimable))
	require.Equal(t, one.manifestKeys(key), two.manifestKeys(key))
	require.Equal(t, 20, two.theNode(key).BatchesDone)
	require.Equal(t, int64(2), two.run().Run)
	require.Equal(t, int64(3), one.run().Run)
}

// A call whose context has ended says so and does nothing.
func testCancellation(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(2)
	c := b.claim(key, 0, "w", 0)
	before, err := take(b.ctx, b.Store, key.RunKey, start)
	require.NoError(t, err)

	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	request := b.request(batchOf(key, 1), "w", 0)
	calls := map[string]func() error{
		"CreateRun": func() error {
			_, err := b.CreateRun(ended, state.Run{RunKey: key.RunKey}, nil)
			return err
		},
		"Run":           func() error { _, err := b.Run(ended, key.RunKey); return err },
		"Runs":          func() error { _, _, err := b.Runs(ended, b.workspace, state.Page{}); return err },
		"Workspaces":    func() error { _, err := b.Workspaces(ended); return err },
		"Blob":          func() error { _, err := b.Blob(ended, "d"); return err },
		"BeginCommand":  func() error { return b.BeginCommand(ended, key.RunKey, order(state.CommandStop)) },
		"CommitCommand": func() error { return b.CommitCommand(ended, key.RunKey, 1, start) },
		"CompleteRun":   func() error { return b.CompleteRun(ended, key.RunKey, 0, "w", start) },
		"Acquire":       func() error { _, err := b.Acquire(ended, key.RunKey, "r", "w", start, start); return err },
		"Resign":        func() error { return b.Resign(ended, key.RunKey, "r", "w") },
		"Purge":         func() error { return b.Purge(ended, key) },
		"PutNote":       func() error { return b.PutNote(ended, key.Workspace, state.OpenNote(key.Run, "other", start)) },
		"RemoveNote":    func() error { return b.RemoveNote(ended, key.Workspace, b.notes(state.TopicOpen)[0]) },
		"Notes":         func() error { _, err := b.Notes(ended, key.Workspace, state.TopicOpen, "", 0); return err },
		"Sequence":      func() error { _, _, err := b.Sequence(ended, key.RunKey, state.Page{}); return err },
		"Extend it":     func() error { return b.ExtendSequence(ended, key.RunKey, 0, []state.Span{{From: 1, To: 1}}) },
		"ApplyCommand":  func() error { return b.ApplyCommand(ended, key, state.Command{Kind: state.CommandStop, Epoch: 1}) },
		"Nodes":         func() error { _, err := b.Nodes(ended, key.RunKey); return err },
		"StagePlan":     func() error { return b.StagePlan(ended, key, "d", state.PlanPiece{}) },
		"AdoptPlan":     func() error { return planAt(ended, b.Store, key, 0, []byte("plan"), specs(2)) },
		"MoveNode":      func() error { return b.MoveNode(ended, key, state.Move{From: state.Running, To: state.Failed}) },
		"Claim":         func() error { _, err := b.Claim(ended, request); return err },
		"Extend":        func() error { return b.Extend(ended, c, start.Add(9*lease)) },
		"Announce":      func() error { return b.Announce(ended, c, nil, start.Add(9*lease)) },
		"Forget":        func() error { return b.Forget(ended, c.BatchKey, 1) },
		"Commit":        func() error { return b.Commit(ended, c, outcome("p"), start) },
		"Fail":          func() error { return b.Fail(ended, c, failure(), state.Outcome{}, start) },
		"Retry":         func() error { return b.Retry(ended, c, failure(), stats(), start, start) },
		"Release":       func() error { return b.Release(ended, c, start) },
	}
	for name, err := range nodeLists(ended, b.Store, key) {
		require.ErrorIs(t, err, context.Canceled, name)
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), context.Canceled, name)
	}
	after, err := take(b.ctx, b.Store, key.RunKey, start)
	require.NoError(t, err)
	same(t, before, after)
	require.Equal(t, int64(2), b.run().Run)
}

func testClose(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.run()
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	_, err := b.Run(b.ctx, key)
	require.Error(t, err)
}
