package statetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/state"
)

// hostile texts have tripped stores before: quotes, wildcards, other
// alphabets, control characters, what looks like another type.
var hostile = []string{
	"'", `"`, "''; DROP TABLE runs; --", "%_*?", `\`, "a b", " ", "\n\t", "ß漢字🦊", "null", "0", "-1", "1e9", "$1 ?", "ΑΒΓ", "\u00e9", "e\u0301",
	strings.Repeat("x", 300),
}

func testHostileText(t *testing.T, open Open) {
	b := newBench(t, open)
	for i, text := range hostile {
		run := state.Run{
			RunKey: state.RunKey{Workspace: b.workspace}, Created: start, StartNodes: []string{text},
			Script: text, ScriptPath: text, ParamsPath: text, Fingerprint: text, Description: text, Definition: []byte(text),
		}
		key, err := b.CreateRun(b.ctx, run, []state.NodeSpec{{Name: text, Kind: text, Inputs: []string{text}}})
		require.NoError(t, err)
		require.Equal(t, int64(i+1), key.Run)
		run.RunKey, run.Status = key, state.Running
		got, err := b.Run(b.ctx, key)
		require.NoError(t, err)
		same(t, run, got)

		node := state.NodeKey{RunKey: key, Node: text}
		require.NoError(t, b.PlanNode(b.ctx, node, []byte(text), specs(1)))
		c := b.claim(node, 0, text, 0)
		part := state.Part{Key: text, Schema: text, Checksum: text}
		file := state.File{NodeKey: node, URL: text, Checksum: text}
		require.NoError(t, b.Commit(b.ctx, c, state.Outcome{Parts: []state.Part{part}, Files: []state.File{file}}, start))
		parts, err := b.Manifest(b.ctx, node)
		require.NoError(t, err)
		same(t, []state.Part{part}, parts)
		files, err := b.Files(b.ctx, key)
		require.NoError(t, err)
		same(t, []state.File{file}, files)
		require.Equal(t, text, b.theBatch(node, 0).Owner)
	}
	for _, text := range hostile { // as workspaces, each is apart from the others
		key, err := b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace + text}}, nil)
		require.NoError(t, err)
		require.Equal(t, int64(1), key.Run, "%q", text)
	}
	_, err := b.CreateRun(b.ctx, state.Run{}, nil)
	require.Error(t, err, "a workspace has a name")
	_, err = b.CreateRun(b.ctx, state.Run{RunKey: state.RunKey{Workspace: b.workspace}}, []state.NodeSpec{{Name: "n"}, {Name: "n"}})
	require.Error(t, err, "a node's name is its own")
}

// picture is all that a store says about a run.
type picture struct {
	Run      state.Run
	Nodes    []state.Node
	Batches  map[string][]state.Batch
	Attempts map[string][]state.Attempt
	Parts    map[string][]state.Part
	Sides    map[string][]state.Part
	Files    []state.File
	Checks   []state.CheckResult
}

func take(ctx context.Context, s state.Store, key state.RunKey) (p picture, err error) {
	p = picture{Batches: map[string][]state.Batch{}, Attempts: map[string][]state.Attempt{}, Parts: map[string][]state.Part{}, Sides: map[string][]state.Part{}}
	if p.Run, err = s.Run(ctx, key); err != nil {
		return p, err
	}
	if p.Nodes, err = s.Nodes(ctx, key); err != nil {
		return p, err
	}
	if p.Files, err = s.Files(ctx, key); err != nil {
		return p, err
	}
	if p.Checks, err = s.Checks(ctx, key); err != nil {
		return p, err
	}
	for _, n := range p.Nodes {
		var errs [4]error
		p.Batches[n.Name], errs[0] = s.Batches(ctx, n.NodeKey)
		p.Attempts[n.Name], errs[1] = s.Attempts(ctx, n.NodeKey)
		p.Parts[n.Name], errs[2] = s.Manifest(ctx, n.NodeKey)
		p.Sides[n.Name], errs[3] = s.SideParts(ctx, n.NodeKey)
		if err := errors.Join(errs[:]...); err != nil {
			return p, err
		}
	}
	return p, nil
}

// What a method has said stays said when the store is closed and opened.
func testDurability(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.planned(4)
	require.NoError(t, b.Commit(b.ctx, b.claim(key, 0, "w", 0), outcome("p"), start))
	require.NoError(t, b.Fail(b.ctx, b.claim(key, 1, "w", 0), failure(), beside(), start))
	held := b.claim(key, 2, "w", 0)
	require.NoError(t, b.SetNodeStatus(b.ctx, key, state.Running, state.Failed))
	before, err := take(b.ctx, b.Store, key.RunKey)
	require.NoError(t, err)
	require.NoError(t, b.Close())

	again := newBench(t, open)
	after, err := take(again.ctx, again.Store, key.RunKey)
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
		c, err := b.Claim(b.ctx, batchOf(key, i/2), fmt.Sprint("worker ", i), start, start.Add(lease))
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
	before, err := take(b.ctx, b.Store, key.RunKey)
	require.NoError(t, err)

	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	calls := map[string]func() error{
		"CreateRun": func() error {
			_, err := b.CreateRun(ended, state.Run{RunKey: key.RunKey}, nil)
			return err
		},
		"Run":           func() error { _, err := b.Run(ended, key.RunKey); return err },
		"Runs":          func() error { _, err := b.Runs(ended, b.workspace); return err },
		"Workspaces":    func() error { _, err := b.Workspaces(ended); return err },
		"SetRunStatus":  func() error { return b.SetRunStatus(ended, key.RunKey, state.Running, state.Stopped, nil) },
		"Nodes":         func() error { _, err := b.Nodes(ended, key.RunKey); return err },
		"Node":          func() error { _, err := b.Node(ended, key); return err },
		"PlanNode":      func() error { return b.PlanNode(ended, key, []byte("plan"), specs(2)) },
		"SetNodeStatus": func() error { return b.SetNodeStatus(ended, key, state.Running, state.Failed) },
		"Batches":       func() error { _, err := b.Batches(ended, key); return err },
		"Claim": func() error {
			_, err := b.Claim(ended, batchOf(key, 1), "w", start, start.Add(lease))
			return err
		},
		"Extend":    func() error { return b.Extend(ended, c, start.Add(9*lease)) },
		"Commit":    func() error { return b.Commit(ended, c, outcome("p"), start) },
		"Fail":      func() error { return b.Fail(ended, c, failure(), state.Outcome{}, start) },
		"Release":   func() error { return b.Release(ended, c, start) },
		"Attempts":  func() error { _, err := b.Attempts(ended, key); return err },
		"Reopen":    func() error { return b.Reopen(ended, key.RunKey, start) },
		"Manifest":  func() error { _, err := b.Manifest(ended, key); return err },
		"SideParts": func() error { _, err := b.SideParts(ended, key); return err },
		"Files":     func() error { _, err := b.Files(ended, key.RunKey); return err },
		"Checks":    func() error { _, err := b.Checks(ended, key.RunKey); return err },
	}
	for name, call := range calls {
		require.ErrorIs(t, call(), context.Canceled, name)
	}
	after, err := take(b.ctx, b.Store, key.RunKey)
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
