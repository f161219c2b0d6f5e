package budget

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const gib = 1 << 30

func splitOf(cores, interpreters int) func(int64) (Budget, error) {
	return func(total int64) (Budget, error) { return Split(total, cores, interpreters) }
}

func enter(t *testing.T, dir, owner string, total int64, interpreters int) *Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, err := Enter(ctx, dir, Member{Owner: owner, Total: total}, splitOf(2, interpreters))
	require.NoError(t, err)
	return l
}

// held adds up what the files of a directory say, the dead not counted.
// held is read as members read it: a file is empty for a moment while it is written.
func held(t *testing.T, dir string) (sum int64) {
	t.Helper()
	require.NoError(t, (&Ledger{dir: dir}).locked(func(all []entry) error {
		for _, e := range all {
			sum += e.Held
		}
		return nil
	}))
	return sum
}

func TestLedgerAloneHasItAll(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shares")
	l := enter(t, dir, "a", 4*gib, 2)
	want, err := Split(4*gib, 2, 2)
	require.NoError(t, err)
	require.Equal(t, want, l.Room().Budget())
	require.NoError(t, l.review(context.Background()))
	require.Equal(t, want, l.Room().Budget())
	require.NoError(t, l.Leave())
	left, err := filepath.Glob(filepath.Join(dir, "*"+shareSuffix))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLedgerSecondGetsHalfOnceTheFirstHasGivenItBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	one := enter(t, dir, "one", 4*gib, 0)
	_, release, err := one.Room().Take(ctx, false)
	require.NoError(t, err)
	_, second, err := one.Room().Take(ctx, false)
	require.NoError(t, err)

	waits, entered := make(chan string, 1), make(chan *Ledger)
	go func() {
		l, err := Enter(ctx, dir, Member{Owner: "two", Total: 4 * gib, Waiting: func(text string) {
			select {
			case waits <- text:
			default:
			}
		}}, splitOf(2, 0))
		if err == nil {
			entered <- l
		}
	}()
	require.Equal(t, "one holds 4096 MiB; 4096 MiB for all", <-waits, "it says what it waits for")
	reviewed := make(chan error, 1)
	go func() { reviewed <- one.review(ctx) }()
	second() // the slots that are left are smaller: both batches have to end
	require.Equal(t, int64(4*gib), held(t, dir))
	release()
	require.NoError(t, <-reviewed)
	two := <-entered
	require.Equal(t, int64(2*gib), one.Room().Budget().TotalBytes)
	require.Equal(t, int64(2*gib), two.Room().Budget().TotalBytes)
	require.Equal(t, 1, one.Room().Budget().Slots, "slots go before they become smaller")
	require.Equal(t, 1, two.Room().Budget().Slots)
	require.LessOrEqual(t, held(t, dir), int64(4*gib))
	// What one leaves, the other has.
	require.NoError(t, one.Leave())
	require.NoError(t, two.review(ctx))
	require.Equal(t, int64(4*gib), two.Room().Budget().TotalBytes)
	require.Equal(t, 2, two.Room().Budget().Slots)
	require.NoError(t, two.Leave())
}

// Others leave while their files are read.
func TestLedgerReadsThoseWhoLeave(t *testing.T) {
	t.Parallel()
	const times = 1000
	dir := t.TempDir()
	var leaving sync.WaitGroup
	for i := range 2 {
		leaving.Go(func() {
			for range times {
				l := &Ledger{dir: dir, split: splitOf(1, 0), entry: entry{Owner: fmt.Sprint(i), Total: 4 * gib, Floor: MemoryBytesMin}}
				if _, _, err := l.ask(); err != nil || l.Leave() != nil {
					t.Errorf("enter or leave: %v", err)
					return
				}
			}
		})
	}
	leaving.Wait()
}

func TestLedgerLeastFigureCounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := enter(t, dir, "one", 1*gib, 0)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p1-dead"+shareSuffix), []byte(`{"granted":99999999999,"total":1}`), 0o600), "of a process that has died")
	entered := make(chan *Ledger)
	go func() {
		l, err := Enter(context.Background(), dir, Member{Owner: "two", Total: 8 * gib}, splitOf(2, 0))
		if err == nil {
			entered <- l
		}
	}()
	for one.Room().Budget().TotalBytes != gib/2 {
		require.NoError(t, one.review(context.Background()))
	}
	two := <-entered
	require.Equal(t, int64(gib/2), two.Room().Budget().TotalBytes)
	require.NoError(t, two.Leave())
	require.NoError(t, one.Leave())
}

