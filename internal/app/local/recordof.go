package local

import (
	"context"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// originMemoryBytes is what putting together where one row comes from takes, beside
// the slots' memory.
const originMemoryBytes = 64 << 20

// recordOf finds the record of an input file that a row comes from, which a batch of
// the run has read.
func (t *tools) recordOf(ctx context.Context, of *pipeline.Pipeline, row pipeline.ReadRow) (_ *fault.Place, err error) {
	runs := tracedRuns{tools: t, jobs: map[state.RunKey]*pipeline.Pipeline{}, working: true}
	defer runs.close()
	cfg := lineage.Config{Store: t.store, Parts: t.home.Parts, Dir: t.work, Reach: []string{t.home.partsDir}, Beside: true,
		Engine: engine.InstanceConfig{MemoryBytes: originMemoryBytes, Threads: 1},
		Job: func(ctx context.Context, run state.RunKey) (*pipeline.Pipeline, error) {
			if run == of.Run() {
				return of, nil
			}
			return runs.job(ctx, run)
		}}
	rec, err := lineage.RecordOf(ctx, cfg, row)
	if err != nil || rec == nil {
		return nil, err
	}
	return &fault.Place{File: rec.File, Line: rec.Line, Record: rec.Row}, nil
}
