package samples_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
	"thalweg/internal/ops/samples"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

var (
	zero = time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	key  = state.RunKey{Workspace: "main", Run: 7}
)

// machine is a process with its clock, of which each step is told.
type machine struct {
	t       *testing.T
	store   state.Store
	now     time.Time
	reading samples.Reading
	sampler *samples.Sampler
}

func newMachine(t *testing.T, store state.Store, name string) *machine {
	m := &machine{t: t, store: store, now: zero}
	m.reading.Cores = 2
	m.sampler = samples.New(store, name, func() time.Time { return m.now },
		func() (samples.Reading, bool) { return m.reading, true })
	return m
}

// works lets time pass in steps, and takes a sample at the end of each.
func (m *machine) works(steps int, runs ...state.RunKey) {
	m.t.Helper()
	for range steps {
		m.now = m.now.Add(samples.Every)
		m.reading.Self.CPU += 4 * time.Second
		m.reading.Children.CPU += time.Second
		require.NoError(m.t, m.sampler.Take(m.t.Context(), runs))
	}
}

func (m *machine) of(run state.RunKey, points int) []samples.Worker {
	m.t.Helper()
	all, err := samples.Of(m.t.Context(), m.store, run,
		samples.Options{From: zero, To: m.now, Now: m.now, Points: points})
	require.NoError(m.t, err)
	return all
}

func newStore(t *testing.T) state.Store {
	t.Helper()
	s := hostile.New().Open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A sample says what was used since the one before, of runs that were worked on; who is killed leaves what it told.
func TestSamplesOfARun(t *testing.T) {
	store := newStore(t)
	m := newMachine(t, store, "host/1/2")
	m.works(1, key) // to compare with
	m.reading = samples.Reading{Cores: 3, MemoryLimit: 8 << 30, DiskFree: 5 << 30, DiskTotal: 9 << 30,
		Self:     budget.Use{CPU: m.reading.Self.CPU, Resident: 300 << 20, Read: 4 << 20, Written: 1 << 20},
		Children: budget.Use{CPU: m.reading.Children.CPU, Resident: 20 << 20, Written: 2 << 20}}
	m.works(1, key)
	m.works(3)                                                 // of no run: nothing is kept
	m.works(1, state.RunKey{Workspace: "secret", Run: 7}, key) // together with another one
	want := samples.Sample{Time: zero.Add(20 * time.Second), Took: samples.Every, CPU: 4 * time.Second,
		ChildrenCPU: time.Second, Cores: 3, Resident: 300 << 20, ChildrenResident: 20 << 20, MemoryLimit: 8 << 30,
		DiskFree: 5 << 30, DiskTotal: 9 << 30, Read: 4 << 20, Written: 3 << 20}
	last := want
	last.Time, last.Read, last.Written = zero.Add(60*time.Second), 0, 0
	require.Equal(t, []samples.Worker{{Name: "host/1/2", Samples: []samples.Sample{want, last}}}, m.of(key, 0))
	require.Empty(t, m.of(state.RunKey{Workspace: "main", Run: 8}, 0), "nobody sees the workers of others")

	other := newMachine(t, store, "host/9/9")
	other.now = m.now
	other.works(2, key)
	require.Len(t, other.of(key, 0), 2)
	some, err := samples.Of(t.Context(), store, key, samples.Options{From: want.Time, To: last.Time.Add(-samples.Every),
		Now: other.now})
	require.NoError(t, err)
	require.Empty(t, some, "the window ends before the second one's began")
}

// Samples that are more than are asked for are put together: what was used is summed, memory is the most of them.
func TestSamplesTogether(t *testing.T) {
	m := newMachine(t, newStore(t), "w")
	m.reading.DiskTotal = 1 << 40
	m.works(1, key)
	for i := range 10 {
		m.reading.Self.Resident = int64(10-i) << 20
		m.reading.DiskFree = int64(10-i) << 30
		m.works(1, key)
	}
	all := m.of(key, 4)[0].Samples
	require.Len(t, all, 4)
	require.Equal(t, 12*time.Second, all[0].CPU)
	require.Equal(t, 30*time.Second, all[0].Took)
	require.Equal(t, zero.Add(40*time.Second), all[0].Time)
	require.Equal(t, int64(10<<20), all[0].Resident)
	require.Equal(t, int64(8<<30), all[0].DiskFree)
}

// A day is kept, and no more than that: two days of a worker leave the notes of one, and each note bears it.
func TestRetention(t *testing.T) {
	store := newStore(t)
	m := newMachine(t, store, "w")
	day := int(samples.Keep / samples.Every)
	kept := func() (bytes, notes int) {
		for topic := range 200 {
			all, err := state.AllNotes(t.Context(), store, "_fleet", fmt.Sprintf("samples/%d", topic))
			require.NoError(t, err)
			for _, n := range all {
				bytes += len(n.Data)
				notes++
			}
		}
		return bytes, notes
	}
	steps := func(n int) {
		for range n {
			m.reading.Self.Resident = m.now.Unix() % 977 << 20
			m.works(1, key)
		}
	}
	steps(day)
	bytes, notes := kept()
	require.Less(t, bytes, 200<<10)
	steps(day)
	after, notesAfter := kept()
	require.InDelta(t, bytes, after, 10<<10)
	require.InDelta(t, notes, notesAfter, 2)
	all := m.of(key, 0)[0].Samples
	require.InDelta(t, day, len(all), 1)
	require.WithinDuration(t, m.now.Add(-samples.Keep), all[0].Time, samples.Every)
	require.LessOrEqual(t, notesAfter*state.NoteBytesMax, samples.BytesMax)
}

// A topic takes so many notes, whatever samples and runs there are.
func TestBounds(t *testing.T) {
	store := newStore(t)
	m := newMachine(t, store, "w")
	m.works(1, key)
	var runs []state.RunKey
	for i := range 100 { // more than a note can name
		runs = append(runs, state.RunKey{Workspace: strings.Repeat("w", 60), Run: int64(i + 1)})
	}
	topic := "samples/" + fmt.Sprint(zero.UnixMilli()/1_200_000%74)
	count := func() int {
		notes, err := state.AllNotes(t.Context(), store, "_fleet", topic)
		require.NoError(t, err)
		return len(notes)
	}
	m.works(5, runs...)
	require.Equal(t, 1, count(), "runs that are not all named need no more notes")
	for i := range 100 { // each time others
		m.works(1, runs[i:i+1]...)
		m.works(1, runs[(i+50)%100])
	}
	require.Less(t, count(), 9)
	for i := range samples.NotesMax {
		w := newMachine(t, store, fmt.Sprintf("other%d", i))
		w.works(2, key)
	}
	require.Equal(t, samples.NotesMax, count())
}

// A state that is away costs the samples of that time their note, not the worker's peace, and they come later.
func TestStateAway(t *testing.T) {
	store := newStore(t)
	m := newMachine(t, store, "w")
	m.works(2, key)
	m.now = m.now.Add(samples.Every)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, m.sampler.Take(ended, []state.RunKey{key}))
	m.works(1, key)
	require.Len(t, m.of(key, 0)[0].Samples, 3)
}

