package scheduler

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/address"
	"thalweg/internal/base/allow"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/store/state"
)

// SchedulerOptions say how a scheduler works.
type SchedulerOptions struct {
	worker.WorkerOptions
	Workspace  string
	Scripts    []string // files, and directories of them
	ParamsPath string
	Params     map[string]string
	Lenient    bool
	Exclusive  bool // see Options
	// Beside lets relative names in a script be seen from the script's directory, not from the process's.
	Beside bool
	Policy *allow.Policy // of what runs may open; nil: whatever their processes can
	// Leave leaves the work on the runs to others, as in a cluster.
	Leave   bool
	Limits  runner.Ask     // what runs may take, unless their schedule or watch says it
	Limiter runner.Limiter // needed where there are limits
	Hooks   []script.Hook
	Serving func(served []schedule.Served) // called when the scripts were read for the first time; may be nil
	Clock   calendar.Clock                 // nil: the machine's
}

// scriptsEvery is the time between two looks of a scheduler at its scripts.
const scriptsEvery = 5 * time.Second

// Schedule begins runs of scripts when their schedules and watches say so, and
// works on the runs that it and other schedulers have begun, until ctx ends. In a
// cluster it leaves the work to workers.
func Schedule(ctx context.Context, home *instance.Instance, opts SchedulerOptions) error {
	if err := instance.CheckWorkspace(opts.Workspace); err != nil {
		return err
	}
	if _, err := opts.Limits.On(nil); err != nil {
		return err
	}
	opts.Process = opts.WithDefaults()
	if opts.Clock == nil {
		opts.Clock = calendar.System{}
	}
	s := &scheduler{home: home, opts: opts, served: map[string]schedule.Served{}, wrong: map[string]string{}}
	if err := s.read(ctx, true); err != nil {
		return err
	}
	if opts.Serving != nil {
		opts.Serving(s.list())
	}
	opts.Wants = func(run state.Run) bool {
		return run.Workspace == opts.Workspace && strings.HasPrefix(run.Token, schedule.TokenPrefix)
	}
	store := runtime.NewStore(home, runtime.Process{Logger: opts.Logger, Known: opts.Known})
	var lister schedule.Lister
	if opts.Remote != nil {
		lister = opts.Remote.Within(opts.Policy)
	}
	service := schedule.New(schedule.Config{Remote: lister, Policy: opts.Policy, Workspace: opts.Workspace,
		Registry: registry.NewNoteBox(store, opts.Workspace, state.TopicSchedules), Runs: s, Load: s.load,
		Paused: registry.NewNoteBox(store, opts.Workspace, state.TopicPaused),
		Most:   opts.Most, Clock: opts.Clock, Logger: opts.Logger, Checkpoint: opts.Checkpoint,
		Files: func(watch string) schedule.Registry {
			return registry.NewNoteBox(store, opts.Workspace, registry.TopicWatched+watch)
		}})
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var wg sync.WaitGroup
	wg.Go(func() { service.Work(ctx) })
	var err error
	// its workers work on the runs: one that takes only some would put hints of the others back
	if home.ClusterConfig != nil || opts.Leave {
		select {
		case <-ctx.Done():
		case <-opts.Drain:
		}
	} else {
		err = worker.Serve(ctx, home, opts.WorkerOptions)
	}
	stop(nil)
	wg.Wait()
	return err
}

// ScheduleBox has the records of a workspace's schedules, for those who look at them.
func ScheduleBox(home *instance.Instance, workspace string) schedule.Registry {
	return registry.NewNoteBox(home.State, workspace, state.TopicSchedules)
}

// PausedBox has what of a workspace's schedules is paused.
func PausedBox(home *instance.Instance, workspace string) schedule.Registry {
	return registry.NewNoteBox(home.State, workspace, state.TopicPaused)
}

// scheduler is one call of Schedule. It implements schedule.Runs.
type scheduler struct {
	home   *instance.Instance
	opts   SchedulerOptions
	served map[string]schedule.Served // by path, as they were when they were right
	wrong  map[string]string          // what is wrong with them now
	unread string                     // why they could not be read
	looked time.Time
}

