package budget

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"thalweg/internal/base/awake"
	"thalweg/internal/test/effort"
)

const gib = 1 << 30

func wholeOf(t testing.TB, total int64, cores, interpreters int) Budget {
	t.Helper()
	b, err := Split(total, cores, interpreters)
	require.NoError(t, err)
	return b
}

func enter(t *testing.T, dir, owner string, total int64, interpreters int) *Ledger {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	l, err := Enter(ctx, dir, Member{Owner: owner, Total: total}, wholeOf(t, total, 2, interpreters))
	require.NoError(t, err)
	return l
}

// held adds up what the files of a directory say, as members read them.
func held(t *testing.T, dir string) (sum int64) {
	t.Helper()
	require.NoError(t, newLedger(dir, Member{}, Budget{}).locked(t.Context(), func(all []entry) error {
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
	_, release, err := one.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	_, second, err := one.Room().Take(ctx, OneSlot)
	require.NoError(t, err)

	whole := wholeOf(t, 4*gib, 2, 0)
	waits, entered := make(chan string, 1), make(chan *Ledger)
	go func() {
		l, err := Enter(ctx, dir, Member{Owner: "two", Total: 4 * gib, Waiting: func(text string) {
			select {
			case waits <- text:
			default:
			}
		}}, whole)
		if err == nil {
			entered <- l
		}
	}()
	require.Equal(t, "one holds 4096 MiB; 4096 MiB for all", <-waits, "it says what it waits for")
	require.NoError(t, one.review(ctx))
	second() // the slots that are left are smaller: both batches have to end
	require.NoError(t, one.review(ctx))
	require.Equal(t, int64(4*gib), held(t, dir))
	release()
	require.NoError(t, one.review(ctx))
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
	dir, ctx, whole := t.TempDir(), t.Context(), wholeOf(t, 4*gib, 1, 0)
	var leaving sync.WaitGroup
	for i := range 2 {
		leaving.Go(func() {
			for range times {
				l := newLedger(dir, Member{Owner: fmt.Sprint(i), Total: 4 * gib}, whole)
				if err := l.review(ctx); err != nil || l.Leave() != nil {
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
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p1-dead"+shareSuffix),
		[]byte(`{"granted":99999999999,"total":1}`), 0o600), "of a process that has died")
	entered, whole := make(chan *Ledger), wholeOf(t, 8*gib, 2, 0)
	go func() {
		l, err := Enter(context.Background(), dir, Member{Owner: "two", Total: 8 * gib}, whole)
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
			errs := make([]error, 6)
			for i := range errs {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				life := live
				if i%3 == 0 {
					life = visit
				}
				all.Go(func() {
					for range 2 {
						if err := life(ctx, dir, total, rng, &used); err != nil {
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
			require.EqualValues(t, 12, lives.Load())
		})
	}
}

// live is a process's life in a ledger.
func live(ctx context.Context, dir string, total int64, rng *rand.Rand, used *atomic.Int64) error {
	whole, err := Split(total, 4, rng.IntN(2))
	if err != nil {
		return err
	}
	l, err := Enter(ctx, dir, Member{Owner: "x", Total: total, Turn: time.Millisecond}, whole)
	if err != nil {
		return err
	}
	reviewing, stop := context.WithCancel(ctx)
	defer stop()
	reviewed := make(chan error, 1)
	go func() {
		var failed error
		l.Review(reviewing, func(err error) { failed = err })
		reviewed <- failed
	}()
	for range 5 {
		share := []Share{OneSlot, OneSlot, OneSlot, AllSlots, Everything}[rng.IntN(5)]
		g, release, err := l.Room().Take(ctx, share)
		if err != nil {
			return err
		}
		bytes := int64(float64(g.EngineBytes)/engineShare) + whole.InterpreterBytes*int64(whole.Interpreters)
		if share == Everything && (g.EngineBytes != whole.SlotEngineBytes*int64(whole.Slots) || !g.Most) {
			return fmt.Errorf("everything is %+v", g)
		}
		if now := used.Add(bytes); now > total+1<<20 {
			return fmt.Errorf("%d bytes are used of %d", now, total)
		}
		used.Add(-bytes)
		release()
	}
	stop()
	<-reviewed
	if rng.IntN(3) == 0 { // it dies: the lock goes, the file stays
		return l.me.Close()
	}
	return l.Leave()
}

// visit is a guest's life in a ledger.
func visit(ctx context.Context, dir string, total int64, rng *rand.Rand, used *atomic.Int64) error {
	m := Member{Owner: "y", Total: total / 2, Guest: &Guest{LeastBytes: MemoryBytesMin / 2, MostBytes: total / 3}}
	for range 5 {
		bytes, leave, err := Visit(ctx, dir, m, func(error) {})
		if err != nil {
			return err
		}
		if bytes < m.Guest.LeastBytes || bytes > m.Guest.MostBytes {
			return fmt.Errorf("a guest has %d bytes", bytes)
		}
		if now := used.Add(bytes); now > total+1<<20 {
			return fmt.Errorf("%d bytes are used of %d", now, total)
		}
		for range rng.IntN(100) {
			runtime.Gosched()
		}
		used.Add(-bytes)
		if err := leave(); err != nil {
			return err
		}
	}
	return nil
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
			_, release, err := r.Take(t.Context(), map[bool]Share{true: AllSlots}[c.alone])
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

// A batch that waits for its share of the memory does not work: no limit of time counts that.
func TestTheWaitForMemoryDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(Budget{TotalBytes: 100, Slots: 1, SlotEngineBytes: 100})
		_, busy, err := r.Take(t.Context(), OneSlot)
		require.NoError(t, err)
		ctx, stop := awake.WithTimeout(t.Context(), time.Second)
		defer stop()
		time.AfterFunc(time.Hour, busy)
		_, release, err := r.Take(ctx, OneSlot)
		require.NoError(t, err)
		<-ctx.Done() // it works for too long
		release()
	})
}

func TestRoomInTurn(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := NewRoom(Budget{TotalBytes: 300, Slots: 2, SlotEngineBytes: 100})
	_, one, err := r.Take(ctx, OneSlot)
	require.NoError(t, err)
	whole := make(chan func())
	go func() {
		g, release, err := r.Take(ctx, AllSlots)
		if err == nil && g == (Grant{Slots: 2, EngineBytes: 200, Most: true}) {
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
	_, _, err = r.Take(late, OneSlot)
	require.ErrorIs(t, err, context.Canceled, "although a slot is free")
	one()
	release := <-whole
	require.False(t, r.become(Budget{Slots: 1, SlotEngineBytes: 50}))
	require.Equal(t, 2, r.Budget().Slots, "the batch keeps what it has")
	release()
	require.Equal(t, 1, r.Budget().Slots)
	g, release, err := r.Take(ctx, AllSlots)
	require.NoError(t, err)
	require.Equal(t, Grant{Slots: 1, EngineBytes: 50}, g)
	release()
	require.True(t, r.become(Budget{}))
	_, _, err = r.Take(late, AllSlots)
	require.ErrorIs(t, err, context.Canceled, "of nothing there is no share")
}

// Who has had everything ends while a review decides: the decision was for that batch, and the next one waits for
// another.
func TestEverythingEndsWithinAReview(t *testing.T) {
	t.Parallel()
	whole := wholeOf(t, gib, 2, 2)
	l := newLedger(t.TempDir(), Member{Owner: "one", Total: gib}, whole)
	r := l.Room()
	r.become(whole)
	_, release, err := r.Take(t.Context(), Everything)
	require.NoError(t, err)
	require.False(t, r.demand().had)
	release()
	require.True(t, r.become(whole))
	require.True(t, r.demand().had, "the next decision is still to come")
	require.True(t, r.become(whole))
	_, release, err = r.Take(t.Context(), Everything)
	require.NoError(t, err)
	release()
}

// A batch that needs everything waits for all others, has what it would have
// alone, and leaves the turn to those who have waited for it.
func TestEverythingInTurn(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	whole := wholeOf(t, gib, 2, 2)
	one := newLedger(dir, Member{Owner: "one", Total: gib, Turn: time.Nanosecond}, whole)
	two := newLedger(dir, Member{Owner: "two", Total: gib, Turn: time.Nanosecond}, whole)
	review := func() {
		for range 4 {
			require.NoError(t, one.review(ctx))
			require.NoError(t, two.review(ctx))
			require.LessOrEqual(t, held(t, dir), int64(gib))
		}
	}
	review()
	require.EqualValues(t, gib/2, one.entry.Held)
	require.EqualValues(t, gib/2, two.entry.Held)
	_, busy, err := two.Room().Take(ctx, OneSlot)
	require.NoError(t, err)
	waiting := func(l *Ledger) int {
		l.Room().mu.Lock()
		defer l.Room().mu.Unlock()
		return len(l.Room().waiting)
	}
	take := func(l *Ledger) chan func() {
		got := make(chan func(), 1)
		require.Zero(t, waiting(l))
		go func() {
			if g, release, err := l.Room().Take(ctx, Everything); err == nil &&
				g == (Grant{Slots: 2, EngineBytes: 2 * whole.SlotEngineBytes, Most: true}) {
				got <- release
			}
		}()
		for waiting(l) == 0 {
			require.NoError(t, ctx.Err())
		}
		return got
	}
	// given reviews until what is waited for is there: who is next depends on the moments of those before.
	given := func(got chan func()) func() {
		for {
			select {
			case release := <-got:
				return release
			default:
				require.NoError(t, ctx.Err())
				review()
			}
		}
	}
	first := take(one)
	review()
	require.EqualValues(t, gib/2, two.entry.Held, "a batch is not interrupted")
	said, err := Waiters(ctx, dir)
	require.NoError(t, err)
	require.Equal(t, Waiting{Texts: []string{"a batch of one needs all of the 1024 MiB", "one holds 512 MiB",
		"two holds 512 MiB"}, PIDs: []int{os.Getpid()}}, said)
	busy()
	review()
	release := given(first)
	require.Zero(t, two.entry.Held)
	require.Zero(t, two.Room().Budget().Slots)
	second := take(two)
	review()
	require.EqualValues(t, gib, one.entry.Held, "nor is one that has everything")
	again := take(one)
	release()
	review()
	release = given(second)
	require.Empty(t, again, "it is behind the other in the line")
	release()
	review()
	release = given(again)
	require.Zero(t, two.entry.Turn, "it has nothing to do")
	release()
	review()
	require.EqualValues(t, gib, one.entry.Held)
	small := make(chan func(), 1)
	go func() {
		if _, release, err := two.Room().Take(ctx, OneSlot); err == nil {
			small <- release
		}
	}()
	for !two.room.demand().waiting {
		require.NoError(t, ctx.Err())
	}
	review()
	release = given(small)
	release()
	require.EqualValues(t, gib/2, one.entry.Held)
	require.EqualValues(t, gib/2, two.entry.Held)
}

// follows reviews a ledger as programs do, until the test ends.
func follows(t *testing.T, l *Ledger) {
	t.Helper()
	var loop sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	loop.Go(func() { l.Review(ctx, func(err error) { t.Errorf("review: %v", err) }) })
	t.Cleanup(func() {
		stop()
		loop.Wait()
		require.NoError(t, l.Leave())
	})
}

// Whoever waits gets its turn by the reviews of programs alone, though those before it go on to
// have batches to do: of everything, and of a share.
func TestAWaiterGetsItsTurn(t *testing.T) {
	t.Parallel()
	for _, share := range []Share{OneSlot, AllSlots, Everything} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(t.Context(), effort.Patience)
			defer stop()
			dir, whole := t.TempDir(), wholeOf(t, MemoryBytesMin, 1, 1) // for one process at a time
			var all []*Ledger
			for i := range 3 {
				l := newLedger(dir, Member{Owner: fmt.Sprint(i), Total: MemoryBytesMin, Turn: time.Millisecond}, whole)
				follows(t, l)
				all = append(all, l)
			}
			busy, rest := context.WithCancel(ctx)
			var others sync.WaitGroup
			for _, l := range all[1:] {
				others.Go(func() {
					for busy.Err() == nil {
						if _, release, err := l.Room().Take(busy, OneSlot); err == nil {
							release()
						}
					}
				})
			}
			for range 3 {
				_, release, err := all[0].Room().Take(ctx, share)
				require.NoError(t, err)
				release()
			}
			rest()
			others.Wait()
		})
	}
}

// A file whose process has made it and not written it yet, or could not, says that it holds nothing.
func TestAFileThatIsEmptyIsNoError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := enter(t, dir, "one", gib, 0)
	f, err := os.Create(filepath.Join(dir, "p1-new"+shareSuffix))
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	require.NoError(t, l.review(t.Context()))
	require.EqualValues(t, gib, held(t, dir))
	require.FileExists(t, f.Name(), "it lives")
	require.NoError(t, f.Close())
}

// Whose share somebody has removed, as one who cleans up a full disk, leaves all the same.
func TestLeaveWithoutAFile(t *testing.T) {
	t.Parallel()
	l := enter(t, t.TempDir(), "one", gib, 0)
	require.NoError(t, os.Remove(l.me.Name()))
	require.NoError(t, l.Leave())
}

// What a process could not say of itself does not count: others go by what it has said.
func TestAShareThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	l := enter(t, t.TempDir(), "one", 4*gib, 0)
	readOnly, err := os.Open(l.me.Name())
	require.NoError(t, err)
	require.NoError(t, l.me.Close())
	l.me = readOnly
	require.Error(t, l.write(7))
	require.EqualValues(t, 4*gib, l.entry.Held)
	require.NoError(t, l.Leave())
}

// Who is stopped holds what it takes, and nobody waits for it where everything is wanted.
func TestWhoDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	whole := wholeOf(t, gib, 2, 0)
	now := time.Now()
	clock := awake.New(reviewEvery, func() time.Time { return now })
	stopped := newLedger(dir, Member{Owner: "stopped", Total: gib}, whole)
	stopped.entry.PID = -1 // of another machine, as far as this one can see
	require.NoError(t, stopped.review(ctx))
	l := newLedger(dir, Member{Owner: "one", Total: gib}, whole)
	l.clock = clock
	require.NoError(t, l.review(ctx))
	require.Zero(t, l.entry.Held)
	now = now.Add(time.Hour) // this process was stopped as well
	require.NoError(t, l.review(ctx))
	require.Zero(t, l.entry.Held)
	for range int(absentAfter / reviewEvery) {
		now = now.Add(reviewEvery)
		require.NoError(t, l.review(ctx))
	}
	require.EqualValues(t, gib, l.entry.Held)
	require.Equal(t, "stopped holds 1024 MiB and does not answer: it is stopped, or stands still",
		holders([]entry{{Owner: "stopped", Held: gib, absent: true}})[0])
	require.NoError(t, stopped.review(ctx)) // it is there again, and has had its turn longer than the other
	require.NoError(t, l.review(ctx))
	require.NoError(t, stopped.review(ctx))
	require.LessOrEqual(t, held(t, dir), int64(gib))
}

// What keeps a process from looking at the others for a while does not keep its batches from memory for ever.
func TestReviewGoesOnBehindAFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := enter(t, dir, "one", MemoryBytesMin, 0), newLedger(dir, Member{Owner: "two", Total: MemoryBytesMin},
		wholeOf(t, MemoryBytesMin, 2, 0))
	require.NoError(t, two.review(t.Context()))
	require.Zero(t, two.entry.Held, "there is not enough for both")
	guard := filepath.Join(dir, guardName)
	require.NoError(t, os.Remove(guard))
	require.NoError(t, os.Mkdir(guard, 0o700))
	reviewing, stop := context.WithCancel(t.Context())
	failed, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		two.Review(reviewing, func(err error) { failed <- err })
	}()
	require.Error(t, <-failed)
	require.NoError(t, os.Remove(guard))
	require.NoError(t, one.Leave())
	_, release, err := two.Room().Take(t.Context(), OneSlot)
	require.NoError(t, err)
	release()
	stop()
	<-ended
	require.NoError(t, two.Leave())
}

// Who was told what is waited for is told when that is over, also in a process that had memory before.
func TestWhoWaitsIsToldOfTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := enter(t, dir, "one", MemoryBytesMin, 0)
	var told []string
	two := newLedger(dir, Member{Owner: "two", Total: MemoryBytesMin,
		Waiting: func(text string) { told = append(told, text) }}, wholeOf(t, MemoryBytesMin, 2, 0))
	waits := func() {
		require.NoError(t, two.review(t.Context()))
		two.waits, two.said = time.Now().Add(-sayAfter), time.Time{}
		require.NoError(t, two.review(t.Context()))
		require.Len(t, told, 1)
		require.Contains(t, told[0], "one holds ")
	}
	waits()
	require.NoError(t, one.Leave())
	require.NoError(t, two.review(t.Context()))
	require.Equal(t, "", told[1])
	require.NoError(t, two.review(t.Context()))
	require.Len(t, told, 2)
	require.NoError(t, two.Leave())
	require.Len(t, told, 2)
	one, told, two = enter(t, dir, "one", MemoryBytesMin, 0), nil, newLedger(dir, two.member, two.whole)
	waits()
	require.NoError(t, two.Leave())
	require.Equal(t, "", told[1], "also when it leaves")
	require.NoError(t, one.Leave())
}

