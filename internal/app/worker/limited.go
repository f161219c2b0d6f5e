package worker

import (
	"context"
	"time"

	"thalweg/internal/app/workerprocess"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// inFlightMost returns the most batches that a worker has in flight, unless more are forced. Beside
// those that it computes, it fetches inputs or stores results of as many again.
func (o WorkerOptions) inFlightMost() int { return max(2*slotsOf(o.Cores), o.Concurrency.Most()) }

// newLimiter settles how much a worker does at once.
func (s *Server) newLimiter() *concurrency.Limiter {
	var load budget.Load
	cores := slotsOf(s.opts.Cores)
	return concurrency.New(concurrency.Config{Cores: cores, Slots: cores,
		Start: cores + workerprocess.AheadOf(s.Instance.Parts), Most: s.opts.inFlightMost(), Fixed: s.opts.Concurrency,
		Writers: parts.WritersOf(s.Instance.Parts), Logger: s.opts.Logger, Decided: s.opts.Decided,
		Busy: func() float64 { return load.Busy(cores) },
		Memory: func() int64 {
			if b, held := s.Held(); held && s.opts.Isolate != nil {
				return b.TotalBytes
			}
			return 0
		}})
}

// limitedJob executes batches when it is their turn, and has what they did measured.
type limitedJob struct {
	job.Job
	limiter  *concurrency.Limiter
	isolated bool // what a batch took of memory is its own
}

// Execute implements job.Job.
func (j limitedJob) Execute(ctx context.Context, c state.Claim) (job.Result, error) {
	asked, over := time.Now(), job.Waits(ctx)
	threads, exact, end, err := j.limiter.Enter(ctx, concurrency.ClassOf(c.Spec.Class))
	over()
	if err != nil {
		return job.Result{}, &fault.Error{Kind: fault.Canceled, Retryable: true,
			Message: "waiting for a turn was interrupted", Err: err}
	}
	defer end(nil)
	began := time.Now()
	res, err := j.Job.Execute(job.WithThreads(ctx, job.Threads{Count: threads, Exact: exact}), c)
	res.Outcome.Stats.Turn += began.Sub(asked)
	if err != nil {
		return res, err
	}
	did := concurrency.Done{Bytes: res.Outcome.Stats.BytesIn + res.Outcome.Stats.BytesOut,
		Rows: res.Outcome.Stats.RowsIn, Write: res.Outcome.Stats.Write, Elapsed: time.Since(began)}
	if j.isolated {
		did.Peak = res.Outcome.Stats.PeakBytes
	}
	end(&did)
	return res, nil
}
