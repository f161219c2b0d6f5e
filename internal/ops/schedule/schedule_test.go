package schedule

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/allow"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is set by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time                       { return c.now }
func (c *clock) After(time.Duration) <-chan time.Time { return nil }
func (c *clock) set(t *testing.T, text string) {
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	c.now = at
}

// disk holds the registries that outlive processes; a process that has died writes no more.
type disk struct {
	mu    sync.Mutex
	boxes map[string]map[string][]byte
	most  int
	left  int // writes until the process dies; negative: it lives
}

var errDied = errors.New("the process has died")

type diskBox struct {
	disk *disk
	name string
}

func (d *disk) box(name string) Registry { return diskBox{d, name} }

func (b diskBox) write(f func(map[string][]byte)) error {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	if b.disk.left == 0 {
		return errDied
	}
	b.disk.left--
	if b.disk.boxes[b.name] == nil {
		b.disk.boxes[b.name] = map[string][]byte{}
	}
	f(b.disk.boxes[b.name])
	return nil
}

func (b diskBox) Put(_ context.Context, name string, record []byte) error {
	return b.write(func(all map[string][]byte) { all[name], b.disk.most = record, max(b.disk.most, len(record)) })
}

func (b diskBox) Remove(_ context.Context, name string) error {
	return b.write(func(all map[string][]byte) { delete(all, name) })
}

func (b diskBox) List(context.Context) (out []Entry, err error) {
	b.disk.mu.Lock()
	defer b.disk.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.disk.boxes[b.name])) {
		out = append(out, Entry{name, b.disk.boxes[b.name][name]})
	}
	return out, nil
}

// runs are those that were begun: one for a token, for ever.
type runs struct {
	disk    *disk
	byToken map[string]int64
	begun   []Start // in their order
	open    map[int64]bool
	fail    error
	told    []string
	refuse  string // watched file whose run cannot begin
	takes   func() // passes the time that beginning a run takes; may be nil
}

func (r *runs) Begin(_ context.Context, s Start) (state.RunKey, error) {
	if r.disk.left == 0 {
		return state.RunKey{}, errDied
	}
	if r.fail != nil {
		return state.RunKey{}, r.fail
	}
	if r.takes != nil {
		r.takes()
	}
	if file := s.Offered[script.ParamWatchedFile]; r.refuse != "" && strings.HasSuffix(file, r.refuse) {
		return state.RunKey{}, fault.New(fault.Script, "not this one")
	}
	n, known := r.byToken[s.Token]
	if !known {
		r.begun = append(r.begun, s)
		n = int64(len(r.begun))
		r.byToken[s.Token], r.open[n] = n, true
	}
	return state.RunKey{Workspace: "main", Run: n}, nil
}

func (r *runs) Busy(_ context.Context, key state.RunKey) (open, working bool, err error) {
	return r.open[key.Run], r.open[key.Run], nil
}

func (r *runs) Tell(_ context.Context, s Start, _ Served, cause error) error {
	r.told = append(r.told, cause.Error())
	return nil
}

func (r *runs) finish() { clear(r.open) }

// moments are those for which runs were begun.
func (r *runs) moments() (out []string) {
	for _, s := range r.begun {
		out = append(out, s.Offered[script.ParamScheduledTime])
	}
	return out
}

func (r *runs) files() (out []string) {
	for _, s := range r.begun {
		out = append(out, filepath.Base(s.Offered[script.ParamWatchedFile]))
	}
	return out
}

// world is the environment that schedulers share.
type world struct {
	disk   *disk
	runs   *runs
	clock  *clock
	served []Served
	most   int
	remote Lister
	policy *allow.Policy
}

func newWorld(t *testing.T, serving string) *world {
	d := &disk{boxes: map[string]map[string][]byte{}, left: -1}
	w := &world{disk: d, runs: &runs{disk: d, byToken: map[string]int64{}, open: map[int64]bool{}},
		clock: &clock{}, most: 10}
	w.clock.set(t, "2026-03-02T05:00:00Z")
	w.serve(t, serving)
	return w
}

