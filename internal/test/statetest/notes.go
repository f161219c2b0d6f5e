package statetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
)

func (b *bench) notes(topic string) []state.Note {
	b.t.Helper()
	all, err := state.AllNotes(b.ctx, b.Store, b.workspace, topic)
	require.NoError(b.t, err)
	return all
}

// Notes are kept by topic and name, the last one put; only one that is as it was
// read is removed.
func testNotes(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("n")
	first := state.Note{Topic: "t/1", Name: "b", Run: 1, Node: "n", Data: []byte("x\x00\xff"), Time: start}
	others := []state.Note{{Topic: "t/1", Name: "a"}, {Topic: "t/1", Name: "c", Data: make([]byte, state.NoteBytesMax)},
		{Topic: "t", Name: "b"}}
	for _, n := range append(others, first) {
		require.NoError(t, b.PutNote(b.ctx, b.workspace, n))
	}
	same(t, []state.Note{others[0], first, others[1]}, b.notes("t/1"))
	some, err := b.Notes(b.ctx, b.workspace, "t/1", "a", 1)
	require.NoError(t, err)
	same(t, []state.Note{first}, some)
	some, err = b.Notes(b.ctx, b.workspace, "t/1", "bb", 0)
	require.NoError(t, err)
	same(t, others[1:2], some)
	elsewhere, err := state.AllNotes(b.ctx, b.Store, b.workspace+"_2", "t/1")
	require.NoError(t, err)
	require.Empty(t, elsewhere)

	for _, change := range []func(*state.Note){
		func(n *state.Note) { n.Data = nil }, func(n *state.Note) { n.Time = start.Add(time.Second) },
		func(n *state.Note) { n.Time = time.Time{} },
		func(n *state.Note) { n.Run++ }, func(n *state.Note) { n.Node = "" }, func(n *state.Note) { n.Name = "none" },
	} {
		other := first
		change(&other)
		require.NoError(t, b.RemoveNote(b.ctx, b.workspace, other))
	}
	require.Len(t, b.notes("t/1"), 3)
	second := first
	second.Data = nil
	require.NoError(t, b.PutNote(b.ctx, b.workspace, second))
	require.NoError(t, b.RemoveNote(b.ctx, b.workspace, first))
	same(t, []state.Note{others[0], second, others[1]}, b.notes("t/1"))
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.RemoveNote(b.ctx, b.workspace, second))
		require.NoError(t, b.RemoveNote(b.ctx, b.workspace, others[0]))
		same(t, others[1:2], b.notes("t/1"))
	}
	same(t, others[2:], b.notes("t"))
	for _, bad := range []state.Note{{Topic: "t"}, {Name: "n"},
		{Topic: "t", Name: "n", Data: make([]byte, state.NoteBytesMax+1)}} {
		require.Error(t, b.PutNote(b.ctx, b.workspace, bad))
	}
	require.NoError(t, b.direct(run, state.CommandStop))
	require.Equal(t, int64(2), b.run("n").Run, "notes are no runs")
	names, err := b.Workspaces(b.ctx)
	require.NoError(t, err)
	require.NotContains(t, names, b.workspace+"_2")
}

func (b *bench) openRuns() []int64 {
	b.t.Helper()
	runs, err := state.OpenRuns(b.ctx, b.Store, b.workspace, nil)
	require.NoError(b.t, err)
	numbers := []int64{}
	for _, r := range runs {
		numbers = append(numbers, r.Run)
	}
	return numbers
}

// Runs that are not over are found without reading those that are.
func testOpenRuns(t *testing.T, open Open) {
	b := newBench(t, open)
	var keys []state.RunKey
	for range 12 { // their names are in the order of their numbers
		keys = append(keys, b.run())
	}
	require.Equal(t, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b.openRuns())
	for i, kind := range []state.CommandKind{state.CommandStop, state.CommandFail, state.CommandPause} {
		require.NoError(t, b.direct(keys[i], kind))
	}
	for _, key := range keys[4:] {
		require.NoError(t, state.Finish(b.ctx, b.Store, key, 0, "w", start))
	}
	require.Len(t, b.notes(state.TopicOpen), 2, "who ends a run removes its note")
	require.NoError(t, b.CompleteRun(b.ctx, keys[3], 0, "w", start)) // and then it dies
	require.Len(t, b.notes(state.TopicOpen), 2)
	require.Equal(t, []int64{3}, b.openRuns())
	require.Len(t, b.notes(state.TopicOpen), 1, "who finds it removes it")
	require.NoError(t, b.direct(keys[0], state.CommandReopen))
	require.Equal(t, []int64{1, 3}, b.openRuns())
	require.NoError(t, b.direct(keys[2], state.CommandUnpause))
	require.NoError(t, b.direct(keys[2], state.CommandStop))
	require.Equal(t, []int64{1}, b.openRuns())
	require.NoError(t, b.direct(keys[2], state.CommandDrop))
	require.Equal(t, []int64{1}, b.openRuns())

	// A note may be there before its run is.
	early := state.OpenNote(99, "", start)
	require.NoError(t, b.PutNote(b.ctx, b.workspace, early))
	require.Equal(t, []int64{1}, b.openRuns())
	require.Len(t, b.notes(state.TopicOpen), 2)
}

// beforehand does something just before an order begins.
type beforehand struct {
	state.Store
	do func() error
}

// BeginCommand implements state.Store.
func (s beforehand) BeginCommand(ctx context.Context, key state.RunKey, o state.Command) error {
	return errors.Join(s.do(), s.Store.BeginCommand(ctx, key, o))
}

