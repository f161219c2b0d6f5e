package workertest

import (
	"thalweg/internal/base/durable"
	"thalweg/internal/run/worker"
)

// Files is a file system that passes a checkpoint at each step by which a file
// is made to last.
func Files(passed func(worker.CrashPoint)) durable.FS {
	return durable.Watched(func(op durable.Op, do func() error) error {
		if op.Step == durable.Sync {
			passed(worker.Staged)
		}
		err := do()
		if err == nil && op.Step == durable.Sync {
			passed(worker.Flushed)
		}
		if err == nil && op.Step == durable.Rename {
			passed(worker.Named)
		}
		return err
	})
}
