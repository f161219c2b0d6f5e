package sweep

import (
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/base/stats"
	"thalweg/internal/run/concurrency"
)

// Version is that of a Report as JSON.
const Version = 1

const (
	// GainWanted is the least gain of a doubling that makes it worth it.
	GainWanted = 0.05
	// ShareWanted is the least part of the best fixed number's rate that a worker's own choice should reach.
	ShareWanted = 0.93
)

// Setting is how much is done at once: what the worker has chosen, but for one knob of all classes, if N is not 0.
type Setting struct {
	Knob string `json:"knob,omitempty"`
	N    int    `json:"n,omitempty"`
}

// Work is what a run did in the nodes of a class.
type Work struct {
	Rows    int64 // read
	Bytes   int64 // read and written
	Took    time.Duration
	Batches int // of the node that has the most
}

// Sample is one run.
type Sample struct {
	Setting Setting
	Round   int
	Classes map[string]Work
}

// Order returns in which order a round measures: every second one goes backwards, so that drift within rounds favours
// none, too.
func Order(settings []Setting, round int) []Setting {
	out := slices.Clone(settings)
	if round%2 == 1 {
		slices.Reverse(out)
	}
	return out
}

// Figure is the mean of what rounds have measured. In nine of ten times the true one is above Low, and likewise below
// High. Of one round no interval is known: both are the mean.
type Figure struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	N    int     `json:"rounds"`
}

func figureOf(values []float64) Figure {
	f := Figure{N: len(values)}
	for _, v := range values {
		f.Mean += v / float64(f.N)
	}
	f.Low, f.High = f.Mean, f.Mean
	if f.N < 2 {
		return f
	}
	squares := 0.0
	for _, v := range values {
		squares += (v - f.Mean) * (v - f.Mean)
	}
	free := f.N - 1
	half := stats.Student90(free) * math.Sqrt(squares/float64(free)/float64(f.N))
	f.Low, f.High = f.Mean-half, f.Mean+half
	return f
}

// exp is the figure of what the logarithms of a figure are of.
func (f Figure) exp() Figure {
	return Figure{Mean: math.Exp(f.Mean), Low: math.Exp(f.Low), High: math.Exp(f.High), N: f.N}
}

// Rate is what is done in a second.
type Rate struct {
	Rows  Figure `json:"rows_per_s"`
	Bytes Figure `json:"bytes_per_s"`
}

// Fixed is what one number does.
type Fixed struct {
	N    int  `json:"n"`
	Rate Rate `json:"rate"`
	// Gain of a doubling, on the way from the number before: 0.1 is a tenth more rows a second.
	Gain   *Figure `json:"gain_of_doubling,omitempty"`
	Chosen bool    `json:"chosen,omitempty"` // the worker has chosen it, too
}

// Knob is what the numbers of one knob do.
type Knob struct {
	Knob   string              `json:"knob"`
	Chosen concurrency.Setting `json:"chosen"`
	Fixed  []Fixed             `json:"fixed"`
	// Enough is the least number from which a doubling gains less than 5 %; 0: each gains more.
	Enough int `json:"enough,omitempty"`
}

// free reports whether the worker has chosen no number of threads: a batch has as many as others leave it.
func (k Knob) free() bool { return k.Knob == concurrency.Threads && k.Chosen.Value <= 1 }

