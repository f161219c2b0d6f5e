package app

import (
	"context"
	"errors"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/fleet"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
)

// Words of the packages below.
type (
	Caller    = caller.Caller
	Process   = runtime.Process // what a process lends to all that it does
	Observers = instance.Observers
	Config    = fleet.Config // of a cluster
)

// The ways by which callers come in.
const (
	CLI       = caller.CLI
	Session   = caller.Session
	Token     = caller.Token
	Scheduler = caller.Scheduler
)

// What is used where nobody names another.
const (
	DefaultDir       = instance.DefaultDir // of state
	DefaultWorkspace = instance.DefaultWorkspace
)

// ProcessCaller returns the user of this process, in roles of their own account.
func ProcessCaller(roles ...string) Caller { return caller.OfProcess(caller.CLI, roles...) }

// App is an instance that is open: a state directory or a cluster.
type App struct {
	Scripts *scripts.Service
	Runs    *runs.Service
	Orders  *control.Service
	Data    *inspect.Service
	Fleet   *fleet.Service

	home    *instance.Instance
	process Process
}

// Place says which instance is opened.
type Place struct {
	Dir     string  // of state
	Create  bool    // the directory is made if it is not there
	Cluster *Config // instead of Dir; nil: none

	Keep      bool                     // of a cluster: copies of parts stay on this machine
	Observers Observers                // are told what is asked of a cluster's services
	Away      *instance.Outage         // waits for services of a cluster that are away; nil: that is an error
	Told      func(text string) string // renders actions of texts that are read elsewhere; nil: they stay
	Warn      func(err error)          // is told of what is wrong and keeps nobody from going on; may be nil
}

// LoadCluster reads the configuration of a cluster. known learns its secrets.
func LoadCluster(path string, known *Secrets) (*Config, error) {
	return instance.LoadCluster(path, known)
}

// Open opens an instance. process says what may be used of this process; its
// Caller does not count: who orders something is an argument of the order. Its
// Remote is the App's from now on, which closes it, also where Open fails.
func Open(ctx context.Context, at Place, process Process) (*App, error) {
	process = process.WithDefaults()
	if process.Remote == nil {
		process.Remote = NewRemote(RemoteConfig{Logger: process.Logger})
	}
	home, err := openHome(ctx, at)
	if err != nil {
		return nil, errors.Join(err, process.Remote.Close())
	}
	home.Told = at.Told
	if at.Cluster != nil && at.Warn != nil {
		if err := fleet.WrongDatacenter(home); err != nil {
			at.Warn(err)
		}
	}
	r := &runs.Service{Home: home, Logger: process.Logger}
	return &App{home: home, process: process, Runs: r,
		Scripts: &scripts.Service{Remote: process.Remote, Known: process.Known, Dir: process.Dir,
			Environment: process.Environment},
		Orders: &control.Service{Home: home, Process: process},
		Data:   &inspect.Service{Home: home, Process: process},
		Fleet:  &fleet.Service{Home: home, Runs: r}}, nil
}

func openHome(ctx context.Context, at Place) (*instance.Instance, error) {
	if at.Cluster == nil {
		return instance.Open(ctx, at.Dir, at.Create)
	}
	open := func() (*instance.Instance, error) {
		return instance.OpenCluster(ctx, at.Cluster, instance.ClusterOptions{Keep: at.Keep, Observers: at.Observers})
	}
	if at.Away == nil {
		return open()
	}
	return at.Away.Open(ctx, open)
}

// Close closes the instance, and removes temporary files.
func (a *App) Close() error { return errors.Join(a.home.Close(), a.process.Remote.Close()) }

// Cluster returns the configuration of the cluster; nil if this is a state directory.
func (a *App) Cluster() *Config { return a.home.Cluster() }

// in returns what may be used, in a caller's name.
func (a *App) in(by Caller) Process {
	p := a.process
	p.Caller = by
	return p
}
