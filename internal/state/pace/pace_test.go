package pace

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// crowd has processes change one partition for a while, each change a read and
// a write that is lost if another one has come between, and says how many were
// won and lost by each.
func crowd(processes int, lasts time.Duration) (won, lost []int) {
	const tick, read, write = time.Millisecond, 2, 3
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	type process struct {
		pace     Pace
		at       int // next step
		writes   bool
		revision int
	}
	all := make([]process, processes)
	won, lost = make([]int, processes), make([]int, processes)
	revision := 0
	for now := range int(lasts / tick) {
		for _, i := range rng.Perm(processes) {
			p := &all[i]
			switch {
			case now < p.at:
				continue
			case !p.writes:
				p.writes, p.revision, p.at = true, revision, now+write
				continue
			case p.revision == revision:
				revision++
				won[i]++
				p.pace.Won()
			default:
				lost[i]++
				p.pace.Lost()
			}
			p.writes, p.at = false, now+read+int(p.pace.Wait(0, rng)/tick)
		}
	}
	return won, lost
}

// Many lose few of their tries, the partition stays busy, and nobody is left behind.
func TestCrowd(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2, 4, 16, 64, 256} {
		won, lost := crowd(processes, time.Minute)
		wins, losses, least := 0, 0, won[0]
		for i := range won {
			wins, losses, least = wins+won[i], losses+lost[i], min(least, won[i])
		}
		t.Logf("%3d processes: %4d won a second, %.2f lost for each, the slowest has %d of %d", processes, wins/60, float64(losses)/float64(wins),
			least, wins/processes)
		require.Greater(t, wins, 60*120)
		require.Greater(t, least, wins/processes/4)
		if processes <= 64 { // and 256, which Longest does not leave enough room for
			require.Less(t, float64(losses)/float64(wins), 2.5)
		}
	}
}

// Who competes with nobody does not wait.
func TestAlone(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	var p Pace
	p.Won()
	require.Zero(t, p.Wait(0, rng))
	p.Lost()
	require.Less(t, p.Wait(0, rng), First)
	for range 60 {
		p.Won()
	}
	require.Zero(t, p.Wait(0, rng))
	for range 100 {
		p.Lost()
		require.Less(t, p.Wait(0, rng), Longest)
		require.Zero(t, p.Wait(Longest, rng))
	}
}