// load gives the scripts as they are now.
func (s *scheduler) load(ctx context.Context) []schedule.Served {
	if since := s.opts.Clock.Now().Sub(s.looked); since < 0 || since >= scriptsEvery {
		err := s.read(ctx, false)
		if err == nil {
			s.unread = ""
		} else if text := err.Error(); ctx.Err() == nil && text != s.unread {
			s.unread = text
			s.opts.Logger.Error("the scripts cannot be read now; they are served as they were", "error", err)
		}
	}
	return s.list()
}

func (s *scheduler) list() []schedule.Served {
	var out []schedule.Served
	for _, sv := range s.served {
		out = append(out, sv)
	}
	slices.SortFunc(out, func(a, b schedule.Served) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// read reads the scripts. At first an error in one that is named is the caller's;
// later it is logged, and the script is served as it was.
func (s *scheduler) read(ctx context.Context, first bool) error {
	s.looked = s.opts.Clock.Now()
	paths, err := scriptPaths(s.opts.Process.Dir, s.opts.Scripts)
	if err != nil {
		return err
	}
	identities := map[string]string{}
	for _, path := range paths.all {
		src := s.opts.Sources(s.opts.Policy, s.dirOf(path), path, s.opts.ParamsPath)
		src.Known, src.Params, src.Lenient = s.opts.Known, s.opts.Params, s.opts.Lenient
		sc, diags := script.LoadServing(ctx, src)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case diags.HasErrors() && first && paths.named[path]:
			return &sources.InvalidScriptError{Diagnostics: diags}
		case diags.HasErrors():
			if text := diags.Err().Error(); s.wrong[path] != text {
				s.wrong[path] = text
				s.opts.Logger.Error("a script cannot be read", "script", path, "error", diags.Err())
			}
			continue
		}
		delete(s.wrong, path)
		sv := schedule.Served{Path: path, Script: sc,
			Identity: s.home.Identity(sc.Name, address.SeenFrom(s.opts.Process.Dir, path))}
		if other := identities[sv.Identity]; other != "" {
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("%s and %s are the same script by their name", other,
					path), Hint: "give one of them another name, or serve one of them only"}
		}
		identities[sv.Identity] = path
		s.served[path] = sv
	}
	for path := range s.served {
		if !slices.Contains(paths.all, path) {
			delete(s.served, path)
		}
	}
	return nil
}

// scriptFiles are the scripts that a scheduler is to serve.
type scriptFiles struct {
	all   []string
	named map[string]bool // by themselves, not by their directory
}

func scriptPaths(dir string, args []string) (out scriptFiles, err error) {
	out.named = map[string]bool{}
	add := func(path string) {
		if !slices.Contains(out.all, path) {
			out.all = append(out.all, path)
		}
	}
	for _, arg := range args {
		st, err := os.Stat(address.Seen(dir, arg))
		switch {
		case address.Remote(arg), err == nil && !st.IsDir():
			add(arg)
			out.named[arg] = true
			continue
		case errors.Is(err, fs.ErrNotExist):
			return out, &fault.Error{Kind: fault.Script, Message: "there is no script or directory " + arg, Err: err}
		case err != nil:
			return out, &fault.Error{Kind: fault.Environment, Message: "look at " + arg, Err: err}
		}
		entries, err := os.ReadDir(address.Seen(dir, arg))
		if err != nil {
			return out, &fault.Error{Kind: fault.Environment, Message: "list the scripts of " + arg, Err: err}
		}
		for _, e := range entries {
			path := filepath.Join(arg, e.Name())
			if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) &&
				mayBeServed(address.Seen(dir, path)) {
				add(path)
			}
		}
	}
	return out, nil
}