func (w *world) serve(t *testing.T, serving string) {
	s, diags := script.LoadServing(t.Context(),
		script.Sources{Path: "orders.yaml", Read: func(context.Context, string) ([]byte, error) {
			return []byte(serving),
				nil
		}})
	require.NoError(t, diags.Err())
	w.served = []Served{{Path: "orders.yaml", Identity: "orders", Script: s}}
}

func (w *world) scheduler() *Service {
	return New(Config{Workspace: "main", Registry: w.disk.box("schedules"),
		Paused: w.disk.box("paused"),
		Files:  func(watch string) Registry { return w.disk.box("watched/" + watch) }, Runs: w.runs, Remote: w.remote, Policy: w.policy,
		Load: func(context.Context) []Served { return w.served }, Most: w.most, Clock: w.clock,
		Logger: slog.New(slog.DiscardHandler)})
}

func (w *world) look(t *testing.T, s *Service, at string) {
	w.clock.set(t, at)
	require.NoError(t, s.Look(t.Context()))
}

func (w *world) standings(t *testing.T) map[string]*Standing {
	all, err := Standings(t.Context(), w.disk.box("schedules"))
	require.NoError(t, err)
	out := map[string]*Standing{}
	for _, st := range all {
		out[st.Name] = st
	}
	return out
}

func (w *world) standing(t *testing.T) *Standing {
	all, err := Standings(t.Context(), w.disk.box("schedules"))
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0]
}

func whys(st *Standing) (out []string) {
	for _, s := range st.Skipped {
		out = append(out, s.At.Format("15:04")+" "+s.Why)
	}
	return out
}

func TestMoments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: {cron: '30 6 * * *', timezone: Europe/Berlin, params: {region: eu}}\n")
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:00:00Z")
	w.look(t, s, "2026-03-02T05:29:59Z")
	require.Empty(t, w.runs.begun, "what was before the schedule is not made up for")
	w.look(t, s, "2026-03-02T05:30:00Z")
	w.look(t, s, "2026-03-02T05:30:01Z")
	require.Equal(t, []string{"2026-03-02T06:30:00+01:00"}, w.runs.moments())
	start := w.runs.begun[0]
	require.Equal(t, "2026-03-02", start.Offered[script.ParamScheduledDate])
	require.Equal(t, map[string]string{"region": "eu"}, start.Params)
	require.True(t, strings.HasPrefix(start.Token, TokenPrefix))
	st := w.standing(t)
	require.Equal(t, int64(1), st.Last.Run)
	require.Empty(t, st.Queue)
	w.runs.finish()

	// Under another name it is another schedule, and begins anew.
	w.serve(t, "schedule: {cron: '30 6 * * *', timezone: Europe/Berlin, name: x}\n")
	w.look(t, s, "2026-03-02T05:30:02Z")
	require.Len(t, w.runs.begun, 1)

	// What nobody serves any more is forgotten, at last.
	names := func() (out []string) {
		all, err := Standings(t.Context(), w.disk.box("schedules"))
		require.NoError(t, err)
		for _, st := range all {
			out = append(out, st.Name)
		}
		return out
	}
	require.ElementsMatch(t, []string{"30 6 * * *", "x"}, names())
	w.look(t, s, "2026-04-02T05:30:01Z")
	w.look(t, s, "2026-04-02T05:30:02Z")
	require.Equal(t, []string{"x"}, names())
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][]string{
		"none": {"2026-03-02T05:30:00Z"},
		"last": {"2026-03-02T05:30:00Z", "2026-03-02T08:30:00Z"},
		"all":  {"2026-03-02T05:30:00Z", "2026-03-02T06:30:00Z", "2026-03-02T07:30:00Z", "2026-03-02T08:30:00Z"},
	} {
		w := newWorld(t, "schedule: {cron: '30 * * * *', catch_up: "+how+"}\n")
		s := w.scheduler()
		w.look(t, s, "2026-03-02T05:00:00Z")
		w.look(t, s, "2026-03-02T05:30:59Z") // on time
		s = w.scheduler()                    // or a machine that slept
		w.look(t, s, "2026-03-02T09:00:00Z")
		for range 5 {
			w.runs.finish()
			w.look(t, s, "2026-03-02T09:00:00Z")
		}
		require.Equal(t, want, w.runs.moments(), how)
		require.Equal(t, int64(4-len(want)), w.standing(t).Skips, how)
	}
}

