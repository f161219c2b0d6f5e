package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/diagnosis"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/peek"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/project"
)

// Types of what a process has: secrets, clients, environments.
type (
	Secrets            = secret.Known
	Remote             = remote.Client
	RemoteConfig       = remote.Config
	InvalidScriptError = sources.InvalidScriptError
	Outage             = instance.Outage
	Environment        = project.Environment // of a project
)

// ErrToldToEnd is returned if a worker or scheduler is told to end while it still waits for services.
var ErrToldToEnd = instance.ErrToldToEnd

// NewSecrets returns an empty set of secrets.
func NewSecrets() *Secrets { return secret.New() }

// NewRemote returns a client for files on other machines. The caller closes it, unless it is given to Open.
func NewRemote(cfg RemoteConfig) *Remote { return remote.New(cfg) }

// NewOutage returns an Outage, which waits while services of a cluster are away, until drain is closed.
func NewOutage(logger *slog.Logger, drain <-chan struct{}) *Outage {
	return instance.NewOutage(logger, drain)
}

// Kept runs the keeper, which ends the processes that formulas have started, if args
// are those of a keeper. is reports whether they are; code is the exit code.
func Kept(args []string) (code int, is bool) {
	return worker.Kept(args)
}

// FindPython checks that an interpreter exists; errors name at, the place that names it.
func FindPython(path string, at fault.Place) error { return runtime.FindInterpreter(path, at) }

// FindProject returns the path of the file of environments for a directory; "": there is none.
func FindProject(dir string) string { return project.Find(dir) }

// ProjectFile is the name of a file of environments.
const ProjectFile = project.DefaultName

// Environments lists the names of the environments in a file.
func Environments(path string) []string { return project.Names(path) }

// LoadEnvironment reads an environment and adds its secrets to process.Known, if that is not nil.
func LoadEnvironment(path, name string, process Process) (*Environment, error) {
	env, diags, err := project.Load(path, name, project.Options{Lookup: process.Environment, Known: process.Known})
	if err == nil && env == nil {
		err = &InvalidScriptError{Diagnostics: diags}
	}
	return env, err
}

// PrepareCluster creates what a cluster's services lack. It calls warn with problems
// in spite of which it goes on.
func PrepareCluster(ctx context.Context, cfg *Config, warn func(error)) error {
	return cluster.Prepare(ctx, cfg, warn)
}

// DoctorOptions say what Doctor checks.
type DoctorOptions struct {
	Dir     string        // of state; "": none
	Cluster *Config       // nil: none
	Named   bool          // the user has named the interpreter
	Limit   time.Duration // of each check; 0: the check's own limit
}

// Doctor checks this machine, and the state directory or the services of a cluster.
func Doctor(ctx context.Context, process Process, o DoctorOptions) (view.Diagnosis, error) {
	found, err := diagnosis.Examine(ctx, diagnosis.Options{Process: process, Dir: o.Dir,
		Cluster: o.Cluster, Named: o.Named, Limit: o.Limit})
	return view.Diagnosis{Verdict: view.Worst(found), Checks: found}, err
}

// Examine is Doctor of the process that has the instance open.
func (a *App) Examine(ctx context.Context, by Caller) (view.Diagnosis, error) {
	p, o := a.in(by), DoctorOptions{Dir: a.home.Dir, Cluster: a.home.Cluster()}
	if o.Cluster != nil && o.Cluster.Worker.Python != "" {
		p.Interpreter, o.Named = o.Cluster.Worker.Python, true
	}
	return Doctor(ctx, p, o)
}

// HooksIn reads the hooks of all runs from the file at path; "": from the hooks file of dir, if it has one.
func HooksIn(ctx context.Context, dir string, process Process, path string) ([]scripts.Hook, error) {
	return runner.HooksIn(ctx, dir, process, path)
}

// Tried is the result of one message to a hook.
type Tried = diagnosis.Tried

// TryHooks sends an example of an event to each of the hooks that wants it.
func TryHooks(ctx context.Context, process Process, hooks []scripts.Hook, event string, told func(string) string,
	tell func(Tried)) {
	diagnosis.TryHooks(ctx, process.WithDefaults(), hooks, event, told, tell)
}

// Isolation makes a worker run each slot as a process of its own, started from
// program. client configures their access to files on other machines.
func Isolation(program string, client any) *worker.Isolation {
	return worker.IsolationBy(program, client)
}

// SlotCommand is the command-line word that starts a slot process.
const SlotCommand = worker.SlotCommand

// ServeSlot runs a slot process. open makes the client from the configuration that Isolation has passed on.
func ServeSlot(open func(client json.RawMessage, logger *slog.Logger) (*Remote, error)) error {
	return worker.ServeInherited(open)
}

// Children are processes of this program in which questions about tables are answered: see package peek.
type Children struct {
	Program string     // this program: with PeekCommand it calls ServePeek
	Client  any        // configures their access to files on other machines; as JSON
	Limits  PeekLimits // zero: the defaults
}

// Types of questions about tables.
type (
	PeekLimits = peek.Limits
	PeekSQL    = peek.SQL
	PeekTable  = peek.Table
	PeekSortBy = peek.SortBy
	Download   = peek.Download
	// DownloadFormat is the form of a Download.
	DownloadFormat = peek.Format
)

// The formats of downloads.
const (
	DownloadCSV     = peek.CSV
	DownloadNDJSON  = peek.NDJSON
	DownloadParquet = peek.Parquet
	DownloadXLSX    = peek.XLSX
)

// PeekCommand is the command-line word that starts a child.
const PeekCommand = peek.Command

// ServePeek runs a child. open makes the client from the configuration that Children has.
func ServePeek(open func(client json.RawMessage, logger *slog.Logger) (*Remote, error)) error {
	return peek.ServeInherited(open)
}

// EngineVersion is the version of DuckDB in this program.
const EngineVersion = worker.EngineVersion

// Metrics measures the work of a worker, and serves what it has measured.
type Metrics = worker.Metrics

// NewMetrics returns metrics of a worker; version is that of this program. The worker
// reports that it is not ready once drain is closed, or while away waits.
func NewMetrics(version string, drain <-chan struct{}, away *Outage) *Metrics {
	return worker.NewMetrics(version, drain, away)
}

// Fixed sets how much a worker does at once, instead of limits that it measures.
type Fixed = worker.Fixed

// ParseFixed reads settings, each as N, CLASS=N or CLASS.KNOB=N.
func ParseFixed(texts []string) (Fixed, error) { return worker.ParseFixed(texts) }

// SharersOf groups workers by the machine and directory over which they share their memory.
func SharersOf(workers []view.Worker) []worker.Sharers { return worker.SharersOf(workers) }

// EnvironmentFlag is the value of a setting in an environment.
type EnvironmentFlag = project.Flag
