package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"thalweg/internal/app/fleet"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/project"
)

// What a process knows and reaches.
type (
	Secrets            = secret.Known
	Remote             = remote.Client
	RemoteConfig       = remote.Config
	InvalidScriptError = sources.InvalidScriptError
	Outage             = instance.Outage
	Environment        = project.Environment // of a project
)

// ErrToldToEnd ends a process that serves for days before it has begun to.
var ErrToldToEnd = instance.ErrToldToEnd

// NewSecrets returns secrets of which none is known yet.
func NewSecrets() *Secrets { return secret.New() }

// NewRemote returns what reaches files of other machines. Whoever makes it closes it, but for an App's.
func NewRemote(cfg RemoteConfig) *Remote { return remote.New(cfg) }

// NewOutage returns what waits for services of a cluster that are away, until drain is closed.
func NewOutage(logger *slog.Logger, drain <-chan struct{}) *Outage {
	return instance.NewOutage(logger, drain)
}

// Kept runs the part of this program that ends what formulas have started, if
// args say that it was started as that; code is its exit code.
func Kept(args []string) (code int, is bool) {
	if !keeper.Called(args) {
		return 0, false
	}
	return keeper.Main(args, keeper.Cgroups()), true
}

// FindPython refuses an interpreter that is not there; at is where it is named.
func FindPython(path string, at fault.Place) error { return runtime.FindInterpreter(path, at) }

// FindProject returns the file of environments for a directory; "": there is none.
func FindProject(dir string) string { return project.Find(dir) }

// ProjectFile is the name of such a file.
const ProjectFile = project.DefaultName

// Environments lists the names of the environments in a file.
func Environments(path string) []string { return project.Names(path) }

// LoadEnvironment reads an environment; known learns its secrets, nil learning none.
func LoadEnvironment(path, name string, known *Secrets) (*Environment, error) {
	env, diags, err := project.Load(path, name, project.Options{Known: known})
	if err == nil && env == nil {
		err = &InvalidScriptError{Diagnostics: diags}
	}
	return env, err
}

// PrepareCluster makes what a cluster needs and has not got yet. warn is told
// what is wrong and keeps nobody from going on.
func PrepareCluster(ctx context.Context, cfg *Config, warn func(error)) error {
	return fleet.Prepare(ctx, cfg, warn)
}

// DoctorOptions say what is looked at.
type DoctorOptions struct {
	Dir     string        // of state; "": none
	Cluster *Config       // nil: none
	Named   bool          // somebody has said which interpreter
	Limit   time.Duration // of each check; 0: its own
}

// Doctor looks at this machine, and at the state directory or the services of a cluster.
func Doctor(ctx context.Context, process Process, o DoctorOptions) (view.Diagnosis, error) {
	found, err := fleet.Doctor(ctx, fleet.DoctorOptions{Process: process, Dir: o.Dir,
		Cluster: o.Cluster, Named: o.Named, Limit: o.Limit})
	return view.Diagnosis{Verdict: view.Worst(found), Checks: found}, err
}

// HooksIn reads the hooks of all runs from a file, or with path "" from that of a directory, if it has one.
func HooksIn(ctx context.Context, dir string, process Process, path string) ([]scripts.Hook, error) {
	return runner.HooksIn(ctx, dir, process, path)
}

// Tried holds the result of a message to a hook.
type Tried = fleet.Tried

// TryHooks sends an example of an event to each of the hooks that wants it.
func TryHooks(ctx context.Context, process Process, hooks []scripts.Hook, event string, told func(string) string,
	tell func(Tried)) {
	fleet.TryHooks(ctx, process.WithDefaults(), hooks, event, told, tell)
}

// Isolation says how a worker's slots are started as processes of their own: by
// program, with client for their files of other machines.
func Isolation(program string, client any) *worker.Isolation {
	return &worker.Isolation{Client: client, Command: func() keeper.Program { return worker.SlotProgram(program) }}
}

// SlotCommand is the word by which such a process is started.
const SlotCommand = worker.SlotCommand

// ServeSlot runs such a process. open makes the client of what it was given.
func ServeSlot(open func(client json.RawMessage, logger *slog.Logger) (*Remote, error)) error {
	return worker.ServeInherited(open)
}

// EngineVersion is the version of DuckDB in this program.
const EngineVersion = worker.EngineVersion

// Metrics measures the work of a worker, and serves what it has measured.
type Metrics = worker.Metrics

// NewMetrics returns metrics of a program of this version. The worker is not
// ready once drain is closed, or while away waits.
func NewMetrics(version string, drain <-chan struct{}, away *Outage) *Metrics {
	return worker.NewMetrics(version, drain, away)
}

// Fixed says how much a worker does at once, instead of what it finds by measuring.
type Fixed = worker.Fixed

// ParseFixed reads settings, each as N, CLASS=N or CLASS.KNOB=N.
func ParseFixed(texts []string) (Fixed, error) { return worker.ParseFixed(texts) }

// SharersOf lists the machines of workers that divide their memory.
func SharersOf(workers []view.Worker) []worker.Sharers { return worker.SharersOf(workers) }

// EnvironmentFlag is a value that an environment gives a setting.
type EnvironmentFlag = project.Flag
