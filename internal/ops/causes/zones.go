package causes

import (
	"cmp"
	"slices"
	"time"

	"thalweg/internal/ops/samples"
)

// Zone is what workers used of their processors while nodes of one class were at work.
type Zone struct {
	Class    string  `json:"class" doc:"idle: no batch was at work; mixed: no class had nine tenths of the work."`
	Seconds  float64 `json:"workers_s" doc:"Time of all workers."`
	CPU      float64 `json:"cpu" doc:"Part of their processors that they used themselves."`
	Children float64 `json:"children_cpu" doc:"Part that processes used which they have started, such as Python."`
}

// The zones of no class, and the part of the work in a sample that makes it one of a class.
const (
	zoneIdle  = "idle"
	zoneMixed = "mixed"
	zoneLeast = 0.9
)

// zonesOf puts the samples of workers together by the class of the batches that the worker had slots for meanwhile,
// the longest first. A sample takes as long as many batches: one of several classes says nothing of any.
func zonesOf(f *Facts) []Zone {
	type use struct{ took, cpu, children, cores float64 }
	by := map[string]use{}
	for _, w := range f.Samples {
		work := workIn(f, w)
		for i, s := range w.Samples {
			if s.Took <= 0 || s.Cores <= 0 {
				continue
			}
			class, took := classIn(work[i]), s.Took.Seconds()
			u := by[class]
			by[class] = use{u.took + took, u.cpu + s.CPU.Seconds(), u.children + s.ChildrenCPU.Seconds(),
				u.cores + took*float64(s.Cores)}
		}
	}
	out := make([]Zone, 0, len(by))
	for class, u := range by {
		out = append(out, Zone{class, rounded(u.took), rounded(u.cpu / u.cores), rounded(u.children / u.cores)})
	}
	slices.SortFunc(out, func(a, b Zone) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Class, b.Class))
	})
	return out
}

// workIn is the time of slots by class of node that a worker's batches had in each of its samples.
func workIn(f *Facts, w samples.Worker) []map[string]time.Duration {
	out := make([]map[string]time.Duration, len(w.Samples))
	for _, n := range f.Nodes {
		for _, b := range n.Batches {
			if b.Owner != w.Name {
				continue
			}
			first, _ := slices.BinarySearchFunc(w.Samples, b.From, func(s samples.Sample, t time.Time) int {
				return s.Time.Compare(t)
			})
			for i := first; i < len(w.Samples) && w.Samples[i].Time.Add(-w.Samples[i].Took).Before(b.To); i++ {
				s := w.Samples[i]
				from, to := s.Time.Add(-s.Took), s.Time
				if b.From.After(from) {
					from = b.From
				}
				if b.To.Before(to) {
					to = b.To
				}
				if out[i] == nil {
					out[i] = map[string]time.Duration{}
				}
				out[i][n.Class] += to.Sub(from)
			}
		}
	}
	return out
}

func classIn(work map[string]time.Duration) string {
	var all time.Duration
	for _, d := range work {
		all += d
	}
	if all == 0 {
		return zoneIdle
	}
	for class, d := range work {
		if float64(d) >= zoneLeast*float64(all) {
			return class
		}
	}
	return zoneMixed
}

// drawSamples adds what the workers used of their processors to the series.
func (s *sweep) drawSamples() {
	if len(s.f.Samples) == 0 {
		return
	}
	s.series.CPU, s.series.Children = make([]float64, Bins), make([]float64, Bins)
	s.series.Cores = make([]float64, Bins)
	for _, w := range s.f.Samples {
		for _, one := range w.Samples {
			if took := one.Took.Seconds(); took > 0 {
				from := one.Time.Add(-one.Took)
				s.spread(s.series.CPU, from, one.Time, one.CPU.Seconds()/took)
				s.spread(s.series.Children, from, one.Time, one.ChildrenCPU.Seconds()/took)
				s.spread(s.series.Cores, from, one.Time, float64(one.Cores))
			}
		}
	}
}