// A note that somebody has read before its run goes on, and removes when it has, is not the one that is there by then.
func testOpenRunsRemovedLate(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run()
	require.NoError(t, b.direct(run, state.CommandStop))
	var read []state.Note
	s := beforehand{Store: b.Store, do: func() error { read = b.notes(state.TopicOpen); return nil }}
	reopen := order(state.CommandReopen)
	require.NoError(t, state.Direct(b.ctx, s, run, reopen))
	require.Len(t, read, 1)
	require.NoError(t, b.RemoveNote(b.ctx, b.workspace, read[0]))
	require.Equal(t, []int64{run.Run}, b.openRuns())
	// nor is it if the process that has let it go on died before it could say so, and somebody repeats the command
	require.NoError(t, b.RemoveNote(b.ctx, b.workspace, b.notes(state.TopicOpen)[0]))
	require.NoError(t, state.Direct(b.ctx, b.Store, run, reopen))
	require.Equal(t, []int64{run.Run}, b.openRuns())
}

// A note that somebody finds wrong just before its run goes on is put again.
func testOpenRunsFoundWrong(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run()
	require.NoError(t, b.direct(run, state.CommandStop))
	found := 0
	s := beforehand{Store: b.Store, do: func() error {
		require.Len(t, b.notes(state.TopicOpen), 1, "before it goes on")
		require.Empty(t, b.openRuns())
		require.Empty(t, b.notes(state.TopicOpen))
		found++
		return nil
	}}
	require.NoError(t, state.Direct(b.ctx, s, run, order(state.CommandReopen)))
	require.Equal(t, 1, found)
	require.Equal(t, []int64{1}, b.openRuns())
}

// Whoever looks for open runs while others end them and let them go on loses none.
func testOpenRunsRace(t *testing.T, open Open) {
	b := newBench(t, open)
	key := b.run()
	errs := together(6, func(i int) error {
		for range 5 {
			kind := state.CommandStop
			switch {
			case i >= 4:
				if _, err := state.OpenRuns(b.ctx, b.Store, b.workspace, nil); err != nil {
					return err
				}
				continue
			case i%2 == 0:
				kind = state.CommandReopen
			}
			if err := state.Direct(b.ctx, b.Store, key, order(kind)); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
		return nil
	})
	split(t, errs, state.ErrConflict)
	run, err := b.Run(b.ctx, key)
	require.NoError(t, err)
	if run.Status == state.Running {
		require.Equal(t, []int64{1}, b.openRuns())
	} else {
		require.Empty(t, b.openRuns())
	}
}

// The order of a run's events is what the first reader says; whoever does not
// know how long it is reads on.
func testSequence(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("n")
	all := []state.Span{{From: 1, To: 1}, {Node: "n", From: 1, To: 7}, {From: 2, To: 4}, {Node: "n", From: 8, To: 8}}
	read := func() []state.Span {
		t.Helper()
		spans, err := state.All(b.ctx, b.Sequence, run)
		require.NoError(t, err)
		return spans
	}
	require.Empty(t, read())
	require.ErrorIs(t, b.ExtendSequence(b.ctx, run, 1, all[:1]), state.ErrConflict, "there is nothing yet")
	for range 2 { // the second time as one that did not hear the answer
		require.NoError(t, b.ExtendSequence(b.ctx, run, 0, all[:2]))
	}
	require.ErrorIs(t, b.ExtendSequence(b.ctx, run, 0, all[:3]), state.ErrConflict)
	require.ErrorIs(t, b.ExtendSequence(b.ctx, run, 0, all[1:2]), state.ErrConflict)
	require.ErrorIs(t, b.ExtendSequence(b.ctx, run, 1, all[2:3]), state.ErrConflict)
	require.ErrorIs(t, b.ExtendSequence(b.ctx, run, 3, all[3:]), state.ErrConflict)
	require.NoError(t, b.ExtendSequence(b.ctx, run, 2, all[2:]))
	require.NoError(t, b.ExtendSequence(b.ctx, run, 0, all[:2]), "late")
	require.NoError(t, b.ExtendSequence(b.ctx, run, 4, nil))
	same(t, all, read())
	paged(b, run, b.Sequence, 4)
	for _, bad := range []state.Span{{From: 0, To: 1}, {From: 3, To: 2}} {
		require.Error(t, b.ExtendSequence(b.ctx, run, 4, []state.Span{bad}))
	}
	require.Error(t, b.ExtendSequence(b.ctx, run, -1, all))
	nobody := state.RunKey{Workspace: b.workspace, Run: 99}
	_, _, err := b.Sequence(b.ctx, nobody, state.Page{})
	require.ErrorIs(t, err, state.ErrNotFound)
	require.ErrorIs(t, b.ExtendSequence(b.ctx, nobody, 0, all), state.ErrNotFound)
}

// Of several who go on with a sequence, one does at a time.
func testSequenceRace(t *testing.T, open Open) {
	b := newBench(t, open)
	run := b.run("n")
	errs := together(8, func(i int) error {
		return b.ExtendSequence(b.ctx, run, 0, []state.Span{{Node: fmt.Sprint(i), From: 1, To: 1},
			{From: 1, To: int64(i + 1)}})
	})
	require.Equal(t, 1, split(t, errs, state.ErrConflict))
	spans, err := state.All(b.ctx, b.Sequence, run)
	require.NoError(t, err)
	require.Len(t, spans, 2)
	require.Equal(t, spans[0].Node, fmt.Sprint(spans[1].To-1))
}