// Whoever reads a file while it is written reads an entry.
func TestSharesAreWrittenInOneStep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := enter(t, dir, strings.Repeat("o", 300), gib, 0)
	require.NoError(t, l.locked(t.Context(), func([]entry) error {
		for _, held := range []int64{1, gib, 0, gib} {
			require.NoError(t, l.write(held))
			data, err := os.ReadFile(l.me.Name())
			require.NoError(t, err)
			require.Len(t, data, shareBytes)
			e, alive, err := readShare(l.me.Name())
			require.NoError(t, err)
			require.True(t, alive)
			require.Equal(t, held, e.Held)
		}
		return nil
	}))
	require.NoError(t, l.Leave())
}

// A guard whose holder is stopped in the midst of a change is given up.
func TestAGuardThatIsHeldIsGivenUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), guardName)
	held, err := lockGuard(t.Context(), path, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockGuard(ctx, path, nil)
	require.ErrorIs(t, err, context.Canceled)
	looks := time.Now()
	g, err := lockGuard(t.Context(), path, func() time.Time {
		looks = looks.Add(absentAfter) // that it may go on by is little
		return looks
	})
	require.NoError(t, err)
	require.NoError(t, giveUp(held, path), "who is later takes nothing from the guard that is in its place")
	there, err := isAt(g, path)
	require.NoError(t, err)
	require.True(t, there)
	require.NoError(t, g.Close())
	require.NoError(t, held.Close())
}

