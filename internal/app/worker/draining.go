package worker

import (
	"context"
	"sync/atomic"

	"thalweg/internal/run/job"
)

// drainSums count what becomes of the batches that are in flight when a worker is asked to end.
type drainSums struct{ finished, released atomic.Int64 }

// wrap counts what a worker is told, once its drain has begun.
func (d *drainSums) wrap(draining func() bool, observe func(job.Event)) func(job.Event) {
	return func(e job.Event) {
		if draining() {
			switch e.Kind {
			case job.BatchFinished, job.BatchFailed, job.BatchRetried:
				d.finished.Add(1)
			case job.BatchReleased:
				d.released.Add(1)
			}
		}
		observe(e)
	}
}

// drain begins no more batches and waits for those in flight, and says so: to the
// log, and at once to who looks at the cluster.
func (s *Server) drain(ctx context.Context) {
	s.saysElse()
	s.opts.Logger.Info("asked to end: no more batches are begun, and those in flight are waited for", "in_flight",
		s.work.Exec.InFlight(), "at_most", s.opts.DrainTime)
	s.work.Drain(ctx, s.opts.DrainTime)
}

// drained says what has become of them.
func (s *Server) drained() {
	if s.draining() {
		s.opts.Logger.Info("nothing is in flight any more", "finished", s.sums.finished.Load(), "released",
			s.sums.released.Load())
	}
}
