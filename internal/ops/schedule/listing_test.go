package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/test/effort"
)

// machine is another one, whose files are listed.
type machine struct {
	mu    sync.Mutex
	files map[string]remote.Version // by address
	away  error
	calls int
	hold  chan struct{} // listings wait until it is closed; nil: they do not
}

func (m *machine) List(ctx context.Context, pattern string, most int) (out []remote.File, err error) {
	m.mu.Lock()
	hold := m.hold
	m.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.away != nil {
		return nil, m.away
	}
	for _, at := range slices.Sorted(maps.Keys(m.files)) {
		if ok, _ := path.Match(pattern, at); ok {
			out = append(out, remote.File{URL: at, Path: strings.TrimPrefix(at, "s3://b/"), Version: m.files[at]})
		}
	}
	if len(out) > most {
		return nil, errors.New("too many")
	}
	return out, nil
}

func (m *machine) put(w *world, name, etag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files["s3://b/in/"+name] = remote.Version{Bytes: int64(len(etag)), ETag: etag,
		ModTime: w.clock.now.Truncate(time.Second)}
}

// newServerWorld is one in which a watch looks at another machine.
func newServerWorld(t *testing.T, options string) (*world, *machine) {
	m := &machine{files: map[string]remote.Version{}}
	w := newWorld(t, "watch: {files: 's3://b/in/*.csv', stable_for: 30s"+options+"}\n")
	w.remote = m
	return w, m
}

// pass lets so much time pass, bit by bit, listings included.
func (w *world) pass(t *testing.T, s *Service, d time.Duration) {
	for range int(d / scanEvery) {
		w.clock.now = w.clock.now.Add(scanEvery)
		require.NoError(t, s.Look(t.Context()))
		s.listings.Wait()
	}
}

func TestFilesOfServers(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, "")
	m.put(w, "a.csv", "one")
	s := w.scheduler()
	w.pass(t, s, 29*time.Second)
	require.Empty(t, w.runs.begun)
	require.Equal(t, []Pending{{File: "s3://b/in/a.csv", Why: "it has not been unchanged for 30s yet"}},
		w.standing(t).Pending)
	w.pass(t, s, 40*time.Second)
	require.Equal(t, []string{"a.csv"}, w.runs.files())
	require.Equal(t, "s3://b/in/a.csv", w.runs.begun[0].Offered[script.ParamWatchedFile])
	require.LessOrEqual(t, m.calls, 4)

	// Another version under the same name is a new file, also one of the same size
	// and time; while the run before is not over it waits.
	m.mu.Lock()
	v := m.files["s3://b/in/a.csv"]
	v.ETag = "two"
	m.files["s3://b/in/a.csv"] = v
	m.mu.Unlock()
	w.pass(t, s, 3*time.Minute)
	require.Len(t, w.runs.begun, 1)
	w.runs.finish()
	w.pass(t, w.scheduler(), 3*time.Minute)
	require.Equal(t, []string{"a.csv", "a.csv"}, w.runs.files())
	w.runs.finish()

	// Gone, forgotten, and back again.
	m.mu.Lock()
	delete(m.files, "s3://b/in/a.csv")
	m.mu.Unlock()
	s = w.scheduler()
	w.pass(t, s, 2*time.Minute)
	w.clock.now = w.clock.now.Add(2 * time.Hour)
	w.pass(t, s, 2*time.Minute)
	require.Empty(t, w.disk.boxes["watched/"+recordName(w.served[0], KindWatch, "s3://b/in/*.csv")])
	m.files["s3://b/in/a.csv"] = v
	w.pass(t, s, 3*time.Minute)
	require.Len(t, w.runs.begun, 2)
}

// Several files that are complete need not wait for the next listing each.
func TestFilesOfServersOneBehindTheOther(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, ", every: 10m")
	for i := range 5 {
		m.put(w, fmt.Sprintf("%d.csv", i), "x")
	}
	s := w.scheduler()
	w.pass(t, s, time.Minute)
	require.Len(t, w.runs.begun, 1)
	for range 4 {
		w.pass(t, s, 30*time.Second) // the run works
		w.runs.finish()
		w.pass(t, s, 10*time.Second)
	}
	require.Equal(t, []string{"0.csv", "1.csv", "2.csv", "3.csv", "4.csv"}, w.runs.files())
	require.LessOrEqual(t, m.calls, 7, "and the server is asked when there is something to begin")
	// What is gone by the time its run could begin has none.
	m.put(w, "gone.csv", "x")
	m.put(w, "next.csv", "x")
	w.pass(t, s, 15*time.Minute)
	require.Len(t, w.runs.begun, 5)
	m.mu.Lock()
	delete(m.files, "s3://b/in/gone.csv")
	m.mu.Unlock()
	w.runs.finish()
	w.pass(t, s, time.Minute)
	require.Equal(t, "next.csv", w.runs.files()[5])
}

