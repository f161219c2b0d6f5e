package app

import (
	"context"
	"errors"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/cluster"
	"thalweg/internal/app/control"
	"thalweg/internal/app/fleet"
	"thalweg/internal/app/hub"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/peek"
	"thalweg/internal/app/runs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
)

// Types of the packages below that callers of App need.
type (
	Caller    = caller.Caller
	Process   = runtime.Process // resources and settings of this process
	Observers = instance.Observers
	News      = hub.Hub
	// StreamLine is a line of News.
	StreamLine = hub.Line
	Config     = cluster.Config // of a cluster
)

// The ways in which callers come in.
const (
	CLI       = caller.CLI
	Session   = caller.Session
	Token     = caller.Token
	Scheduler = caller.Scheduler
)

// Defaults.
const (
	DefaultDir       = instance.DefaultDir // of state
	DefaultWorkspace = instance.DefaultWorkspace
)

// ProcessCaller returns the user of this process as a caller. Nobody verifies the roles.
func ProcessCaller(roles ...string) Caller { return caller.OfProcess(caller.CLI, roles...) }

// App is an instance that is open: a state directory or a cluster. Of one that a server has open it has Operations only.
type App struct {
	Operations Operations

	Scripts *scripts.Service
	Runs    *runs.Service
	Orders  *control.Service
	Data    *inspect.Service
	Fleet   *fleet.Service
	News    *News      // of runs: reads nothing until somebody listens
	Peek    *peek.Pool // pages, profiles and downloads of tables; nil if Place.Children is

	home    *instance.Instance
	process Process
}

// NewsEnd has a listener to News hear of a run only what happens from then on.
const NewsEnd = hub.End

// ErrPassed tells a listener to News that it was too slow.
var ErrPassed = hub.ErrPassed

// Place says which instance to open, and how.
type Place struct {
	Dir     string  // of state
	Create  bool    // make the directory if it does not exist
	Cluster *Config // open this cluster instead of Dir; nil: open Dir

	Keep      bool                     // of a cluster: keep copies of parts on this machine
	Observers Observers                // see the requests to a cluster's services
	Away      *instance.Outage         // waits while services of a cluster are away; nil: that is an error
	Children  *Children                // questions about tables are answered in processes of their own; nil: in this one
	Told      func(text string) string // renders the actions in texts that people read elsewhere; nil: as they are
	Warn      func(err error)          // called with problems in spite of which Open goes on; may be nil
}

// LoadCluster reads the configuration of a cluster. process.Known learns its secrets.
func LoadCluster(path string, process Process) (*Config, error) {
	return instance.LoadCluster(path, process.Settings())
}

// Open opens an instance. process says what the App may use of this process. Its
// Caller is ignored, because each order names its caller. The App takes over its
// Remote and closes it, even if Open fails.
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
		if err := cluster.WrongDatacenter(home); err != nil {
			at.Warn(err)
		}
	}
	r := &runs.Service{Home: home, Logger: process.Logger}
	if err := r.ReadPrices(process.Getenv, process.Dir); err != nil {
		return nil, errors.Join(err, home.Close(), process.Remote.Close())
	}
	r.News = follow(home, r)
	a := &App{home: home, process: process, Runs: r, News: r.News,
		Scripts: &scripts.Service{Remote: process.Remote, Known: process.Known, Dir: process.Dir,
			Environment: process.Environment},
		Orders: &control.Service{Home: home, Process: process},
		Data:   &inspect.Service{Home: home, Process: process},
		Fleet:  &fleet.Service{Home: home, Runs: r}}
	r.Scripts = runs.NewScripts(a.Data.ScriptOf)
	a.Operations = here{a.Runs, a.Orders, a}
	if at.Children == nil {
		return a, nil
	}
	if a.Peek, err = peek.New(peek.Config{Home: home, Process: process, Program: at.Children.Program,
		Client: at.Children.Client, Limits: at.Children.Limits}); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.Data.Children = a.Peek
	return a, nil
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

// follow returns what follows the runs of an instance, and has what this process writes wake it.
func follow(home *instance.Instance, r *runs.Service) *News {
	cfg := hub.Config{Store: home.State, List: r.Listed, Signals: home.Signals}
	cfg.Watch, _ = home.State.(hub.Watch)
	news := hub.New(cfg)
	home.State = news.Waking(home.State)
	return news
}

// Close closes the instance, and removes temporary files.
func (a *App) Close() (err error) {
	if a.home == nil {
		return nil
	}
	if a.Peek != nil {
		err = a.Peek.Close()
	}
	return errors.Join(err, a.News.Close(), a.home.Close(), a.process.Remote.Close())
}

// Cluster returns the configuration of the cluster; nil if this is a state directory.
func (a *App) Cluster() *Config {
	if a.home == nil {
		return nil
	}
	return a.home.Cluster()
}

// RunsWithoutValues returns Runs for who may not read the data: it tells of failures without values.
func (a *App) RunsWithoutValues() *RunService { return a.Runs.WithoutValues() }

// in returns a.process with a caller.
func (a *App) in(by Caller) Process {
	p := a.process
	p.Caller = by
	return p
}
