package runs

import (
	"context"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/ops/samples"
	"thalweg/internal/store/state"
)

// Limits of the samples that are given.
const (
	samplesWorkersMax = 200
	SamplesPointsMax  = 1_000 // of a worker
)

// SamplesOptions say which samples are wanted.
type SamplesOptions struct {
	From, To time.Time // zero: from the beginning of the run, until its end
	Points   int       // of a worker, at most
}

// Samples returns what the workers of a run used of their machines, as far as it is kept.
func (s *Service) Samples(ctx context.Context, run state.Run, o SamplesOptions) (view.Samples, error) {
	now := s.Home.Clock.Now()
	if o.From.IsZero() {
		o.From = run.Created
	}
	if o.To.IsZero() {
		if o.To = run.Finished; o.To.IsZero() {
			o.To = now
		}
	}
	out := view.Samples{From: o.From, To: o.To, Workers: []view.WorkerSamples{}}
	workers, err := samples.Of(ctx, s.Home.State, run.RunKey,
		samples.Options{From: o.From, To: o.To, Now: now, Points: min(o.Points, SamplesPointsMax)})
	if len(workers) > samplesWorkersMax {
		out.More, workers = len(workers)-samplesWorkersMax, workers[:samplesWorkersMax]
	}
	for _, w := range workers {
		out.Workers = append(out.Workers, samplesOf(w, o.From))
	}
	return out, err
}

func samplesOf(w samples.Worker, from time.Time) view.WorkerSamples {
	out := view.WorkerSamples{Worker: w.Name}
	for _, s := range w.Samples {
		out.At = append(out.At, s.Time.Sub(from).Milliseconds())
		out.Took = append(out.Took, s.Took.Milliseconds())
		out.CPU = append(out.CPU, s.CPU.Milliseconds())
		out.ChildrenCPU = append(out.ChildrenCPU, s.ChildrenCPU.Milliseconds())
		out.Cores = append(out.Cores, int64(s.Cores))
		out.Resident = append(out.Resident, s.Resident)
		out.ChildrenResident = append(out.ChildrenResident, s.ChildrenResident)
		out.MemoryLimit = append(out.MemoryLimit, s.MemoryLimit)
		out.DiskFree = append(out.DiskFree, s.DiskFree)
		out.DiskTotal = append(out.DiskTotal, s.DiskTotal)
		out.Read = append(out.Read, s.Read)
		out.Written = append(out.Written, s.Written)
	}
	return out
}
