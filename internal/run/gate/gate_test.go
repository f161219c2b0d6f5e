package gate_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/statetest/hostile"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func record() gate.Record {
	r := gate.Record{Gate: "orders", Table: "orders", By: []string{"sales"}, Timeout: "36h0m0s",
		Shows:   []gate.Shown{{Table: "orders", Digest: "sha256:a", Rows: 3}},
		Failed:  []gate.Check{{Name: "unique(id)", Failed: 2}},
		Answers: []gate.Question{{Name: "cutoff", Type: "int", Default: "1"}}}
	r.SetDigest()
	return r
}

// A digest is of what is shown and asked for, not of when, by whom and in which words.
func TestDigest(t *testing.T) {
	t.Parallel()
	want := record().Digest
	same := record().Begin(noon)
	same.By, same.Message, same.Shows[0].Run, same.Shows[0].Bytes = nil, "other words", 9, 9
	same.SetDigest()
	require.Equal(t, want, same.Digest)
	for i, change := range []func(*gate.Record){
		func(r *gate.Record) { r.Gate = "order" },
		func(r *gate.Record) { r.Shows[0].Digest = "sha256:b" },
		func(r *gate.Record) { r.Shows[0].Rows++ },
		func(r *gate.Record) { r.Shows = append(r.Shows, r.Shows[0]) },
		func(r *gate.Record) { r.Shows = nil },
		func(r *gate.Record) { r.Failed[0].Failed++ },
		func(r *gate.Record) { r.Failed = nil },
		func(r *gate.Record) { r.Answers[0].Max = "5" },
		func(r *gate.Record) { r.Answers[0].OneOf = []string{"1"} },
	} {
		r := record()
		change(&r)
		r.SetDigest()
		require.NotEqual(t, want, r.Digest, i)
	}
	data, err := same.Encode()
	require.NoError(t, err)
	read, err := gate.Decode(data)
	require.NoError(t, err)
	require.Equal(t, same, read)
	_, err = gate.Decode([]byte(`{"version":2,"gate":"orders"}`))
	require.ErrorContains(t, err, "what gate orders asks has form 2, and this program knows forms up to 1")
}

// People name a digest by its first digits, but not by a few.
func TestNamed(t *testing.T) {
	t.Parallel()
	r := record()
	for digits, want := range map[string][2]bool{
		r.Digest: {true, true}, r.Short(): {true, true}, " " + strings.ToUpper(r.Short()): {true, true},
		"sha256:" + r.Short(): {true, true},
		r.Short()[:8]:         {true, true}, r.Short()[:7]: {false, false}, "": {false, false},
		"sha256:": {false, false}, "latestone": {false, false},
		"00000000": {false, true}, r.Digest + "0": {false, true},
	} {
		same, ok := r.Named(digits)
		require.Equal(t, want, [2]bool{same, ok}, digits)
	}
	require.Len(t, r.Short(), 12)
	require.Empty(t, gate.Record{}.Short())
}

// The digest of a table is of its parts: of their contents, order and places.
func TestTableDigest(t *testing.T) {
	t.Parallel()
	parts := func() []state.Part {
		return []state.Part{{Key: "x/1", Batch: 0, Bucket: -1, Rows: 2, Bytes: 10, Schema: "s", Checksum: "crc32c:1",
			Attempt: 1}, {Key: "x/2", Batch: 1, Bucket: -1, Rows: 3, Bytes: 20, Schema: "s", Checksum: "crc32c:2"}}
	}
	want, rows, bytes := gate.TableDigest(parts())
	require.Equal(t, []int64{5, 30}, []int64{rows, bytes})
	elsewhere := parts()
	elsewhere[0].Key, elsewhere[0].Attempt = "y/7", 3
	got, _, _ := gate.TableDigest(elsewhere)
	require.Equal(t, want, got, "whoever wrote them, and wherever they lie")
	for i, change := range []func([]state.Part) []state.Part{
		func(p []state.Part) []state.Part { p[0].Checksum = "crc32c:3"; return p },
		func(p []state.Part) []state.Part { p[0].Rows++; return p },
		func(p []state.Part) []state.Part { p[0].Schema = "t"; return p },
		func(p []state.Part) []state.Part { p[0], p[1] = p[1], p[0]; return p },
		func(p []state.Part) []state.Part { return p[:1] },
		func([]state.Part) []state.Part { return nil },
	} {
		got, _, _ := gate.TableDigest(change(parts()))
		require.NotEqual(t, want, got, i)
	}
}

