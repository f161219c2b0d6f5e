package jobtest

import (
	"thalweg/internal/base/durable"
	"thalweg/internal/run/job"
)

// Files is a file system that passes a checkpoint at each step by which a file
// is made to last.
func Files(passed func(job.CrashPoint)) durable.FS {
	return durable.Watched(func(op durable.Op, do func() error) error {
		if op.Step == durable.Sync {
			passed(job.Staged)
		}
		err := do()
		if err == nil && op.Step == durable.Sync {
			passed(job.Flushed)
		}
		if err == nil && op.Step == durable.Rename {
			passed(job.Named)
		}
		return err
	})
}
