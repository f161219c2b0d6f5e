package pace_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/adapt"
	"thalweg/internal/run/pace"
	"thalweg/internal/store/parts"
)

// machine executes batches: of a class, each 100 MB, one after the other in as many
// goroutines as may be.
type machine struct {
	pace  *pace.Pace
	class string
	knee  int // so many at once go on undisturbed
	at    atomic.Int64
	most  atomic.Int64
	done  atomic.Int64
}

const batchTime = 500 * time.Millisecond

func (m *machine) work(ctx context.Context) {
	for ctx.Err() == nil {
		release, err := m.pace.Admit(ctx)
		if err != nil {
			return
		}
		_, _, end, err := m.pace.Enter(ctx, m.class)
		if err != nil {
			release()
			return
		}
		n := m.at.Add(1)
		for most := m.most.Load(); n > most && !m.most.CompareAndSwap(most, n); most = m.most.Load() {
		}
		<-time.After(batchTime * time.Duration(max(int(n), m.knee)) / time.Duration(m.knee))
		m.at.Add(-1)
		m.done.Add(1)
		end(&pace.Done{Bytes: 100 << 20, Elapsed: batchTime, Write: batchTime / 100})
		release()
	}
}

// run lets it work for so long, in time of its own.
func (m *machine) run(t *testing.T, long time.Duration) {
	ctx, stop := context.WithTimeout(t.Context(), long)
	defer stop()
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() { m.work(ctx) })
	}
	group.Go(func() { m.pace.Watch(ctx) })
	group.Wait()
}

// While processors are idle it finds what does most, and says why; while they are all
// in use nothing is tried.
func TestFinds(t *testing.T) {
	for _, c := range []struct {
		name        string
		busy        float64
		knee        int
		least, most int
	}{
		{"idle", 0.5, 6, 5, 7},
		{"nothing helps", 0.5, 1, 1, 3},
		{"all processors in use", 2, 6, 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []adapt.Decision
				p := pace.New(pace.Config{Cores: 2, Slots: 2, Start: 3, Most: 12,
					Busy: func() float64 { return c.busy }, Decided: func(d adapt.Decision) { told = append(told, d) }})
				m := &machine{pace: p, class: pace.Load, knee: c.knee}
				m.run(t, 20*time.Minute)
				knobs, decisions := p.Told()
				require.Equal(t, pace.Batches, knobs[0].Knob)
				require.GreaterOrEqual(t, knobs[0].Value, c.least, "%v", told)
				require.LessOrEqual(t, knobs[0].Value, c.most, "%v", told)
				require.NotEmpty(t, knobs[0].Reason)
				require.Equal(t, c.busy < 2, len(decisions) > 0)
				if c.busy == 2 {
					require.Empty(t, told)
					require.Equal(t, "all processors are in use", knobs[0].Reason)
				}
				require.LessOrEqual(t, m.most.Load(), int64(12))
			})
		})
	}
}

// Who has waited longest is admitted next, so that no class keeps out another.
func TestAdmitsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(pace.Config{Cores: 1, Slots: 1, Start: 1, Most: 1})
		release, err := p.Admit(t.Context())
		require.NoError(t, err)
		impatient, leave := context.WithCancel(t.Context())
		var order []int
		var group sync.WaitGroup
		for i := range 12 {
			ctx := t.Context()
			if i == 0 {
				ctx = impatient
			}
			group.Go(func() {
				release, err := p.Admit(ctx)
				if err != nil {
					return
				}
				order = append(order, i) // one is admitted at a time
				release()
			})
			synctest.Wait()
		}
		leave() // whoever leaves holds back nobody
		synctest.Wait()
		release()
		release, err = p.Admit(t.Context()) // before anybody has woken
		require.NoError(t, err)
		order = append(order, 12)
		release()
		group.Wait()
		require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, order)
	})
}