// A schedule that has not been looked at for years is caught up with within bounds.
func TestCatchingUpHasBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: {cron: '* * * * *', catch_up: all}\n")
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:00:00Z")
	w.look(t, s, "2029-03-02T05:00:00Z")
	st := w.standing(t)
	require.Len(t, st.Queue, QueueMax-1)
	require.Contains(t, whys(st)[0], "more than 100 moments wait")
	require.Less(t, w.disk.most, 4<<10)
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	for how, want := range map[string][]string{
		"skip":  {"2026-03-02T05:30:00Z", "2026-03-02T08:30:00Z"},
		"queue": {"2026-03-02T05:30:00Z", "2026-03-02T06:30:00Z", "2026-03-02T07:30:00Z", "2026-03-02T08:30:00Z"},
	} {
		w := newWorld(t, "schedule: {cron: '30 * * * *', overlap: "+how+"}\n")
		s := w.scheduler()
		for _, at := range []string{"05:00", "05:30", "06:30", "07:30", "08:00"} {
			w.look(t, s, "2026-03-02T"+at+":00Z")
		}
		require.Equal(t, want[:1], w.runs.moments(), how)
		for _, at := range []string{"08:10", "08:20", "08:30", "08:31"} {
			w.runs.finish()
			w.look(t, s, "2026-03-02T"+at+":00Z")
		}
		require.Equal(t, want, w.runs.moments(), how)
		if how == "skip" {
			require.Equal(t, []string{"06:30 run 1 was not over", "07:30 run 1 was not over"}, whys(w.standing(t)))
		}
	}
}

func TestOnlySoManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: [{cron: '0 6 * * *', name: a}, {cron: '0 6 * * *', name: b}, {cron: '0 6 * * *', "+
		"name: c}]\n")
	w.most = 2
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:00:00Z")
	w.look(t, s, "2026-03-02T06:00:00Z")
	require.Len(t, w.runs.begun, 2)
	w.look(t, s, "2026-03-02T07:00:00Z")
	require.Len(t, w.runs.begun, 2)
	delete(w.runs.open, 1)
	w.look(t, s, "2026-03-02T07:00:01Z")
	require.Len(t, w.runs.begun, 3)
	require.Equal(t, w.runs.moments()[0], w.runs.moments()[2])
}

func TestClocksThatJump(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: {cron: '*/10 * * * *', catch_up: all}\n")
	s := w.scheduler()
	for _, at := range []string{"2026-03-02T05:00:00Z", "2026-03-02T05:10:00Z", "2026-03-02T05:20:00Z",
		"2026-03-02T05:05:00Z", "2026-03-02T05:10:00Z", "2026-03-02T05:20:00Z", "2026-03-02T05:30:00Z"} { // put back
		w.runs.finish()
		w.look(t, s, at)
	}
	require.Equal(t, []string{"2026-03-02T05:10:00Z", "2026-03-02T05:20:00Z", "2026-03-02T05:30:00Z"}, w.runs.moments())
	w.runs.finish()
	w.look(t, s, "2031-01-01T00:00:30Z") // a wrong year, for a moment
	w.runs.finish()
	w.look(t, s, "2026-03-02T05:31:00Z")
	before := len(w.runs.begun)
	w.runs.finish()
	for range 200 { // those of the wrong year are in the queue, and are begun as such
		w.runs.finish()
		w.look(t, s, "2026-03-02T05:31:00Z")
	}
	w.runs.finish()
	w.look(t, s, "2026-03-02T05:40:00Z")
	require.Contains(t, w.runs.moments()[before:], "2026-03-02T05:40:00Z", "it goes on")
	require.Len(t, w.runs.byToken, len(w.runs.begun))
}

func TestSummerTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: {cron: '30 2 * * *', timezone: Europe/Berlin}\n")
	s := w.scheduler()
	w.clock.set(t, "2026-03-27T12:00:00Z")
	for range 4 * 24 * 4 {
		w.clock.now = w.clock.now.Add(15 * time.Minute)
		require.NoError(t, s.Look(t.Context()))
		w.runs.finish()
	}
	w.clock.set(t, "2026-10-24T12:00:00Z")
	before := len(w.runs.begun)
	require.Equal(t, []string{"2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00",
		"2026-03-31T02:30:00+02:00"}, w.runs.moments())
	w = newWorld(t, "schedule: {cron: '30 2 * * *', timezone: Europe/Berlin}\n")
	s = w.scheduler()
	w.clock.set(t, "2026-10-24T12:00:00Z")
	for range 2 * 24 * 4 {
		w.clock.now = w.clock.now.Add(15 * time.Minute)
		require.NoError(t, s.Look(t.Context()))
		w.runs.finish()
	}
	require.Equal(t, 4, before)
	require.Equal(t, []string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"}, w.runs.moments())
}

func TestRunsThatCannotBegin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: {cron: '0 6 * * *'}\n")
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:00:00Z")
	w.runs.fail = fault.New(fault.Script, "the input is not there")
	w.look(t, s, "2026-03-02T06:00:00Z")
	w.look(t, s, "2026-03-02T06:00:01Z")
	require.Equal(t, []string{"the input is not there"}, w.runs.told)
	require.Equal(t, 1, w.standing(t).Failing.Tries)
	s = w.scheduler() // it is told once, whoever tries
	w.look(t, s, "2026-03-02T06:10:00Z")
	require.Equal(t, 2, w.standing(t).Failing.Tries)
	require.Len(t, w.runs.told, 1)
	w.runs.fail = nil
	w.look(t, s, "2026-03-02T06:30:00Z")
	require.Equal(t, []string{"2026-03-02T06:00:00Z"}, w.runs.moments())
	require.Nil(t, w.standing(t).Failing)

	w.runs.finish()
	w.runs.fail = fault.New(fault.Script, "the script is broken")
	for at := w.clock.now; at.Before(w.clock.now.Add(60 * time.Hour)); at = at.Add(10 * time.Minute) {
		c := *w.clock
		w.clock.now = at
		require.NoError(t, s.Look(t.Context()))
		*w.clock = c
	}
	require.Len(t, w.runs.told, 3, "the next moment, and the one behind it")
	require.Contains(t, whys(w.standing(t))[0], "it could not begin: the script is broken")
}

// What is paused begins no runs: moments pass, files wait, until it goes on.
func TestPaused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "schedule: {cron: '30 * * * *', name: hourly, catch_up: all}\nwatch: {files: '"+dir+"/*.csv', name: files, stable_for: 1s}\n")
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:00:00Z")
	box := w.disk.box("paused")
	ids := map[string]string{}
	for name, st := range w.standings(t) {
		ids[name] = st.ID
		require.NoError(t, Pause(t.Context(), box, st.ID, "ann", "the source is away", w.clock.now))
	}
	w.write(t, filepath.Join(dir, "a.csv"), "1")
	w.look(t, s, "2026-03-02T05:30:00Z")
	w.look(t, s, "2026-03-02T05:30:20Z")
	w.look(t, w.scheduler(), "2026-03-02T06:30:00Z")
	require.Empty(t, w.runs.begun)
	require.Equal(t, []string{"05:30 it was paused by ann", "06:30 it was paused by ann"}, whys(w.standings(t)["hourly"]))
	paused, err := PausedOf(t.Context(), box)
	require.NoError(t, err)
	require.Equal(t, "the source is away", paused[ids["files"]].Reason)
	for _, id := range ids {
		require.NoError(t, box.Remove(t.Context(), id))
	}
	w.look(t, s, "2026-03-02T06:40:00Z")
	w.look(t, s, "2026-03-02T06:40:20Z")
	require.Contains(t, w.runs.files(), "a.csv")
	w.runs.finish()
	w.look(t, s, "2026-03-02T07:30:00Z")
	require.Contains(t, w.runs.moments(), "2026-03-02T07:30:00Z")
	require.NotContains(t, w.runs.moments(), "2026-03-02T06:30:00Z", "what passed while it was paused is not made up for")
}