// Many come, work and go, some by dying: never is more held than there is,
// everybody gets in, and nobody waits for ever.
func TestLedgerRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const total = 2 * gib
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			var used, lives atomic.Int64
			var all sync.WaitGroup
			errs := make([]error, 12)
			for i := range errs {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				all.Go(func() {
					for range 3 {
						if err := live(ctx, dir, total, rng, &used); err != nil {
							errs[i] = err
							return
						}
						lives.Add(1)
					}
				})
			}
			all.Wait()
			for _, err := range errs {
				require.NoError(t, err)
			}
			require.EqualValues(t, 36, lives.Load())
		})
	}
}

// live is a process's life in a ledger.
func live(ctx context.Context, dir string, total int64, rng *rand.Rand, used *atomic.Int64) error {
	l, err := Enter(ctx, dir, Member{Owner: "x", Total: total}, splitOf(4, rng.IntN(2)))
	if err != nil {
		return err
	}
	fixed := int64(baseBytes) + l.Room().Budget().InterpreterBytes*int64(l.Room().Budget().Interpreters)
	if now := used.Add(fixed); now > total {
		return fmt.Errorf("%d bytes are used of %d", now, total)
	}
	for range 5 {
		g, release, err := l.Room().Take(ctx, rng.IntN(4) == 0)
		if err != nil {
			return err
		}
		bytes := int64(float64(g.EngineBytes) / engineShare)
		if now := used.Add(bytes); now > total+1<<20 {
			return fmt.Errorf("%d bytes are used of %d", now, total)
		}
		used.Add(-bytes)
		release()
		if err := l.review(ctx); err != nil {
			return err
		}
	}
	used.Add(-fixed)
	if rng.IntN(3) == 0 { // it dies: the lock goes, the file stays
		return l.me.Close()
	}
	return l.Leave()
}

// A batch waits for memory where more of it would have spared the wait, else for a slot.
func TestRoomSaysWhatIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cores int
		alone bool // the one before has all slots
		turn  bool
	}{
		{"a slot for each core", 2, false, true},
		{"memory for two of four cores", 4, false, false},
		{"one batch needs all", 2, true, false},
	} {
		r := NewRoom(Budget{Slots: 2, Cores: c.cores, SlotEngineBytes: 100})
		var before []func()
		for range map[bool]int{true: 1, false: 2}[c.alone] {
			_, release, err := r.Take(t.Context(), c.alone)
			require.NoError(t, err)
			before = append(before, release)
		}
		w := &waiter{ready: make(chan struct{})}
		r.mu.Lock()
		require.Equal(t, c.turn, r.turnFor(w), c.name)
		r.mu.Unlock()
		for _, release := range before {
			release()
		}
		if c.alone {
			require.True(t, r.turnFor(w), "it has left")
		}
	}
}

func TestRoomInTurn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := NewRoom(Budget{Slots: 2, SlotEngineBytes: 100})
	_, one, err := r.Take(ctx, false)
	require.NoError(t, err)
	whole := make(chan func())
	go func() {
		g, release, err := r.Take(ctx, true)
		if err == nil && g == (Grant{Slots: 2, EngineBytes: 200}) {
			whole <- release
		}
	}()
	for { // until it waits: who comes later waits behind it
		r.mu.Lock()
		n := len(r.waiting)
		r.mu.Unlock()
		if n == 1 {
			break
		}
	}
	late, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err = r.Take(late, false)
	require.ErrorIs(t, err, context.Canceled, "although a slot is free")
	one()
	release := <-whole
	become := make(chan error)
	go func() { become <- r.Become(ctx, Budget{Slots: 1, SlotEngineBytes: 50}) }()
	release()
	require.NoError(t, <-become)
	g, release, err := r.Take(ctx, true)
	require.NoError(t, err)
	require.Equal(t, Grant{Slots: 1, EngineBytes: 50}, g)
	release()
}