// A forced number holds, whatever else is decided, and for its class only.
func TestForced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fixed, err := pace.ParseFixed([]string{"python=1", "load.writers=3", "load.threads=2"})
		require.NoError(t, err)
		writers := parts.NewResizableSemaphore(8)
		p := pace.New(pace.Config{Cores: 4, Slots: 4, Start: 4, Most: 8, Fixed: fixed, Writers: writers})
		python := &machine{pace: p, class: pace.Python, knee: 8}
		load := &machine{pace: p, class: pace.Load, knee: 8}
		var group sync.WaitGroup
		group.Go(func() { python.run(t, 10*time.Minute) })
		group.Go(func() { load.run(t, 10*time.Minute) })
		group.Wait()
		require.EqualValues(t, 1, python.most.Load())
		require.Greater(t, load.most.Load(), int64(1))
		require.Positive(t, python.done.Load())
		threads, exact, end, err := p.Enter(t.Context(), pace.Load)
		require.NoError(t, err)
		require.Equal(t, 2, threads)
		require.True(t, exact)
		end(nil)
		p.Look()
		require.Equal(t, 3, writers.Most())
	})
}

// A forced number leaves its class no more, and the others what they had.
func TestRoomOfClasses(t *testing.T) {
	t.Parallel()
	fixed, err := pace.ParseFixed([]string{"python=1"})
	require.NoError(t, err)
	p := pace.New(pace.Config{Cores: 8, Slots: 8, Start: 8, Most: 8, Fixed: fixed})
	claim := func(class string) (end func()) {
		release, err := p.Admit(t.Context())
		require.NoError(t, err)
		leave, ok := p.Room(class)
		require.True(t, ok)
		_, _, done, err := p.Enter(t.Context(), class)
		require.NoError(t, err)
		return func() {
			done(nil)
			leave()
			release()
		}
	}
	end := claim(pace.Python)
	_, ok := p.Room(pace.Python)
	require.False(t, ok)
	for range 7 { // it would wait for ever here if Python's number were that of all
		defer claim(pace.Join)()
	}
	end()
	defer claim(pace.Python)()
}

// Who waits for a turn and gives up leaves nothing behind.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(pace.Config{Cores: 1, Slots: 1, Start: 1, Most: 1})
		_, _, end, err := p.Enter(t.Context(), pace.Join)
		require.NoError(t, err)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, _, _, err = p.Enter(ctx, pace.Join)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		release, err := p.Admit(t.Context())
		require.NoError(t, err)
		_, err = p.Admit(ctx)
		require.Error(t, err)
		release()
		end(nil)
		_, _, end, err = p.Enter(t.Context(), pace.Join)
		require.NoError(t, err)
		end(nil)
		end(nil)
	})
}

func TestParseFixed(t *testing.T) {
	fixed, err := pace.ParseFixed([]string{"4", "join=2", "write.threads=3"})
	require.NoError(t, err)
	require.Equal(t, pace.Fixed{{Class: pace.Load, Knob: pace.Batches}: 4, {Class: pace.Join, Knob: pace.Batches}: 2,
		{Class: pace.Python, Knob: pace.Batches}: 4,
		{Class: pace.Write, Knob: pace.Batches}:  4, {Class: pace.Write, Knob: pace.Threads}: 3}, fixed)
	require.Equal(t, 4, fixed.Most())
	for _, wrong := range []string{"", "0", "many", "load=", "load=-1", "nobody=1", "python.threads=2",
		"write.writers=2", "load.batches.=2", "1000"} {
		_, err := pace.ParseFixed([]string{wrong})
		var f *fault.Error
		require.ErrorAs(t, err, &f, wrong)
		require.NotEmpty(t, f.Hint)
	}
}

func TestClassOf(t *testing.T) {
	for of, class := range map[string]string{"file_table": pace.Load, "table_file": pace.Write, "py_table": pace.Python,
		"table_custom_tfm_table": pace.Python, "sql": pace.Join, "table_lookup_table": pace.Join} {
		require.Equal(t, class, pace.ClassOf(of))
	}
}