// Any number of schedulers, which die at any of their writes, at any moment:
// each moment gets exactly one run, in order.
func TestChaosNeverTwiceNeverForgotten(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](20, 50, 20_000) {
		random := rand.New(rand.NewPCG(seed, 7))
		w := newWorld(t, "schedule: {cron: '*/5 * * * *', catch_up: all}\n")
		w.look(t, w.scheduler(), "2026-03-02T05:00:00Z")
		schedulers := []*Service{w.scheduler(), w.scheduler()}
		end := w.clock.now.Add(time.Duration(1+random.IntN(12)) * 5 * time.Minute)
		for w.clock.now.Before(end) {
			w.clock.now = w.clock.now.Add(time.Duration(random.IntN(240)) * time.Second)
			one := random.IntN(2)
			if w.disk.left = -1; random.IntN(3) == 0 {
				w.disk.left = random.IntN(4)
			}
			if err := schedulers[one].Look(t.Context()); err != nil {
				require.ErrorIs(t, err, errDied)
			}
			if w.disk.left >= 0 {
				schedulers[one] = w.scheduler() // a new process
			}
			if random.IntN(2) == 0 {
				w.runs.finish()
			}
		}
		w.disk.left = -1
		for range 30 {
			w.runs.finish()
			require.NoError(t, schedulers[random.IntN(2)].Look(t.Context()))
		}
		var want []string
		for at := time.Date(2026, 3, 2, 5, 5, 0, 0, time.UTC); !at.After(w.clock.now); at = at.Add(5 * time.Minute) {
			want = append(want, at.Format(time.RFC3339))
		}
		require.Equal(t, want, w.runs.moments(), fmt.Sprint("seed ", seed))
	}
}

// write makes a file that was changed at a moment of the world.
func (w *world) write(t *testing.T, path, text string) {
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.Chtimes(path, w.clock.now, w.clock.now))
}

func (w *world) wait(t *testing.T, s *Service, d time.Duration) {
	w.clock.now = w.clock.now.Add(d)
	require.NoError(t, s.Look(t.Context()))
}

func TestFilesThatAreStable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "watch: {files: '"+dir+"/*.csv', stable_for: 30s}\n")
	s := w.scheduler()
	w.write(t, filepath.Join(dir, "old.csv"), "1")
	w.write(t, filepath.Join(dir, "other.txt"), "1")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir.csv"), 0o755))
	w.wait(t, s, 0)
	w.wait(t, s, 29*time.Second)
	require.Empty(t, w.runs.begun)
	require.Equal(t, "it has not been unchanged for 30s yet", w.standing(t).Pending[0].Why)
	w.wait(t, s, 2*time.Second)
	require.Equal(t, []string{"old.csv"}, w.runs.files())
	w.runs.finish()

	w.write(t, filepath.Join(dir, "a.csv"), "1")
	w.wait(t, s, 20*time.Second)
	w.write(t, filepath.Join(dir, "a.csv"), "12") // it grows
	w.wait(t, s, 20*time.Second)
	w.write(t, filepath.Join(dir, "b.csv"), "")
	w.wait(t, s, 20*time.Second)
	require.Len(t, w.runs.begun, 1)
	w.wait(t, s, 20*time.Second)
	require.Equal(t, []string{"old.csv", "a.csv"}, w.runs.files())
	w.runs.finish()
	w.wait(t, s, 20*time.Second)
	require.Equal(t, []Pending{{File: filepath.Join(dir, "b.csv"), Why: "it is empty"}}, w.standing(t).Pending)

	// A new version is a new file; the same one is none, also for the next scheduler.
	w.write(t, filepath.Join(dir, "a.csv"), "123")
	s = w.scheduler()
	w.wait(t, s, 20*time.Second)
	w.wait(t, s, 31*time.Second)
	require.Equal(t, []string{"old.csv", "a.csv", "a.csv"}, w.runs.files())
	w.runs.finish()
	// Gone, forgotten, and back again.
	st, err := os.Stat(filepath.Join(dir, "old.csv"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "old.csv")))
	w.wait(t, s, 2*time.Hour)
	w.wait(t, s, 2*time.Hour)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.csv"), []byte("1"), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(dir, "old.csv"), st.ModTime(), st.ModTime()))
	w.wait(t, s, time.Minute)
	w.wait(t, s, time.Minute)
	require.Len(t, w.runs.begun, 3)
}

