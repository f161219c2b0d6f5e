package concurrency

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// plant is a machine: what it does in a second with so many at once.
type plant func(second, value int) float64

func linear(_, v int) float64 { return 100 * float64(v) }

func saturating(knee int) plant {
	return func(_, v int) float64 { return 100 * float64(min(v, knee)) }
}

func thrashing(knee int) plant {
	return func(_, v int) float64 {
		if v <= knee {
			return 100 * float64(v)
		}
		return 100 * float64(knee) * math.Pow(float64(knee)/float64(v), 2)
	}
}

func noisy(p plant, spread float64, seed uint64) plant {
	r := rand.New(rand.NewPCG(seed, 0))
	return func(second, v int) float64 { return max(0, p(second, v)*(1+spread*r.NormFloat64())) }
}

func one(k knob) map[string][]knob { return map[string][]knob{"load": {k}} }

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// driven is the result of driving a plant for some time.
type driven struct {
	*tuner
	changes []Decision
	done    float64
	value   []int // in each second
}

// drive gives a tuner a sample a second.
func drive(t *tuner, p plant, seconds int) *driven {
	d := &driven{tuner: t}
	for s := range seconds {
		v := t.value("load", "batches")
		x := p(s, v)
		d.done += x
		d.value = append(d.value, v)
		d.changes = append(d.changes,
			t.observe(sample{Class: "load", At: begin.Add(time.Duration(s+1) * time.Second), Span: time.Second,
				Done: x})...)
	}
	return d
}

func (d *driven) last() int { return d.value[len(d.value)-1] }

func (d *driven) since(second int) (changes int) {
	for _, c := range d.changes {
		if c.At.After(begin.Add(time.Duration(second) * time.Second)) {
			changes++
		}
	}
	return changes
}

func TestPlants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		plant      plant
		start      int
		best       float64 // a second
		least, max int     // where it settles
		share      float64 // of the best, over the whole time
	}{
		{"linear", linear, 1, 1600, 16, 16, 0.93},
		{"linear, from above", linear, 16, 1600, 16, 16, 0.97},
		{"saturating", saturating(6), 2, 600, 6, 6, 0.94},
		{"saturating, from above", saturating(6), 16, 600, 6, 6, 0.94},
		{"thrashing", thrashing(8), 4, 800, 7, 8, 0.93},
		{"thrashing, from above", thrashing(4), 16, 400, 4, 4, 0.88},
		{"one at once", thrashing(1), 4, 100, 1, 1, 0.85},
		{"noise, linear", noisy(linear, 0.1, 1), 1, 1600, 13, 16, 0.82},
		{"noise, saturating", noisy(saturating(6), 0.2, 2), 2, 600, 4, 12, 0.78},
		{"noise, thrashing", noisy(thrashing(8), 0.1, 3), 2, 800, 6, 9, 0.78},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const seconds = 1800
			d := drive(newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: c.start})), c.plant, seconds)
			t.Log(d.last(), d.done/(c.best*seconds), len(d.changes), d.since(seconds/2))
			require.GreaterOrEqual(t, d.last(), c.least)
			require.LessOrEqual(t, d.last(), c.max)
			require.GreaterOrEqual(t, d.done, c.share*c.best*seconds)
			require.LessOrEqual(t, d.since(seconds/2), 24, "it goes to and fro: %v", d.changes)
		})
	}
}

// TestChange: what the machine can do changes, and the tuner follows.
func TestChange(t *testing.T) {
	t.Parallel()
	p := func(second, v int) float64 {
		switch {
		case second < 600:
			return saturating(4)(second, v)
		case second < 1200:
			return saturating(12)(second, v)
		}
		return thrashing(2)(second, v)
	}
	d := drive(newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: 2})), p, 1800)
	require.Equal(t, 4, d.value[599])
	require.GreaterOrEqual(t, d.value[1199], 11)
	require.Equal(t, 2, d.last())
}

func TestNoiseAloneMovesNothingUp(t *testing.T) {
	t.Parallel()
	flat := func(_, _ int) float64 { return 500 }
	for seed := range uint64(20) {
		d := drive(newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: 4})), noisy(flat, 0.15, seed), 1200)
		require.LessOrEqual(t, d.last(), 6, "seed %d: %v", seed, d.changes)
	}
}

