package runtime

import (
	"context"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// originMemoryBytes is the memory that finding the origin of one row takes, beside the slots'
// memory.
const originMemoryBytes = 64 << 20

// recordOf finds the record of an input file that a row comes from, which a batch of
// the run has read.
func (t *Runtime) recordOf(ctx context.Context, of *pipeline.Pipeline, row pipeline.ReadRow) (_ *fault.Place,
	err error) {
	runs := TracedRuns{Tools: t, Jobs: map[state.RunKey]*pipeline.Pipeline{}, working: true}
	defer runs.Close()
	cfg := lineage.Config{Store: t.Store, Parts: t.Instance.Parts, Dir: t.WorkDir, Reach: []string{t.Instance.PartsDir},
		Beside: true,
		Engine: engine.InstanceConfig{MemoryBytes: originMemoryBytes, Threads: 1},
		Job: func(ctx context.Context, run state.RunKey) (*pipeline.Pipeline, error) {
			if run == of.Run() {
				return of, nil
			}
			return runs.Job(ctx, run)
		}}
	rec, err := lineage.RecordOf(ctx, cfg, row)
	if err != nil || rec == nil {
		return nil, err
	}
	return &fault.Place{File: rec.File, Line: rec.Line, Record: rec.Row, Raw: rec.Text}, nil
}

// TracedRuns opens runs as they were begun, to look at them.
type TracedRuns struct {
	Tools   *Runtime
	Jobs    map[state.RunKey]*pipeline.Pipeline
	working bool // the tools are at work on a run and stay as they are: without Python if it has none
}

func (r *TracedRuns) Close() {
	for _, job := range r.Jobs {
		job.Close()
	}
}

func (r *TracedRuns) Job(ctx context.Context, key state.RunKey) (*pipeline.Pipeline, error) {
	if job := r.Jobs[key]; job != nil {
		return job, nil
	}
	t := r.Tools
	rec, err := t.RecallFrom(ctx, key, true)
	if err != nil {
		return nil, err
	}
	sc := rec.Script
	if !r.working && (t.Budget.Slots == 0 || NeedsPython(sc.Nodes) && t.Pool == nil) {
		if t.Budget, err = t.Split(t.Process.MemoryBytes, NeedsPython(sc.Nodes)); err != nil {
			return nil, err
		}
		if err := t.OpenPool(); err != nil {
			return nil, err
		}
	}
	job := t.Job(JobSpec{Policy: rec.Policy, Script: sc, Sources: &rec.Sources, Run: key,
		Identity: t.Instance.IdentityOf(rec.Run),
		From:     rec.Run.Sources, Planning: rec.Budget, Ephemeral: rec.Ephemeral, Dir: rec.Dir, OwnCopies: true})
	r.Jobs[key] = job
	return job, nil
}