func TestFilesWithMarkers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "watch: {files: '"+dir+"/*', marker: '{file}.done'}\n")
	s := w.scheduler()
	w.write(t, filepath.Join(dir, "b"), "")
	w.wait(t, s, time.Hour)
	require.Empty(t, w.runs.begun)
	w.write(t, filepath.Join(dir, "b.done"), "")
	w.wait(t, s, 2*time.Second)
	require.Equal(t, []string{"b"}, w.runs.files())
	w.runs.finish()
	w.write(t, filepath.Join(dir, "b"), "more") // the marker is of the version before
	w.wait(t, s, time.Hour)
	require.Len(t, w.runs.begun, 1)
	require.Contains(t, w.standing(t).Pending[0].Why, "is older than the file")
	w.write(t, filepath.Join(dir, "b.done"), "")
	w.wait(t, s, 2*time.Second)
	require.Equal(t, []string{"b", "b"}, w.runs.files())
}

func TestFilesThatWereThereBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "watch: {files: '"+dir+"/*.csv', existing: ignore, stable_for: 10s}\n")
	w.write(t, filepath.Join(dir, "old.csv"), "1")
	w.write(t, filepath.Join(dir, "growing.csv"), "1")
	w.disk.left = 1
	require.ErrorIs(t, w.scheduler().Look(t.Context()), errDied)
	w.disk.left = -1
	s := w.scheduler()
	w.wait(t, s, time.Minute)
	w.write(t, filepath.Join(dir, "growing.csv"), "12")
	w.write(t, filepath.Join(dir, "new.csv"), "1")
	for range 5 {
		w.wait(t, s, time.Minute)
		w.runs.finish()
	}
	require.Equal(t, []string{"growing.csv", "new.csv"}, w.runs.files())
	// They are remembered, also while the disk they are on is away for a day.
	require.NoError(t, os.Rename(dir, dir+".away"))
	w.wait(t, w.scheduler(), 25*time.Hour)
	require.NoError(t, os.Rename(dir+".away", dir))
	s = w.scheduler()
	w.wait(t, s, time.Minute)
	w.wait(t, s, time.Minute)
	require.Len(t, w.runs.begun, 2)
}

