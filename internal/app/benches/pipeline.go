package benches

import (
	"context"

	"thalweg/internal/app/benches/pipeline"
	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
)

// Types of a bench of a pipeline.
type (
	PipelineOptions = pipeline.Options
	Sweep           = sweep.Report
)

// Knobs of a pipeline, and the most that can be forced of each.
const (
	Batches = concurrency.Batches
	Threads = concurrency.Threads
	Writers = concurrency.Writers
	Most    = concurrency.FixedMost
)

// Pipeline measures what a worker chooses to do at once, and fixed numbers beside it. It takes over the Remote of the
// process, and closes it.
func Pipeline(ctx context.Context, o PipelineOptions) (Sweep, error) { return pipeline.Run(ctx, o) }
