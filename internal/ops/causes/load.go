package causes

import (
	"fmt"
	"slices"

	"thalweg/internal/ops/history"
	"thalweg/internal/run/sheet"
)

// Thresholds of a worker beside which other programs work.
const (
	// slowTimes is the least ratio of the mean time of its batches to that of the other workers.
	slowTimes = 1.5
	// starvedShare is the most that it has of processors in a second of work, as a part of what the others have: a
	// machine that is merely slower has as much.
	starvedShare = 0.8
)

// load is what other programs' load took of a node.
type load struct {
	seconds  float64 // of slots
	evidence string
}

// pace is how a worker did a node.
type pace struct {
	batches, seconds float64
}

// loadsOf compares the workers of each node. A node has none if only one worker has done enough of it.
func loadsOf(f *Facts) map[string]load {
	rates := map[string]float64{} // processor seconds of a second of work
	for _, w := range f.Workers {
		if work := w.Time(sheet.Work).Seconds(); work > 0 {
			rates[w.Worker] = (w.CPU + w.ChildrenCPU) / work
		}
	}
	out := map[string]load{}
	for _, n := range f.Nodes {
		paces := map[string]pace{}
		for _, b := range n.Batches {
			p := paces[b.Owner]
			paces[b.Owner] = pace{p.batches + 1, p.seconds + b.To.Sub(b.From).Seconds()}
		}
		var names []string
		for name, p := range paces {
			if _, known := rates[name]; known && p.batches >= history.SkewBatches {
				names = append(names, name)
			}
		}
		if len(names) < 2 {
			continue
		}
		slices.Sort(names)
		out[n.Name] = loadOf(names, paces, rates)
	}
	return out
}

// loadOf sums up what the starved ones of workers took longer than the others.
func loadOf(names []string, paces map[string]pace, rates map[string]float64) (out load) {
	out.evidence = fmt.Sprintf("none of %d workers is starved beside the others", len(names))
	for _, name := range names {
		var others pace
		rate := 0.0
		for _, other := range names {
			if p := paces[other]; other != name {
				others = pace{others.batches + p.batches, others.seconds + p.seconds}
				rate += rates[other] * p.seconds
			}
		}
		if others.seconds <= 0 {
			continue
		}
		rate /= others.seconds
		mine, mean := paces[name], others.seconds/others.batches
		if mine.seconds/mine.batches < slowTimes*mean || rates[name] > starvedShare*rate {
			continue
		}
		out.seconds += mine.seconds - mine.batches*mean
		out.evidence = fmt.Sprintf("a batch takes worker %s %.3g times as long, with %.2g processors in the place of %.2g",
			name, mine.seconds/mine.batches/mean, rates[name], rate)
	}
	return out
}