// Class is what nodes of a class do.
type Class struct {
	Class  string   `json:"class"`
	Nodes  []string `json:"nodes"`
	Rows   int64    `json:"rows"`  // of a run
	Bytes  int64    `json:"bytes"` // of a run
	Knobs  []Knob   `json:"knobs"`
	Chosen Rate     `json:"chosen"` // at what the worker has chosen
	Best   *Setting `json:"best,omitempty"`
	// Share is the part of the best fixed number's rate that the worker's choice reaches, within rounds. Numbers that
	// it has chosen are no others: their runs count as its. As the best is the one that came out best, it is too small
	// rather than too large.
	Share   *Figure `json:"share_of_best,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

// Verdicts on a share.
const (
	Reached  = "reached"
	Missed   = "missed"
	NotSure  = "not certain"
	onlyOnce = 2 // fewer rounds say nothing of how certain a figure is
)

// Report is a sweep.
type Report struct {
	Version  int      `json:"version"`
	Script   string   `json:"script"` // "": one that was generated
	Cores    int      `json:"cores"`
	State    string   `json:"state"`
	Rounds   int      `json:"rounds"`
	Settled  bool     `json:"settled"`         // the worker was done with trying
	Settling int      `json:"settling_runs"`   // that it had for that
	Classes  []Class  `json:"classes"`         // in the order in which work comes to them
	Notes    []string `json:"notes,omitempty"` // what is not measured, and why
}

// New compares what was measured. nodes are the names of nodes by class; chosen is what the worker has settled at.
func New(samples []Sample, nodes map[string][]string, chosen []concurrency.Setting) (out []Class) {
	for _, class := range concurrency.Classes() {
		rates := map[Setting]map[int]Work{}
		for _, s := range samples {
			w, ok := s.Classes[class]
			if !ok || w.Took <= 0 {
				continue
			}
			if rates[s.Setting] == nil {
				rates[s.Setting] = map[int]Work{}
			}
			rates[s.Setting][s.Round] = w
		}
		if len(rates) > 0 {
			out = append(out, classOf(class, nodes[class], rates, chosen))
		}
	}
	return out
}

func classOf(name string, nodes []string, rates map[Setting]map[int]Work, chosen []concurrency.Setting) Class {
	c := Class{Class: name, Nodes: nodes, Chosen: rateOf(rates[Setting{}])}
	for _, w := range rates[Setting{}] {
		c.Rows, c.Bytes = w.Rows, w.Bytes
	}
	best, choice := 0.0, []map[int]Work{rates[Setting{}]}
	for _, knob := range concurrency.KnobsOf(name) {
		k := Knob{Knob: knob}
		for _, s := range chosen {
			if s.Class == name && s.Knob == knob {
				k.Chosen = s
			}
		}
		if k.Chosen.Value == 0 { // it has no such knob here
			continue
		}
		for _, s := range sorted(rates, knob) {
			f := Fixed{N: s.N, Rate: rateOf(rates[s]), Chosen: s.N == k.Chosen.Value && !k.free()}
			if n := len(k.Fixed); n > 0 {
				f.Gain = gain(k.Fixed[n-1].N, rates[Setting{knob, k.Fixed[n-1].N}], s.N, rates[s])
			}
			if f.Gain != nil && f.Gain.Mean < GainWanted && k.Enough == 0 {
				k.Enough = k.Fixed[len(k.Fixed)-1].N
			}
			k.Fixed = append(k.Fixed, f)
			if f.Chosen {
				choice = append(choice, rates[s])
			} else if rows := f.Rate.Rows.Mean; rows > best {
				best, c.Best = rows, &Setting{Knob: knob, N: s.N}
			}
		}
		c.Knobs = append(c.Knobs, k)
	}
	if c.Best != nil {
		c.Share = ratio(together(choice), rates[*c.Best])
	}
	c.Verdict = verdict(c.Share)
	return c
}

// sorted lists the settings of a knob by their numbers.
func sorted(rates map[Setting]map[int]Work, knob string) (out []Setting) {
	for s := range rates {
		if s.Knob == knob {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return a.N - b.N })
	return out
}

func rateOf(rounds map[int]Work) Rate {
	var rows, bytes []float64
	for _, round := range rounded(rounds) {
		w := rounds[round]
		rows = append(rows, float64(w.Rows)/w.Took.Seconds())
		bytes = append(bytes, float64(w.Bytes)/w.Took.Seconds())
	}
	return Rate{Rows: figureOf(rows), Bytes: figureOf(bytes)}
}

// rounded lists rounds in order, so that sums are the same each time.
func rounded(rounds map[int]Work) (out []int) {
	for round := range rounds {
		out = append(out, round)
	}
	slices.Sort(out)
	return out
}

// logs are the logarithms of how many times as fast a is as b, in the rounds that have both. All runs do the same
// work, so that times say it.
func logs(a, b map[int]Work) (out []float64) {
	for _, round := range rounded(a) {
		if w, ok := b[round]; ok {
			out = append(out, math.Log(w.Took.Seconds()/a[round].Took.Seconds()))
		}
	}
	return out
}

// together is what settings that are the same did in each round: their times' geometric mean.
func together(same []map[int]Work) map[int]Work {
	out := map[int]Work{}
	for round := range same[0] {
		sum, n := 0.0, 0
		for _, s := range same {
			if w, ok := s[round]; ok {
				sum, n = sum+math.Log(w.Took.Seconds()), n+1
			}
		}
		out[round] = Work{Took: time.Duration(math.Exp(sum/float64(n)) * float64(time.Second))}
	}
	return out
}

// ratio is how many times as fast a is as b; nil if no round has both.
func ratio(a, b map[int]Work) *Figure {
	all := logs(a, b)
	if len(all) == 0 {
		return nil
	}
	f := figureOf(all).exp()
	return &f
}

// gain is what a doubling gains between two numbers.
func gain(from int, a map[int]Work, to int, b map[int]Work) *Figure {
	all := logs(b, a)
	if len(all) == 0 {
		return nil
	}
	for i := range all {
		all[i] /= math.Log2(float64(to) / float64(from))
	}
	f := figureOf(all).exp()
	f.Mean, f.Low, f.High = f.Mean-1, f.Low-1, f.High-1
	return &f
}

// shortest is the time of a class below which the start of batches, not their work, decides.
const shortest = time.Second

// Doubts says which figures rest on too little: short work, or fewer batches than were to be at once.
func Doubts(samples []Sample) (out []string) {
	for _, class := range concurrency.Classes() {
		took, batches, tried, runs := time.Duration(0), 0, 0, 0
		for _, s := range samples {
			w, ok := s.Classes[class]
			if !ok {
				continue
			}
			took, batches, runs = took+w.Took, max(batches, w.Batches), runs+1
			if s.Setting.Knob == concurrency.Batches {
				tried = max(tried, s.Setting.N)
			}
		}
		if runs > 0 && took/time.Duration(runs) < shortest {
			out = append(out, fmt.Sprintf("%s took %s a run: so short a time says little; measure more rows", class,
				format.Span(took/time.Duration(runs))))
		}
		if runs > 0 && batches < tried {
			out = append(out, fmt.Sprintf("%s had %s at most: larger numbers of batches say nothing of it", class,
				format.Counted(int64(batches), "batch", "batches")))
		}
	}
	return out
}

func verdict(share *Figure) string {
	switch {
	case share == nil:
		return ""
	case share.N < onlyOnce, share.Low < ShareWanted && share.High >= ShareWanted:
		return NotSure
	case share.Low >= ShareWanted:
		return Reached
	}
	return Missed
}
