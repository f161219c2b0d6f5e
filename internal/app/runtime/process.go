package runtime

import (
	"cmp"
	"log/slog"
	"os"
	"time"

	"thalweg/internal/base/allow"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/secret"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/job"
)

// Process says what a process may use and how it works, whatever it does:
// run a script, work on the runs of others, look at tables. The zero value is
// a process with the defaults.
type Process struct {
	Caller      caller.Caller // who is recorded for what it does; zero: the process's user
	Program     string        // version of this program, for the record
	Known       *secret.Known // secrets, to keep them out of the state; nil: only rules decide
	MemoryBytes int64         // 0: a share of the machine's
	Cores       int           // 0: the machine's
	Interpreter string        // Python; "": the one that is found
	Keeper      string        // see python.Config
	Dir         string        // working directory, that relative names are seen from; "": the instance's
	// Environment looks up variables that scripts, hooks and OpenLineage name; nil: the process's.
	Environment    func(name string) (value string, set bool)
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

// Sources reads a script's files, with relative names seen from dir, "" being Dir, by what the process may use and a
// policy allows.
func (p Process) Sources(policy *allow.Policy, dir, scriptPath, paramsPath string) script.Sources {
	src := sources.New(p.Remote.Within(policy), cmp.Or(dir, p.Dir), scriptPath, paramsPath)
	src.Known = p.Known
	if p.Environment != nil {
		src.Environment = p.Environment
	}
	src.Environment = policy.Environ(src.Environment)
	return src
}

// Settings says how the process reads its configurations.
func (p Process) Settings() settings.Options {
	return settings.Options{Environment: p.Environment, Known: p.Known, Dir: p.Dir}
}

// Getenv returns the value of a variable, "" if it is not set.
func (p Process) Getenv(name string) string {
	lookup := p.Environment
	if lookup == nil {
		lookup = os.LookupEnv
	}
	value, _ := lookup(name)
	return value
}

// WithDefaults fills in what is not said.
func (p Process) WithDefaults() Process {
	if p.Logger == nil {
		p.Logger = slog.New(slog.DiscardHandler)
	}
	if p.Environment == nil {
		p.Environment = os.LookupEnv
	}
	if p.Caller.Actor == "" {
		p.Caller = caller.OfProcess(caller.CLI)
	}
	return p
}
