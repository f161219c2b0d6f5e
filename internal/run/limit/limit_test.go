package limit_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/limit"
	"thalweg/internal/store/state"
)

func node(name string, total, done int, worked time.Duration) state.Node {
	n := state.Node{NodeSpec: state.NodeSpec{Name: name}, Status: state.Running, BatchesTotal: total, BatchesDone: done,
		Spent: state.Spent{Worked: worked}}
	if total > 0 && total == done {
		n.Status = state.Succeeded
	}
	return n
}

func TestWhatIsUsedReachesALimit(t *testing.T) {
	nodes := []state.Node{node("a", 4, 2, 30*time.Minute)}
	l := state.Limit{Elapsed: 2 * time.Hour, Cost: 3_000_000, PerHour: 1_000_000, PerSlotHour: 2_000_000}
	u := limit.Of(l, time.Hour, nodes)
	require.Equal(t, limit.Used{Elapsed: time.Hour, Slots: 30 * time.Minute, Cost: 2_000_000}, u)
	name, _ := u.Reached(l)
	require.Empty(t, name)
	left, ok := u.Left(l)
	require.True(t, ok)
	require.Equal(t, time.Hour, left, "the same of both")
	name, figures := u.Plus(l, 0, 30*time.Minute).Reached(l)
	require.Equal(t, limit.MaxCost, name)
	require.Equal(t, "it has cost $3.00 of $3.00", figures)
	name, _ = u.Plus(l, time.Hour, 0).Reached(l)
	require.Equal(t, limit.MaxElapsed, name)
	_, ok = u.Left(state.Limit{Cost: 5, PerSlotHour: 1})
	require.False(t, ok, "time alone does not reach it")
}

func TestWhatIsExpected(t *testing.T) {
	l := state.Limit{Elapsed: time.Hour}
	half := []state.Node{node("a", 10, 5, 20*time.Minute), node("b", 0, 0, 0)}
	_, ok := limit.Of(l, time.Minute, half).Expect(l, half)
	require.False(t, ok, "so early nothing is said")
	all, ok := limit.Of(l, 20*time.Minute, half).Expect(l, half)
	require.True(t, ok)
	require.Equal(t, 40*time.Minute, all.Elapsed, "at least: nothing is known of b")
	name, _ := all.Exceeds(l)
	require.Empty(t, name)

	l.Expected = map[string]time.Duration{"a": 40 * time.Minute, "b": 40 * time.Minute}
	l.ExpectedElapsed = 80 * time.Minute
	all, ok = limit.Of(l, 20*time.Minute, half).Expect(l, half)
	require.True(t, ok)
	require.Equal(t, 80*time.Minute, all.Elapsed)
	name, figures := all.Exceeds(l)
	require.Equal(t, limit.MaxElapsed, name)
	require.Contains(t, figures, "1 h")
	done := []state.Node{node("a", 1, 1, time.Minute), node("b", 1, 1, time.Minute)}
	all, _ = limit.Of(l, 20*time.Minute, done).Expect(l, done)
	require.Equal(t, 20*time.Minute, all.Elapsed, "nothing is left")
}

// A limit of cost that no time can reach does not hide one of time.
func TestLeftOfAHugeCost(t *testing.T) {
	l := state.Limit{Elapsed: time.Hour, Cost: math.MaxInt64, PerHour: 1}
	left, ok := limit.Used{Elapsed: 20 * time.Minute}.Left(l)
	require.True(t, ok)
	require.Equal(t, 40*time.Minute, left)
}

func TestDollars(t *testing.T) {
	for m, want := range map[state.Money]string{0: "$0.00", 12_500_000: "$12.50", 499_900: "$0.4999", 10_000: "$0.01",
		100_100: "$0.1001", 181: "$0.000181", 3: "$0.000003"} {
		require.Equal(t, want, limit.Dollars(m))
	}
}