// A file whose run cannot begin does not hold up the others; names that would
// change the script are refused.
func TestFilesThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, "watch: {files: '"+dir+"/*.csv', stable_for: 10s}\n")
	s := w.scheduler()
	for _, name := range []string{"a.csv", "b.csv", `c", url: "x.csv`, "d*.csv", "e{env.HOME}.csv", "f\ng.csv",
		"größe 1.csv"} {
		w.write(t, filepath.Join(dir, name), "1")
	}
	w.runs.refuse = "a.csv"
	w.wait(t, s, 0)
	for range 4 {
		w.wait(t, s, time.Minute)
		w.runs.finish()
	}
	require.Equal(t, []string{"b.csv", "größe 1.csv"}, w.runs.files())
	require.Equal(t, []string{"not this one"}, w.runs.told)
	st := w.standing(t)
	require.Equal(t, 5, st.Waiting)
	require.Equal(t, filepath.Join(dir, "a.csv"), st.Failing.File)
	require.Contains(t, st.Pending[1].Why, `the character '"'`)
	require.Less(t, w.disk.most, 4<<10)
	w.runs.refuse = ""
	w.wait(t, s, 20*time.Minute)
	require.Equal(t, []string{"b.csv", "größe 1.csv", "a.csv"}, w.runs.files())
	require.Nil(t, w.standing(t).Failing)
}

// Schedulers that die at any of their writes, two at once, and files that come
// and change: each version that stood still gets one run.
func TestChaosEachFileOnce(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](5, 15, 5_000) {
		random := rand.New(rand.NewPCG(seed, 3))
		dir := t.TempDir()
		w := newWorld(t, "watch: {files: '"+dir+"/*.csv', stable_for: 10s}\n")
		schedulers := []*Service{w.scheduler(), w.scheduler()}
		want := map[string]bool{}
		for i := range 4 {
			path := filepath.Join(dir, fmt.Sprintf("%d.csv", i))
			w.write(t, path, strings.Repeat("x", i+1))
			want[fmt.Sprintf("%d.csv", i)] = true
			for range 8 {
				w.clock.now = w.clock.now.Add(time.Duration(2+random.IntN(10)) * time.Second)
				one := random.IntN(2)
				if w.disk.left = -1; random.IntN(3) == 0 {
					w.disk.left = random.IntN(3)
				}
				if err := schedulers[one].Look(t.Context()); err != nil {
					require.ErrorIs(t, err, errDied)
				}
				if w.disk.left >= 0 {
					schedulers[one] = w.scheduler()
				}
				if random.IntN(2) == 0 {
					w.runs.finish()
				}
			}
		}
		w.disk.left = -1
		for range 20 {
			w.runs.finish()
			w.wait(t, schedulers[random.IntN(2)], 11*time.Second)
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), w.runs.files(), fmt.Sprint("seed ", seed))
	}
}

func TestAdvanceIsIdempotent(t *testing.T) {
	t.Parallel()
	times, err := calendar.ParseTimes("*/7 * * * *", time.UTC)
	require.NoError(t, err)
	now := time.Date(2026, 3, 2, 5, 0, 0, 0, time.UTC)
	st := &Standing{Looked: now}
	require.True(t, st.advance(times, script.CatchUpAll, now.Add(time.Hour), OnTime))
	queue := slices.Clone(st.Queue)
	require.False(t, st.advance(times, script.CatchUpAll, now.Add(time.Hour), OnTime))
	st.Looked = now // an older record
	st.advance(times, script.CatchUpAll, now.Add(time.Hour), OnTime)
	require.Equal(t, queue, st.Queue)
}

// While a scheduler begins a run, which may take long, it is there: the moments of
// other schedules that come meanwhile are not missed.
func TestBeginningTakesLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "schedule: [{cron: '0 6 * * *', name: slow}, {cron: '1 6 * * *', name: x, catch_up: none}]\n")
	s := w.scheduler()
	w.look(t, s, "2026-03-02T05:59:59Z")
	w.runs.takes = func() { w.clock.now = w.clock.now.Add(5 * time.Minute) }
	w.look(t, s, "2026-03-02T06:00:00Z")
	w.runs.takes = nil
	require.NoError(t, s.Look(t.Context()))
	require.Equal(t, []string{"2026-03-02T06:00:00Z", "2026-03-02T06:01:00Z"}, w.runs.moments())
	// But a machine that slept was not there.
	w.runs.finish()
	w.look(t, s, "2026-03-03T07:00:00Z")
	require.Len(t, w.runs.begun, 3)
	require.Equal(t, int64(1), w.standings(t)["x"].Skips)
}