func TestMemoryBounds(t *testing.T) {
	t.Parallel()
	tuner := newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: 8, Memory: true}))
	at, peak := begin, int64(100)
	step := func() []Decision {
		at = at.Add(time.Second)
		v := tuner.value("load", "batches")
		return tuner.observe(sample{Class: "load", At: at, Span: time.Second, Done: linear(0, v), Peak: peak,
			Memory: 1000})
	}
	for range 300 {
		step()
		require.LessOrEqual(t, tuner.value("load", "batches"), 10)
	}
	require.Equal(t, 10, tuner.value("load", "batches"))
	require.Contains(t, tuner.settings()[0].Reason, "more would not have the memory")
	peak = 400
	changes := step()
	require.Len(t, changes, 1)
	require.Equal(t, 2, changes[0].To, "at once, whatever the steps are else")
	require.Contains(t, changes[0].Reason, "memory: a batch takes")
	peak = 100
	for range 600 {
		step()
	}
	require.Greater(t, tuner.value("load", "batches"), 7, "there is room again")
}

func TestFixed(t *testing.T) {
	t.Parallel()
	d := drive(newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: 2, Fixed: 5})), linear, 300)
	require.Empty(t, d.changes)
	require.Equal(t, 5, d.last())
	require.Equal(t, "fixed by the configuration", d.settings()[0].Reason)
}

func TestStarvedSaysNothing(t *testing.T) {
	t.Parallel()
	tuner := newTuner(one(knob{Name: "batches", Min: 1, Max: 16, Start: 4}))
	for s := range 600 {
		require.Empty(t, tuner.observe(sample{Class: "load", At: begin.Add(time.Duration(s) * time.Second),
			Span: time.Second, Done: float64(s), Starved: true}))
	}
	require.Empty(t, tuner.observe(sample{Class: "nobody's"}))
}

// TestOneAtATime: of two classes with two knobs each, one knob is tried at a time,
// and a class of which nothing is measured any more keeps nobody waiting.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	knobs := []knob{{Name: "batches", Min: 1, Max: 8, Start: 2}, {Name: "threads", Min: 1, Max: 8, Start: 2}}
	tuner := newTuner(map[string][]knob{"load": knobs, "write": knobs})
	does := func(class string) float64 {
		return float64(min(tuner.value(class, "batches"), 4) * min(tuner.value(class, "threads"), 3))
	}
	for s := range 1200 {
		at := begin.Add(time.Duration(s) * time.Second)
		for _, class := range []string{"load", "write"} {
			if class == "load" && s > 5 && s < 100 {
				continue
			}
			changes := tuner.observe(sample{Class: class, At: at, Span: time.Second, Done: does(class)})
			require.LessOrEqual(t, len(changes), 2)
		}
	}
	require.InDelta(t, 12, does("load"), 3.1)
	require.InDelta(t, 12, does("write"), 3.1)
}

// TestRapidPromises holds over any plant: bounds, memory, steps, and that it comes to rest.
func TestRapidPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(1, 4).Draw(t, "min")
		k := knob{Name: "batches", Min: low, Max: rapid.IntRange(low, 64).Draw(t, "max"),
			Start: rapid.IntRange(0, 80).Draw(t, "start"), Memory: true}
		knee := rapid.IntRange(1, 64).Draw(t, "knee")
		p := []plant{linear, saturating(knee), thrashing(knee)}[rapid.IntRange(0, 2).Draw(t, "plant")]
		p = noisy(p, rapid.Float64Range(0, 0.5).Draw(t, "noise"), rapid.Uint64().Draw(t, "seed"))
		peaks := rapid.SliceOfN(rapid.Int64Range(0, 300), 1, 8).Draw(t, "peaks")
		tuner, again := newTuner(one(k)), newTuner(one(k))
		high, before := 0.0, 0
		for s := range 400 {
			v := tuner.value("load", "batches")
			require.True(t, v >= k.Min && v <= k.Max, "%d of %d to %d", v, k.Min, k.Max)
			peak := peaks[s*len(peaks)/400]
			if peak > 0 {
				high = max(float64(peak), high*0.98)
			}
			sample := sample{Class: "load", At: begin.Add(time.Duration(s) * time.Second), Span: time.Second,
				Done: p(s, v), Peak: peak, Memory: 1000}
			changes := tuner.observe(sample)
			require.Equal(t, fmt.Sprint(changes), fmt.Sprint(again.observe(sample)))
			for _, c := range changes {
				require.NotEmpty(t, c.Reason)
				require.True(t, c.To == before || c.To <= max(c.From+1, c.From+(c.From+1)/2), "a leap upwards: %v", c)
				before = c.From
			}
			if now := tuner.value("load", "batches"); high > 0 {
				require.LessOrEqual(t, now, max(k.Min, int(1000/high)+1))
			}
		}
	})
}
