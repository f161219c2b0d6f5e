package cassandra

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

// What a process remembers of notes, runs and workspaces saves requests, and is never
// more than a guess: others remove and put notes meanwhile.
func TestMemory(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := newKeyspace(t)
	open := func() (*Store, *counter) {
		c := &counter{}
		s, err := Open(ctx, Config{Config: cfg, Requests: c})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s, c
	}
	mine, asked := open()
	other, _ := open()
	note := func(text string) state.Note {
		return state.Note{Topic: "t", Name: "n", Data: []byte(text), Time: time.UnixMilli(1_700_000_000_000).UTC()}
	}
	standing := func() (texts []string) {
		notes, err := other.Notes(ctx, "w", "t", "", 0)
		require.NoError(t, err)
		for _, n := range notes {
			texts = append(texts, string(n.Data))
		}
		return texts
	}
	require.NoError(t, mine.PutNote(ctx, "w", note("1")))
	before := asked.count()
	require.NoError(t, mine.PutNote(ctx, "w", note("2")))
	require.Equal(t, before+1, asked.count(), "it is known to be there")
	require.Equal(t, []string{"2"}, standing())
	require.NoError(t, other.RemoveNote(ctx, "w", note("2")))
	require.NoError(t, mine.PutNote(ctx, "w", note("3")))
	require.Equal(t, []string{"3"}, standing(), "it is put although it was thought to be there")
	require.NoError(t, mine.RemoveNote(ctx, "w", note("3")))
	require.NoError(t, other.PutNote(ctx, "w", note("4")))
	require.NoError(t, mine.PutNote(ctx, "w", note("5")))
	require.Equal(t, []string{"5"}, standing(), "it is put although it was thought to be gone")

	key, err := mine.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "a"},
		[]state.NodeSpec{{Name: "a"}, {Name: "b"}})
	require.NoError(t, err)
	for range 2 {
		before = asked.count()
		nodes, err := mine.Nodes(ctx, key)
		require.NoError(t, err)
		require.Len(t, nodes, 2)
	}
	require.Equal(t, before+1, asked.count(), "their names are known")
	_, err = mine.Nodes(ctx, state.RunKey{Workspace: "w", Run: key.Run + 1})
	require.ErrorIs(t, err, state.ErrNotFound)
	for range 2 {
		before = asked.count()
		names, err := mine.Workspaces(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{"w"}, names)
	}
	require.Equal(t, before+1, asked.count(), "it is known to have runs")
}

// A read of one row is one request: not another one for a page that is empty.
func TestOneRowIsOneRequest(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := newKeyspace(t)
	sent := &requests{}
	cfg.Observer = sent
	s, err := Open(ctx, Config{Config: cfg})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	key, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Token: "a"},
		[]state.NodeSpec{{Name: "a"}})
	require.NoError(t, err)
	before := sent.n.Load()
	_, err = s.Run(ctx, key)
	require.NoError(t, err)
	require.Equal(t, before+1, sent.n.Load())
}

// Managed services refuse requests that name many rows.
func TestRequestsNameFewRows(t *testing.T) {
	t.Parallel()
	batches := make([]int, 3*sliceRows/2)
	for i := range batches {
		batches[i] = sliceRows/2 + i
	}
	var all []int
	for _, request := range bySlice(batches) {
		require.LessOrEqual(t, len(request), valuesMax)
		for _, b := range request {
			require.Equal(t, request[0]/sliceRows, b/sliceRows)
			all = append(all, int(b))
		}
	}
	require.Equal(t, batches, all)

	l := &writeQueues{known: map[state.NodeKey]*writeQueue{}}
	way := &writeQueue{}
	for b := range groupCalls {
		way.waiting = append(way.waiting, &call{asker: t.Context(),
			places: []place{segmentPlace(0), attemptPlace(b, 1)}})
	}
	for left := groupCalls; left > 0; left = len(way.waiting) {
		g := &group{way: way}
		require.True(t, l.admit(g, true))
		require.LessOrEqual(t, len(g.places())+1, valuesMax) // and the head
		require.Less(t, len(way.waiting), left)
	}
}

// requests counts what the driver sends.
type requests struct{ n atomic.Int64 }

func (r *requests) Request(string, time.Duration, error) { r.n.Add(1) }
