package runtime

import (
	"log/slog"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
)

// Process says what a process may use and how it works, whatever it does:
// run a script, work on the runs of others, look at tables. The zero value is
// a process with the defaults.
type Process struct {
	Caller         caller.Caller  // who is recorded for what it does; zero: the process's user
	Program        string         // version of this program, for the record
	Known          *secret.Known  // secrets, to keep them out of the state; nil: only rules decide
	MemoryBytes    int64          // 0: a share of the machine's
	Cores          int            // 0: the machine's
	Interpreter    string         // Python; "": the one that is found
	Keeper         string         // see python.Config
	RowTimeout     time.Duration  // longest that Python may take for a row; 0: the pool's default
	GroupTimeout   time.Duration  // longest that Python may take for a call of a py_table; 0: the pool's default
	Remote         *remote.Client // for files of other machines; nil: one with defaults
	Logger         *slog.Logger   // nil: nothing is logged
	Lease          time.Duration  // of claims; 0: the default
	Tries          int            // how often a batch is tried whose attempts fail for what may pass; 0: the default
	AttemptTimeout time.Duration  // longest that an attempt may take; 0: the default

	Observe    func(job.Event)      // of all runs; called from several goroutines; may be nil
	Waiting    func(text string)    // called while other processes hold the memory; may be nil
	Checkpoint func(job.CrashPoint) // for tests that die there; may be nil

	Tune     func(*budget.Budget)                  // for tests and measurements of other splits; may be nil
	Executor func(engine.Executor) engine.Executor // for tests in which tasks fail; may be nil

	StateWithin time.Duration // that a call of the state is repeated which could not reach it: see retrying.Config
	Isolated    bool          // batches are executed in processes of their own: see Isolation
}

// WithDefaults fills in what is not said.
func (p Process) WithDefaults() Process {
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Caller.Actor == "" {
		p.Caller = caller.OfProcess(caller.CLI)
	}
	return p
}