// Whatever comes and goes: the parts of those who are to have one are never more
// than the figure, each has what it cannot do without, and the first in the line
// is among them.
func TestTurns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var all []entry
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			e := entry{Owner: fmt.Sprint(i), Total: rapid.SampledFrom([]int64{gib, 2 * gib, gib/2 + 5}).
				Draw(t, "total"), Turn: int64(2*i + 1), Floor: rapid.Int64Range(MemoryBytesMin, gib).Draw(t, "floor")}
			guest := rapid.IntRange(0, 3).Draw(t, "guest")
			if guest < 2 {
				e.Most, e.Stays = rapid.Int64Range(MemoryBytesMin, e.Total).Draw(t, "most"), guest == 0
				e.Floor = min(e.Floor, e.Most)
			}
			if rapid.Bool().Draw(t, "is in") {
				e.Held, e.Under = rapid.Int64Range(1, cmp.Or(e.Most, e.Total)).Draw(t, "held"), e.Total
			}
			if e.Most == 0 && rapid.IntRange(0, 3).Draw(t, "wants all") == 0 {
				e.All = e.Turn + int64(rapid.IntRange(0, 1).Draw(t, "later"))
			}
			all = append(all, e)
		}
		parts, everything := turns(all)
		total, kept, sum, in := figure(all), int64(0), int64(0), 0
		reversed, _ := turns(reverse(all)) // each sees the others in another order
		reversed = reverse(reversed)
		for i, part := range parts {
			if all[i].lasting() {
				kept += part // until it leaves
				continue
			}
			require.Equal(t, part, reversed[i])
			if sum += part; part > 0 {
				in++
				require.GreaterOrEqual(t, part, min(all[i].Floor, total))
				require.LessOrEqual(t, part, all[i].most(total))
			}
		}
		if in > 1 || kept == 0 { // else it was there before the guests, or they before its figure
			require.LessOrEqual(t, sum+kept, total)
		}
		if waiting := line(all); len(waiting) > 0 {
			first := waiting[0].who
			require.True(t, parts[first] > 0 || kept+min(all[first].Floor, total) > total)
			require.Equal(t, waiting[0].everything, everything)
		} else {
			require.False(t, everything)
		}
	})
}

func reverse[T any](s []T) []T {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// Who looks at the others does so a few times a second, and not because it has looked.
func TestAReviewWakesNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := enter(t, dir, "one", gib, 2)
	_, release, err := one.Room().Take(t.Context(), OneSlot)
	require.NoError(t, err)
	two := newLedger(dir, Member{Owner: "two", Total: gib}, wholeOf(t, gib, 2, 2))
	for range 3 {
		require.NoError(t, two.review(t.Context()))
		require.NoError(t, one.review(t.Context()))
		require.Empty(t, one.room.changed)
		require.Empty(t, two.room.changed)
	}
	release()
	require.Len(t, one.room.changed, 1, "a batch that was waited for has ended")
	require.NoError(t, one.Leave())
	require.NoError(t, two.Leave())
}
