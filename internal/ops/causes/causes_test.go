package causes

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(seconds float64) time.Time { return began.Add(durationOf(seconds)) }

func durationOf(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// factsOf are those of a run with one worker.
func factsOf(elapsed, slots float64, nodes ...Node) Facts {
	f := Facts{Run: state.Run{RunKey: state.RunKey{Workspace: "main", Run: 7}, Status: state.Complete, Created: began,
		Finished: after(elapsed)}, To: after(elapsed), Nodes: nodes}
	f.Workers = []sheet.Sheet{{Worker: "a", Slots: int(slots), From: began, To: after(elapsed), Presence: elapsed,
		CPU:    100,
		Shares: map[string]float64{"work": slots * elapsed}}}
	return f
}

// nodeOf is a node whose batches had slots from and to seconds after the beginning.
func nodeOf(name string, at ...[2]float64) Node {
	n := Node{Name: name, Class: "table", Planned: len(at)}
	for i, t := range at {
		n.Batches = append(n.Batches, Batch{Number: i, Owner: "a", Times: Times{after(t[0]), after(t[1])}})
		n.Tally.Count(i, state.Succeeded, state.Stats{Elapsed: durationOf(t[1] - t[0])})
	}
	return n
}

// rounds are batches of 10 s each, as many at once as there are slots.
func rounds(batches, slots int) Facts {
	var at [][2]float64
	for i := range batches {
		from := float64(10 * (i / slots))
		at = append(at, [2]float64{from, from + 10})
	}
	return factsOf(at[len(at)-1][1], float64(slots), nodeOf("n", at...))
}

// steady is a node whose only batch has the only slot for 100 s.
func steady(change func(f *Facts, s *state.Stats)) Facts {
	f := factsOf(100, 1, nodeOf("n", [2]float64{0, 100}))
	change(&f, &f.Nodes[0].Tally.Stats)
	return f
}

// calls has ten batches with a call of the state after each, which take so many seconds together.
func calls(share string, seconds float64) Facts {
	var at [][2]float64
	for i := range 10 {
		at = append(at, [2]float64{float64(10 * i), float64(10*i) + 10 - seconds/10})
	}
	f := factsOf(100, 1, nodeOf("n", at...))
	f.Workers[0].Shares = map[string]float64{"work": 100 - seconds, share: seconds}
	return f
}

// beside has two workers, whose batches take 5 s, and of the second one so many times as long.
func beside(times, cpu float64) Facts {
	n := Node{Name: "n", Class: "table"}
	end := 50 * times
	add := func(owner string, from, to float64) {
		n.Batches = append(n.Batches, Batch{Number: n.Planned, Owner: owner, Times: Times{after(from), after(to)}})
		n.Tally.Count(n.Planned, state.Succeeded, state.Stats{Elapsed: durationOf(to - from)})
		n.Planned++
	}
	for i := range 10 {
		add("b", 5*times*float64(i), 5*times*float64(i+1))
	}
	for at := 0.0; at+5 <= end; at += 5 {
		add("a", at, at+5)
	}
	f := factsOf(end, 1, n)
	f.Workers[0].CPU = end
	other := f.Workers[0]
	other.Worker, other.CPU = "b", cpu*end
	f.Workers = append(f.Workers, other)
	return f
}

// causeOf is a cause of a node.
func causeOf(t *testing.T, r Report, node, cause string) Cause {
	t.Helper()
	for _, n := range r.Nodes {
		for _, c := range n.Causes {
			if n.Node == node && c.Cause == cause {
				return c
			}
		}
	}
	require.Failf(t, "there is none", "%s of %s", cause, node)
	return Cause{}
}

// Each rule says no below its threshold, and yes above it, and then names the node first.
func TestRulesAtTheirThresholds(t *testing.T) {
	t.Parallel()
	ofStats := func(set func(s *state.Stats, seconds float64)) func(float64) Facts {
		return func(x float64) Facts { return steady(func(_ *Facts, s *state.Stats) { set(s, x) }) }
	}
	cases := []struct {
		cause        string
		facts        func(x float64) Facts
		below, above float64
		seconds      float64 // above
		gain         float64
	}{
		{"few_batches", func(x float64) Facts { return rounds(int(x), 8) }, 7, 6, 20, 2.5},
		{"last_batches", func(x float64) Facts { return rounds(int(x), 2) }, 5, 3, 10, 5},
		{"skew", func(x float64) Facts {
			at := [][2]float64{{0, x}}
			for i := range 8 {
				at = append(at, [2]float64{float64(i), float64(i + 1)})
			}
			return factsOf(x, 2, nodeOf("n", at...))
		}, 15, 17, 9, 4.5},
		{"handover", func(x float64) Facts { return factsOf(100, 1, nodeOf("n", [2]float64{x, 100})) }, 24, 26, 26, 26},
		{"parts", ofStats(func(s *state.Stats, x float64) { s.Read, s.Write = durationOf(x/2), durationOf(x/2) }),
			39, 41, 41, 41},
		{"state", func(x float64) Facts { return calls("commits", x) }, 19, 21, 21, 21},
		{"claims_refused", func(x float64) Facts { return calls("claims_refused", x) }, 24, 26, 26, 26},
		{"memory", ofStats(func(s *state.Stats, x float64) { s.Wait = durationOf(x) }), 19, 21, 21, 21},
		{"collector", func(x float64) Facts { return steady(func(f *Facts, _ *state.Stats) { f.Workers[0].GC = x }) },
			24, 26, 26, 26},
		{"collector", func(x float64) Facts {
			return steady(func(f *Facts, _ *state.Stats) { f.Workers[0].ChildrenCPU, f.Workers[0].ChildrenGC = 100, x })
		}, 24, 26, 26, 26},
		{"python", ofStats(func(s *state.Stats, x float64) {
			s.Python, s.Counters = durationOf(100), map[string]int64{state.CounterPythonCPU: int64((100 - x) * 1e6)}
		}), 39, 41, 41, 41},
		{"others_load", func(x float64) Facts { return beside(x, 0.5) }, 1.4, 1.8, 40, 20},
	}
	seen := map[string]bool{}
	for _, c := range cases {
		seen[c.cause] = true
		t.Run(c.cause, func(t *testing.T) {
			t.Parallel()
			below := Explain(c.facts(c.below))
			require.Equal(t, No, causeOf(t, below, "n", c.cause).Verdict)
			require.Empty(t, causeOf(t, below, "n", c.cause).Do)
			r := Explain(c.facts(c.above))
			require.NotEmpty(t, r.Named)
			got := r.Named[0]
			require.Equal(t, []any{"n", c.cause, Yes}, []any{got.Node, got.Cause.Cause, got.Verdict})
			require.Len(t, r.Named, 1)
			require.Equal(t, got.Cause, r.Nodes[0].Causes[0])
			require.InDelta(t, c.seconds, got.Seconds, 0.01)
			require.InDelta(t, c.gain, got.Gain, 0.01)
			require.NotEmpty(t, got.Evidence)
			require.NotEmpty(t, got.Do)
			require.Empty(t, r.Why)
		})
	}
	for _, r := range rules {
		require.True(t, seen[r.name], r.name)
		require.NotEmpty(t, r.source, r.name)
	}
}

// Python that waits for a processor does not sleep.
func TestStarvedPythonDoesNotSleep(t *testing.T) {
	t.Parallel()
	r := Explain(steady(func(_ *Facts, s *state.Stats) {
		s.Python, s.Counters = durationOf(100), map[string]int64{state.CounterPythonCPU: 20e6,
			state.CounterPythonStarved: 50e6}
	}))
	require.Empty(t, r.Named)
	require.InDelta(t, 30, causeOf(t, r, "n", "python").Seconds, 0.01)
}

func TestMemoryCountsPiecesAndSpills(t *testing.T) {
	t.Parallel()
	of := func(counters map[string]int64) Cause {
		return causeOf(t, Explain(steady(func(_ *Facts, s *state.Stats) {
			s.Engine, s.BytesIn, s.Counters = durationOf(100), 100, counters
		})), "n", "memory")
	}
	require.InDelta(t, 75, of(map[string]int64{state.CounterPieces: 4}).Seconds, 0.01)
	spilled := of(map[string]int64{state.CounterSpilled: 300, state.CounterAlone: 1})
	require.InDelta(t, 75, spilled.Seconds, 0.01)
	require.Contains(t, spilled.Evidence, "300 B in spill files, 1 batch alone")
	require.Zero(t, of(nil).Seconds)
}

func TestWhatIsNotMeasured(t *testing.T) {
	t.Parallel()
	f := rounds(3, 8)
	f.Workers = nil
	f.Nodes[0].Tally.Stats.Python = time.Second
	r := Explain(f)
	require.Empty(t, r.Named)
	for _, cause := range []string{"few_batches", "last_batches", "skew", "handover", "state", "claims_refused",
		"collector", "python", "others_load"} {
		require.Equal(t, Unknown, causeOf(t, r, "n", cause).Verdict, cause)
	}
	require.Equal(t, No, causeOf(t, r, "n", "memory").Verdict)
	one := Explain(rounds(6, 8))
	require.Equal(t, Unknown, causeOf(t, one, "n", "others_load").Verdict, "a worker alone cannot be compared")
}

// A machine that is merely slower is not starved, and starved Python does not sleep.
func TestLoadIsNoSlowerMachine(t *testing.T) {
	t.Parallel()
	require.Empty(t, Explain(beside(3, 1)).Named)
	f := beside(1.8, 0.5)
	s := &f.Nodes[0].Tally.Stats
	s.Python = s.Elapsed
	s.Counters = map[string]int64{state.CounterPythonCPU: int64((s.Elapsed - durationOf(39)) / time.Microsecond)}
	require.Zero(t, causeOf(t, Explain(f), "n", "python").Seconds)
}

// What a run lost is a part of the time in which it went on, however long it was paused.
func TestPausesDoNotHideCauses(t *testing.T) {
	t.Parallel()
	f := factsOf(100_000, 2, nodeOf("n", [2]float64{0, 50}, [2]float64{99_950, 100_000}))
	f.Holds = []Times{{after(40), after(99_950)}}
	r := Explain(f)
	require.Equal(t, Yes, causeOf(t, r, "n", "last_batches").Verdict, "%+v", r.Named)
}

// A large part of a small node is no cause, and neither is anything of a short run.
func TestSmallThingsAreNotNamed(t *testing.T) {
	t.Parallel()
	small := factsOf(100, 2, nodeOf("small", [2]float64{0, 18}), nodeOf("n", [2]float64{18, 100}, [2]float64{18, 100}))
	r := Explain(small)
	require.Empty(t, r.Named)
	require.InDelta(t, 0.5, causeOf(t, r, "small", "few_batches").Part, 0.001)
	require.InDelta(t, 9, causeOf(t, r, "small", "few_batches").Gain, 0.001)
	require.Equal(t, "nothing takes a large part of a node, and of the run 10 %", r.Why)
	short := Explain(factsOf(0.9, 2, nodeOf("n", [2]float64{0, 0.9})))
	require.Empty(t, short.Named)
	require.Equal(t, "the run is too short to say anything of it", short.Why)
	require.Empty(t, Explain(factsOf(0, 0)).Nodes)
}

// Free slots beside several nodes are those nodes' together; times in which the run stood still are nobody's.
func TestFreeSlotsAreDividedOnce(t *testing.T) {
	t.Parallel()
	a, b := nodeOf("a", [2]float64{0, 40}), nodeOf("b", [2]float64{0, 40})
	c := nodeOf("c", [2]float64{60, 70}, [2]float64{75, 100})
	f := factsOf(100, 4, a, b, c)
	f.Holds = []Times{{after(42), after(60)}}
	got, series := divide(&f)
	require.InDelta(t, 40, got[0].few, 1e-6)
	require.InDelta(t, 40, got[1].few, 1e-6)
	require.InDelta(t, 8+30+20, got[2].handover, 1e-6, "before it, beside its first batch, and between the two")
	require.InDelta(t, 75, got[2].few, 1e-6)
	require.InDelta(t, 35, got[2].busy, 1e-6)
	require.InDelta(t, 35, got[2].window, 1e-6)
	sum := 0.0
	for _, d := range got {
		sum += d.all()
	}
	require.InDelta(t, 4*(100-18), sum, 1e-6)
	require.InDelta(t, 2, series.Working["table"][0], 1e-6)
	require.InDelta(t, 0, series.Working["table"][60], 1e-6)
	require.InDelta(t, 4, series.Done["table"][Bins-1], 1e-6)
	require.InDelta(t, 4, series.Slots[5], 1e-6)
}

// When a batch had its slot is known from its end, also while it is at work.
func TestTimesOfBatches(t *testing.T) {
	t.Parallel()
	b := state.Batch{Status: state.Succeeded, Started: after(0), Finished: after(10),
		Stats: state.Stats{Elapsed: durationOf(8), Turn: durationOf(3)}}
	require.Equal(t, Times{after(5), after(10)}, slotOf(b, after(50)))
	b.Stats.Turn, b.Stats.Elapsed = 0, durationOf(20)
	require.Equal(t, Times{after(0), after(10)}, slotOf(b, after(50)))
	b.Status = state.Claimed
	require.Equal(t, Times{after(0), after(50)}, slotOf(b, after(50)))
	b.Status = state.Pending
	require.Zero(t, slotOf(b, after(50)))
}

func TestCharts(t *testing.T) {
	t.Parallel()
	f := rounds(3, 2)
	f.Nodes[0].Class = "load"
	var out strings.Builder
	require.NoError(t, Explain(f).WriteSVG(&out))
	d := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 6, strings.Count(out.String(), "<polyline"))
	require.Contains(t, out.String(), ">load</text>")
	require.Contains(t, out.String(), fmt.Sprintf("run %d of workspace main: slots at work", 7))
	require.NotContains(t, out.String(), "<circle ")
}

// A run that has failed says of what: what limited it may be just that.
func TestARunThatFailedSaysWhy(t *testing.T) {
	t.Parallel()
	f := rounds(3, 2)
	f.Run.Status, f.Run.Failure = state.Failed, &state.Failure{Message: "Python needs 5 GB, and has 4 GB", Node: "calc"}
	require.Contains(t, Explain(f).Notes, "it failed for this: node calc: Python needs 5 GB, and has 4 GB")
}