func TestServersThatAreAway(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, ", existing: ignore")
	m.put(w, "old.csv", "x")
	m.away = errors.New("s3://b/in/*.csv: the host is not known")
	s := w.scheduler()
	w.pass(t, s, 5*time.Minute)
	st := w.standing(t)
	require.Equal(t, "the host is not known", st.Blind.Message, "the address is in its record already")
	require.Less(t, m.calls, 10, "it is asked less and less often")
	require.InDelta(t, m.calls, st.Blind.Tries, 1, "what is told at the last moment may be written down after it")
	require.Less(t, w.clock.now.Sub(st.Looked), OnTime, "somebody looks after it")
	require.Empty(t, w.runs.told)
	w.pass(t, w.scheduler(), 15*time.Minute) // another process, which finds out by itself
	require.Len(t, w.runs.told, 1)
	require.Contains(t, w.runs.told[0], "the host is not known")
	require.Contains(t, w.runs.told[0], "cannot be looked at since 2026-03-02T05:00:")
	s = w.scheduler()
	w.pass(t, s, time.Hour)
	require.Len(t, w.runs.told, 1, "once")

	m.mu.Lock()
	m.away = nil
	m.mu.Unlock()
	w.pass(t, s, 11*time.Minute)
	require.Nil(t, w.standing(t).Blind)
	require.Empty(t, w.runs.begun, "what is there when it is seen first")
	m.put(w, "new.csv", "x")
	w.pass(t, s, 3*time.Minute)
	require.Equal(t, []string{"new.csv"}, w.runs.files())
}

// A server that does not answer keeps neither schedules nor the end waiting.
func TestServersThatAreSilent(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, "")
	m.hold = make(chan struct{})
	w.serve(t, "watch: {files: 's3://b/in/*.csv'}\nschedule: '* * * * *'\n")
	s := w.scheduler()
	ctx, stop := context.WithCancel(t.Context())
	for range 120 {
		w.clock.now = w.clock.now.Add(time.Second)
		require.NoError(t, s.Look(ctx))
	}
	require.NotEmpty(t, w.runs.begun)
	stop()
	s.listings.Wait()
}

func TestMarkersAtServers(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, ", marker: '{file}.done*'")
	m.put(w, "a.csv", "")
	s := w.scheduler()
	w.pass(t, s, time.Minute)
	require.Equal(t, []Pending{{File: "s3://b/in/a.csv", Why: "there is no s3://b/in/a.csv.done*"}},
		w.standing(t).Pending)
	m.put(w, "a.csv.done", "")
	m.put(w, "a.csv.done*", "") // nothing in a marker's name stands for anything else
	w.pass(t, s, 31*time.Second)
	require.Equal(t, []string{"a.csv"}, w.runs.files())
	w.runs.finish()
	m.put(w, "a.csv", "more")
	w.pass(t, s, 2*time.Minute)
	require.Len(t, w.runs.begun, 1)
	require.Contains(t, w.standing(t).Pending[0].Why, "is older than the file")
	m.put(w, "a.csv.done*", "")
	w.pass(t, s, time.Minute)
	require.Equal(t, []string{"a.csv", "a.csv"}, w.runs.files())
	w.serve(t, "watch: {files: 's3://b/in/*', marker: '{file}.done*'}\n")
	s = w.scheduler()
	w.runs.finish()
	w.pass(t, s, 2*time.Minute)
	require.Equal(t, 1, w.standings(t)["s3://b/in/*"].Waiting, "a.csv.done is a file, a.csv.done* is a marker")
}

// Names that would change the script are refused, whatever scheme is before them.
func TestNamesAtServers(t *testing.T) {
	t.Parallel()
	w, m := newServerWorld(t, "")
	for _, name := range []string{"a\"b.csv", "größe 1.csv", "{x}.csv"} {
		m.put(w, name, "x")
	}
	s := w.scheduler()
	w.pass(t, s, 2*time.Minute)
	require.Equal(t, []string{"größe 1.csv"}, w.runs.files())
	require.Equal(t, 2, w.standing(t).Waiting)
}

// Schedulers that die at any of their writes, two at once, a server that is away
// now and then, and files that come and change: each version that stood still gets
// one run.
func TestChaosEachFileOfAServerOnce(t *testing.T) {
	t.Parallel()
	for seed := range effort.Of[uint64](5, 15, 5_000) {
		random := rand.New(rand.NewPCG(seed, 4))
		w, m := newServerWorld(t, ", every: 5s")
		schedulers := []*Service{w.scheduler(), w.scheduler()}
		step := func(one int) {
			w.clock.now = w.clock.now.Add(time.Duration(1+random.IntN(8)) * time.Second)
			if err := schedulers[one].Look(t.Context()); err != nil {
				require.ErrorIs(t, err, errDied)
			}
			schedulers[one].listings.Wait()
		}
		var want []string
		for i := range 4 {
			name := fmt.Sprintf("%d.csv", i)
			want = append(want, name)
			m.put(w, name, "x")
			for range 12 {
				m.away = nil
				if random.IntN(4) == 0 {
					m.away = errors.New("away")
				}
				one := random.IntN(2)
				if w.disk.left = -1; random.IntN(3) == 0 {
					w.disk.left = random.IntN(3)
				}
				step(one)
				if w.disk.left >= 0 {
					schedulers[one] = w.scheduler()
				}
				if random.IntN(2) == 0 {
					w.runs.finish()
				}
			}
		}
		w.disk.left, m.away = -1, nil
		for range 400 {
			w.runs.finish()
			step(random.IntN(2))
		}
		require.ElementsMatch(t, want, w.runs.files(), fmt.Sprint("seed ", seed))
	}
}
