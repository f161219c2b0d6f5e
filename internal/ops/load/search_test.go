package load

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

// by returns what sends loads to a server.
func by(s *server) Runner {
	return func(ctx context.Context, plan Plan) (Result, error) { return Run(ctx, s, plan) }
}

// TestChaosSearchesFindWhatTheServerCan: 10,000 a second, one behind the other, by a server with a round trip of 2 ms,
// so that one client is not enough.
func TestChaosSearchesFindWhatTheServerCan(t *testing.T) {
	const rate = 10_000
	if !effort.All() {
		t.Skip("it holds a machine that has time to 3 %; TestSearches has the searches")
	}
	plan := Plan{Keys: 1000, Of: Uniform, Reads: 1, Clients: 64, Depth: 1, Seed: 1, For: 3 * time.Second,
		WarmUp: 500 * time.Millisecond}
	var told []Step
	s := &server{rate: rate, delay: func(Op) time.Duration { return 2 * time.Millisecond }}
	peak, err := Peak(t.Context(), by(s), plan, func(step Step) { told = append(told, step) })
	require.NoError(t, err)
	t.Logf("%+v", peak.Steps)
	require.InDelta(t, rate, peak.Rate, 0.03*rate)
	require.Equal(t, peak.Steps, told)
	require.Greater(t, peak.Clients, 4)

	plan.Rate, plan.Depth = 1.3*peak.Rate, 8
	found, err := Sustained(t.Context(), by(s), plan, 30*time.Millisecond, nil)
	require.NoError(t, err)
	t.Logf("%+v", found.Steps)
	require.InDelta(t, rate, found.Rate, 0.03*rate)
}

// can is a Runner whose answers are exact: so many a second at most, each after a round trip.
func can(rate float64, trip time.Duration) Runner {
	return func(_ context.Context, plan Plan) (Result, error) {
		reached := min(rate, float64(plan.Clients)/trip.Seconds())
		took, response := plan.For, trip
		if plan.Rate > 0 {
			took += trip
			if late := plan.For.Seconds() * (plan.Rate/reached - 1); late > 0 {
				took += time.Duration(late * float64(time.Second))
				response += time.Duration(late * float64(time.Second))
			}
			reached = plan.Rate * plan.For.Seconds() / took.Seconds()
		}
		h := newHistogram()
		n := int64(reached * took.Seconds())
		for i := range int64(100) { // evenly from the round trip to the longest
			record(h, trip+time.Duration(i)*(response-trip)/99, n/100)
		}
		return Result{Plan: plan, Took: took, Of: [2]Measured{{Ops: n, Response: h, Service: h}}}, nil
	}
}

func TestSearches(t *testing.T) {
	t.Parallel()
	plan := Plan{Keys: 1000, Of: Uniform, Reads: 1, Clients: 64, Depth: 1, For: 10 * time.Second}
	peak, err := Peak(t.Context(), can(10_000, 2*time.Millisecond), plan, nil)
	require.NoError(t, err)
	require.InDelta(t, 10_000, peak.Rate, 200, "%+v", peak.Steps)
	require.GreaterOrEqual(t, peak.Clients, 20)
	for _, first := range []float64{100, 9_000, 13_000, 1e6} {
		for _, bound := range []time.Duration{5 * time.Millisecond, 3 * time.Second} {
			plan.Rate = first
			found, err := Sustained(t.Context(), can(10_000, 2*time.Millisecond), plan, bound, nil)
			require.NoError(t, err)
			require.InDelta(t, 10_000, found.Rate, 300, "%v from %v: %+v", bound, first, found.Steps)
			require.InDelta(t, found.Rate, found.Result.Plan.Rate, 0.02*found.Rate)
			for _, step := range found.Steps {
				require.Equal(t, step.Kept, step.Asked <= found.Result.Plan.Rate, "%+v", step)
			}
		}
	}
}

// TestSearchesSendLoads: as above with real loads, of which nothing is asked that a busy machine could not do.
func TestSearchesSendLoads(t *testing.T) {
	t.Parallel()
	s := &server{rate: 2000}
	plan := Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 8, Depth: 4, For: 200 * time.Millisecond}
	peak, err := Peak(t.Context(), by(s), plan, nil)
	require.NoError(t, err)
	require.Less(t, peak.Rate, 2400.0)
	require.Greater(t, peak.Rate, 200.0)
	plan.Rate = 8000
	found, err := Sustained(t.Context(), by(s), plan, 100*time.Millisecond, nil)
	require.NoError(t, err)
	require.Less(t, found.Rate, 4000.0)
	require.LessOrEqual(t, found.Result.Response().ValueAtQuantile(99), int64(101*time.Millisecond))
}