// What is stored is read by each; damage is left out.
func TestDamage(t *testing.T) {
	store := newStore(t)
	m := newMachine(t, store, "w")
	m.works(3, key)
	topic := "samples/" + fmt.Sprint(zero.UnixMilli()/1_200_000%74)
	notes, err := state.AllNotes(t.Context(), store, "_fleet", topic)
	require.NoError(t, err)
	good := notes[0].Data
	require.Len(t, m.of(key, 0)[0].Samples, 2)
	for i := range good {
		notes[0].Data = good[:i]
		require.NoError(t, store.PutNote(t.Context(), "_fleet", notes[0]))
		for _, w := range m.of(key, 0) {
			require.LessOrEqual(t, len(w.Samples), 1)
		}
	}
}

// What this process uses grows as it works.
func TestReader(t *testing.T) {
	read := samples.Reader(t.TempDir())
	before, ok := read()
	require.True(t, ok)
	for began := time.Now(); time.Since(began) < 30*time.Millisecond; {
		_ = strings.Repeat("x", 1<<10)
	}
	after, ok := read()
	require.True(t, ok)
	require.Greater(t, after.Self.CPU, before.Self.CPU)
	require.Positive(t, after.Self.Resident)
	require.Positive(t, after.MemoryLimit)
	require.Positive(t, after.DiskFree)
	require.Greater(t, after.DiskTotal, after.DiskFree)
}