// mayBeServed reports whether a file of a directory is a script that says when
// it is run: parameters and tests lie beside scripts.
func mayBeServed(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && (strings.Contains(string(text), "nodes") || strings.Contains(string(text), "include")) &&
		(strings.Contains(string(text), "schedule") || strings.Contains(string(text), "watch"))
}

// dirOf returns the directory that relative names in a script are seen from; "": the process's.
func (s *scheduler) dirOf(path string) string {
	if !s.opts.Beside || address.Remote(path) {
		return ""
	}
	return filepath.Dir(address.Seen(s.opts.Process.Dir, path))
}

// Begin implements schedule.Runs.
func (s *scheduler) Begin(ctx context.Context, start schedule.Start) (state.RunKey, error) {
	params := map[string]string{}
	for _, from := range []map[string]string{s.opts.Params, start.Params} {
		for name, value := range from {
			params[name] = value
		}
	}
	process := s.opts.Process
	process.Observe, process.Waiting, process.Checkpoint = nil, nil, nil
	return runner.Begin(ctx, s.home, runner.Options{Process: process, ScriptPath: start.Script,
		Dir: s.dirOf(start.Script), Policy: s.opts.Policy,
		ParamsPath: s.opts.ParamsPath,
		Params:     params, Offered: start.Offered, Lenient: s.opts.Lenient, Workspace: s.opts.Workspace, Reuse: true,
		Exclusive: s.opts.Exclusive, Description: start.Description, Token: start.Token, Nominal: start.Nominal,
		Hooks: s.opts.Hooks, Limiter: s.opts.Limiter,
		Most: runner.Ask{Elapsed: start.Most.Elapsed, Cost: start.Most.Cost}.Over(s.opts.Limits)})
}

// Busy implements schedule.Runs.
func (s *scheduler) Busy(ctx context.Context, key state.RunKey) (open, working bool, err error) {
	run, err := s.home.State.Run(ctx, key)
	if errors.Is(err, state.ErrNotFound) || err == nil && run.Status.Terminal() {
		return false, false, nil
	}
	if err != nil || run.Status != state.Running {
		return true, false, err
	}
	nodes, err := s.home.State.Nodes(ctx, key)
	if err != nil {
		return true, false, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	is := func(status state.Status) bool {
		return slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status == status })
	}
	return true, is(state.Running) || !is(state.Waiting), nil
}

// Tell implements schedule.Runs.
func (s *scheduler) Tell(ctx context.Context, start schedule.Start, served schedule.Served, cause error) error {
	sender := (&runtime.Runtime{Process: s.opts.Process}).Sender()
	f := fault.Of(cause)
	now := s.opts.Clock.Now().UTC()
	m := message.Message{Version: message.Version, ID: "evt_" + strings.TrimPrefix(start.Token, schedule.TokenPrefix),
		Event: message.Failed, Time: now, Workspace: s.opts.Workspace,
		Script: filepath.Base(served.Path), Path: served.Path, Status: string(state.Failed),
		Description: start.Description, Commands: map[string]string{"look": "{{do schedules}}"},
		Failure: &message.Failure{Kind: string(f.Kind), Message: s.opts.Known.Text(cause.Error()),
			Place: s.opts.Known.Place(f.Place).String(), Hint: s.opts.Known.Text(f.Hint)}}
	if served.Script.Name != "" {
		m.Script = served.Script.Name
	}
	m.Say(s.home.Told)
	var hooks []script.Hook
	own := slices.Clone(served.Script.Notify)
	for i := range own {
		own[i].Policy = s.opts.Policy
	}
	for _, h := range slices.Concat(own, s.opts.Hooks) {
		if slices.Contains(h.On, message.Failed) {
			hooks = append(hooks, h)
		}
	}
	errs := make([]error, len(hooks))
	var wg sync.WaitGroup
	for i, h := range hooks { // none waits for another: all have little time
		wg.Go(func() {
			if err := sender.Send(ctx, h, m, ""); err != nil {
				errs[i] = fmt.Errorf("tell %s: %w", notify.Name(h), err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Served is a script that is served, with its schedules and watches.
type Served = schedule.Served