func TestNoRateIsSustained(t *testing.T) {
	t.Parallel()
	plan := Plan{Keys: 10, Of: Uniform, Reads: 1, Clients: 100, Depth: 1, Rate: 8000, For: time.Second}
	_, err := Sustained(t.Context(), can(10_000, 5*time.Millisecond), plan, time.Millisecond, nil)
	require.ErrorContains(t, err, "no rate keeps p99 under 1ms")
	plan.Ops = 10
	_, err = Peak(t.Context(), can(100, time.Millisecond), plan, nil)
	require.ErrorContains(t, err, "loads for a time")
}

// window is one of 30 s with so many fast responses a second, and others that are slow.
func window(fast int64, slow time.Duration, slowIn func(second int) int64) (m Measured) {
	m.Response = newHistogram()
	for second := range 30 {
		b := newSmallHistogram()
		for d, n := range map[time.Duration]int64{time.Millisecond: fast, slow: slowIn(second)} {
			record(b, d, n)
			record(m.Response, d, n)
		}
		m.Ops += b.TotalCount()
		m.Blocks = append(m.Blocks, b)
	}
	m.Service = newHistogram()
	record(m.Service, time.Millisecond, m.Ops)
	return m
}

func none(int) int64 { return 0 }

// TestABoundIsKeptAllTheTime: p99 of all responses together is 1 ms in each case.
func TestABoundIsKeptAllTheTime(t *testing.T) {
	t.Parallel()
	standstill := func(at int) func(int) int64 {
		return func(second int) int64 {
			if second == at {
				return 250 // a quarter of a second
			}
			return 0
		}
	}
	for name, c := range map[string]struct {
		of              [2]Measured
		busy            float64
		kept, byClients bool
	}{
		"fast":           {of: [2]Measured{window(1000, 1, none)}, kept: true},
		"a standstill":   {of: [2]Measured{window(1000, 50*time.Millisecond, standstill(12))}},
		"one at the end": {of: [2]Measured{window(1000, 50*time.Millisecond, standstill(29))}},
		"few that tell nothing": {of: [2]Measured{window(10, 50*time.Millisecond, func(s int) int64 {
			return int64(s / 28)
		})}, kept: true},
		"writes": {of: [2]Measured{window(10_000, 1, none),
			window(50, 50*time.Millisecond, func(int) int64 { return 5 })}},
		"too few clients": {of: [2]Measured{window(1000, 50*time.Millisecond, func(int) int64 { return 20 })}, busy: 0.99,
			byClients: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := Result{Took: 30 * time.Second, Of: c.of, Busy: c.busy}
			run := func(_ context.Context, p Plan) (Result, error) {
				if r.Plan = p; p.Rate > r.Rate() {
					return Result{Took: 30 * time.Second, Of: c.of, Unsent: 1}, nil
				}
				return r, nil
			}
			plan := Plan{Keys: 1, Of: Sequential, Clients: 1, Depth: 1, Rate: 0.9 * r.Rate(), For: 30 * time.Second}
			found, err := Sustained(t.Context(), run, plan, 10*time.Millisecond, nil)
			require.Equal(t, c.kept, found.Steps[0].Kept, "%+v", found.Steps[0])
			require.Equal(t, c.byClients, found.Steps[0].ByClients)
			if c.byClients {
				require.NotEmpty(t, fault.Of(err).Hint)
				require.True(t, found.ByClients)
			}
		})
	}
}

// TestDipsSayWhatElseMoved: compactions in the dip's seconds, not the counter that always grows, nor what moved far away.
func TestDipsSayWhatElseMoved(t *testing.T) {
	t.Parallel()
	r := Result{Took: 30 * time.Second, Before: []Reading{{Node: "a", Counters: map[string]float64{"bytes": 0, "gc": 0,
		"compactions": 0}}}}
	bytes, gc, compactions := 0.0, 0.0, 0.0
	for i := range 30 {
		s := Second{At: float64(i + 1), Ops: [2]int64{100 + int64(i%3), 50}, Collector: 0.01, CPU: 0.5}
		bytes += 1000 + float64(i%7)
		if i == 12 || i == 13 {
			s.Ops, s.Collector = [2]int64{10, 20}, 0.3
		}
		if i == 14 {
			compactions += 5
		}
		if i == 25 {
			gc += 9
		}
		s.Servers = []Reading{{Node: "a", Counters: map[string]float64{"bytes": bytes, "gc": gc, "compactions": compactions},
			Gauges: map[string]float64{"pending": 3}}}
		r.Seconds = append(r.Seconds, s)
	}
	dips := r.Dips()
	require.Len(t, dips, 1)
	require.Equal(t, Dip{From: 12, To: 14, Part: 30.0 / 151, Beside: dips[0].Beside}, dips[0])
	var what []string
	for _, m := range dips[0].Beside {
		what = append(what, m.String())
	}
	require.ElementsMatch(t, []string{"own collector (s) 0.3, usually 0.01", "compactions of a 5, usually 0"}, what)
	require.Empty(t, Result{Took: 3 * time.Second, Seconds: r.Seconds[:3]}.Dips())
}