// The time to decide begins with the wait, and what is decided later counts for nothing.
func TestTheTimeToDecide(t *testing.T) {
	t.Parallel()
	r := record().Begin(noon)
	require.Equal(t, noon.Add(36*time.Hour), r.Until)
	require.False(t, r.Over(r.Until.Add(-1)))
	require.True(t, r.Over(r.Until))
	forever := record()
	forever.Timeout = ""
	require.False(t, forever.Begin(noon).Over(noon.AddDate(100, 0, 0)))

	data, err := r.Encode()
	require.NoError(t, err)
	decided := func(d state.Decision) (gate.Record, error) {
		now := record()
		err := gate.CheckDecision(state.Node{NodeSpec: state.NodeSpec{Name: "approval:orders", Kind: gate.Kind}, Gate: data,
			GateDigest: r.Digest, Decision: &d}, &now)
		return now, err
	}
	in := state.Mark{Actor: "boss", Time: noon.Add(time.Hour)}
	passed, err := decided(state.Decision{Approved: true, Mark: in, Digest: r.Digest})
	require.NoError(t, err)
	require.Equal(t, "approved by boss at 2026-01-01T13:00:00Z", passed.Passed)
	require.Equal(t, r.Until, passed.Until)
	_, err = decided(state.Decision{Approved: true, Mark: in, Digest: "sha256:other"})
	require.ErrorContains(t, err, "is void: what boss at 2026-01-01T13:00:00Z decided on has changed since")
	_, err = decided(state.Decision{Approved: true, Mark: state.Mark{Actor: "boss", Time: r.Until}, Digest: r.Digest})
	require.ErrorContains(t, err, "nobody has approved gate orders within 1 d 12 h")
	_, err = decided(state.Decision{Mark: in, Digest: r.Digest})
	require.Error(t, err, "a rejection lets nothing pass")
}

// counted counts what is read of runs.
type counted struct {
	state.Store
	runs, nodes int
}

func (c *counted) Runs(ctx context.Context, workspace string, page state.Page) ([]state.Run, int64, error) {
	c.runs++
	return c.Store.Runs(ctx, workspace, page)
}

func (c *counted) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	c.nodes++
	return c.Store.Node(ctx, key)
}

// What waits is found by its notes, whatever else there is; notes of what does
// not wait go, but not those of what is about to.
func TestWaiting(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	s := &counted{Store: store}
	data, err := record().Begin(noon).Encode()
	require.NoError(t, err)
	var waits state.NodeKey
	for i := range 30 {
		key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Token: fmt.Sprint(i),
			Created: noon}, []state.NodeSpec{{Name: "approval:orders", Kind: gate.Kind}})
		require.NoError(t, err)
		waits = state.NodeKey{RunKey: key, Node: "approval:orders"}
		if i >= 10 && i < 13 {
			require.NoError(t, gate.Note(ctx, s, waits, noon))
		}
		if i == 11 {
			require.NoError(t, store.MoveNode(ctx, waits, state.Move{From: state.Pending, To: state.Waiting, Gate: data,
				GateDigest: record().Digest, Now: noon}))
		}
	}
	// of a run that is gone
	require.NoError(t, gate.Note(ctx, s, state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 99},
		Node: "approval:orders"}, noon))

	asked, err := gate.Waiting(ctx, s, "main", noon)
	require.NoError(t, err)
	require.Len(t, asked, 1)
	require.Equal(t, int64(12), asked[0].Run)
	require.Equal(t, []int{0, 4}, []int{s.runs, s.nodes}, "it looks at what has a note")
	notes, err := state.AllNotes(ctx, s, "main", state.TopicWaiting)
	require.NoError(t, err)
	require.Len(t, notes, 4, "they may be about to wait")

	_, err = gate.Waiting(ctx, s, "main", noon.Add(time.Hour))
	require.NoError(t, err)
	notes, err = state.AllNotes(ctx, s, "main", state.TopicWaiting)
	require.NoError(t, err)
	require.Len(t, notes, 1)
}

// A gate that is done again asks again, whatever the order says of its plan:
// that tells who has let it pass.
func TestAGateThatIsDoneAgainAsksAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Token: "t", Created: noon},
		[]state.NodeSpec{{Name: "approval:orders", Kind: gate.Kind}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "approval:orders"}
	_, err = state.PlanNode(ctx, store, key, 0, state.Plan{Record: []byte("{}")}, "w", noon)
	require.NoError(t, err)
	require.NoError(t, store.MoveNode(ctx, key, state.Move{From: state.Running, To: state.Succeeded, Now: noon}))
	require.NoError(t, state.Direct(ctx, store, run, state.Command{Kind: state.CommandRedo, Token: "again",
		Mark: state.Mark{Actor: "boss", Time: noon}, Nodes: []state.CommandNode{{Node: key.Node}}}))
	n, err := store.Node(ctx, key)
	require.NoError(t, err)
	require.Equal(t, []any{state.Pending, ""}, []any{n.Status, n.PlanDigest})
}

// Who saw a gate fail and comes late fails no run that was reopened meanwhile.
func TestARejectionOfBeforeFailsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := hostile.New().Open()
	run, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "main"}, Token: "t", Created: noon},
		[]state.NodeSpec{{Name: "approval:orders", Kind: gate.Kind}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "approval:orders"}
	require.NoError(t, store.MoveNode(ctx, key, state.Move{From: state.Pending, To: state.Failed,
		Failure: &state.Failure{Message: "rejected"}, Now: noon}))
	seen, err := store.Node(ctx, key)
	require.NoError(t, err)
	status := func() state.Status {
		now, err := store.Run(ctx, run)
		require.NoError(t, err)
		return now.Status
	}
	require.NoError(t, gate.Fail(ctx, store, seen, "w", noon))
	require.Equal(t, state.Failed, status())
	require.NoError(t, state.Direct(ctx, store, run, state.Command{Kind: state.CommandReopen, Token: "again",
		Mark: state.Mark{Actor: "boss", Time: noon}}))
	require.NoError(t, gate.Fail(ctx, store, seen, "w", noon))
	require.Equal(t, state.Running, status())
}
