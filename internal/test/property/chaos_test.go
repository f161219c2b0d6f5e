package property

import (
	"context"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// Environment variables of `make chaos`.
const (
	chaosMinutes = "CHAOS_MINUTES" // so long trials are made, of seeds nobody has seen; with a seed: of that
	chaosSeed    = "CHAOS_SEED"    // only the trial of this seed
)

// Trials, where nobody says for how long; the first has kills and stops.
const (
	quickTrials, sampleTrials, chaosTrials = 1, 1, 60
	firstTrial                             = uint64(5)
)

// trialsAtOnce for each core: they wait for leases most of the time.
const trialsAtOnce = 2

// tally counts what trials have done and met.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[what] += n
}

// String lists the counts.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(t.n)) {
		fmt.Fprintf(&b, "%8d %s\n", t.n[what], what)
	}
	return b.String()
}

// happens lists what trials for some minutes have to have met.
func happens() []string {
	return []string{"SIGKILL at a step", "SIGKILL at any moment", "SIGKILL to a child", "SIGSTOP at a step",
		"SIGSTOP at any moment", "SIGTERM at a step", "SIGTERM at any moment",
		"a task fails once", "killed: run", "killed: resume", "killed: retry", "killed: matrix", "killed: worker",
		"killed: decide", "killed: gc", "killed: an order",
		"batches tried again", "batches done again", "attempts that were lost", "edited and run again", "gates passed",
		"nodes taken over", "runs dropped by gc", "parts removed by gc"}
}

// TestChaosTrials makes trials: whatever happens to the processes of a script,
// its files are those of an undisturbed run, and nothing is lost, doubled or left.
func TestChaosTrials(t *testing.T) {
	t.Parallel()
	tally := &tally{n: map[string]int{}}
	first, end, until := firstTrial, firstTrial+uint64(effort.Of(quickTrials, sampleTrials, chaosTrials)), time.Time{}
	minutes, seed := os.Getenv(chaosMinutes), os.Getenv(chaosSeed)
	if minutes != "" {
		n, err := strconv.ParseFloat(minutes, 64)
		require.NoError(t, err, chaosMinutes)
		until = time.Now().Add(time.Duration(n * float64(time.Minute)))
		first = uint64(time.Now().Unix()) % 1e6 * 1e4
		end = first + 1e9
	}
	if seed != "" {
		n, err := strconv.ParseUint(seed, 10, 64)
		require.NoError(t, err, chaosSeed)
		if first = n; minutes == "" {
			end = first + 1
		}
	}
	var mu sync.Mutex
	next, failed, trials := first, 0, 0
	began, told := time.Now(), time.Now()
	one := func() bool {
		mu.Lock()
		mine := next
		over := mine >= end || failed >= enough || !until.IsZero() && time.Now().After(until)
		if next++; seed != "" && minutes != "" {
			mine = first
		}
		if time.Since(told) > time.Minute {
			told = time.Now()
			t.Logf("%d trials, %d of them failed", trials, failed)
		}
		mu.Unlock()
		if over {
			return false
		}
		tr := newTrial(mine, tally)
		ctx, cancel := context.WithTimeout(t.Context(), trialTimeout)
		err := tr.run(ctx)
		cancel()
		mu.Lock()
		defer mu.Unlock()
		trials++
		if err != nil {
			failed++
			t.Errorf("trial %d: %v\nmake chaos %s=%d does it again\n%s", mine, err, chaosSeed, mine,
				strings.Join(tr.log, "\n"))
		}
		return true
	}
	var hands sync.WaitGroup
	for range min(uint64(trialsAtOnce*runtime.NumCPU()), end-first) {
		hands.Go(func() {
			for one() {
			}
		})
	}
	hands.Wait()
	t.Logf("%d trials in %.0f s, from seed %d on; %d differ\n%s", trials, time.Since(began).Seconds(), first,
		failed, tally)
	if minutes != "" && seed == "" {
		for _, what := range happens() {
			require.Positive(t, tally.n[what], what)
		}
	}
}

// trialTimeout is for one, on a machine that has much else to do.
const trialTimeout = 10 * time.Minute
