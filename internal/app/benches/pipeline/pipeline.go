package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
)

// Options of a bench.
type Options struct {
	runtime.Process
	Cluster *clusterconfig.Config // whose state and parts are used; nil: a directory's
	Isolate *worker.Isolation     // see worker.WorkerOptions
	Dir     string                // that the bench's own directory is made in, and removed from

	Script     string // of the user's; "": one is generated
	ParamsPath string
	Params     map[string]string
	Writes     bool   // also run nodes of Script that write files: they write where it says
	Rows       int64  // of the generated input's files, each
	Seed       uint64 // that the generated rows follow from

	Numbers  map[string][]int // that are tried, by knob; nil: only what the worker chooses is measured
	Rounds   int
	Settle   time.Duration     // longest that the worker may take to choose; 0: one run
	Progress func(text string) // may be nil
}

// Workspace is that of the runs, in a cluster.
const Workspace = "bench-pipeline"

// tidyWithin bounds the removal of what an interrupted bench leaves.
const tidyWithin = time.Minute

// bench is one call of Run.
type bench struct {
	opts  Options
	home  *instance.Instance
	work  loaded              // that is measured
	more  loaded              // that a worker settles with
	nodes map[string][]string // by class
	notes []string
	tune  func(*budget.Budget)
	at    state.RunKey // that is under way; of run 0: none is
}

// loaded is a script with what a run of it begins with.
type loaded struct {
	*script.Script
	begin runner.Options
}

// Run measures. It takes over the Remote of the process, and closes it.
func Run(ctx context.Context, opts Options) (_ sweep.Report, err error) {
	opts.Process = opts.WithDefaults()
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	if opts.Remote == nil {
		opts.Remote = remote.New(remote.Config{Logger: opts.Logger})
	}
	defer func() { err = errors.Join(err, opts.Remote.Close()) }()
	dir, err := os.MkdirTemp(opts.Dir, "thalweg-bench-")
	if err != nil {
		f := &fault.Error{Kind: fault.Environment, Message: "make a directory for the bench", Err: err}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			f.Kind, f.Hint = fault.Script, "name a directory that there is with {{set in}}"
		}
		return sweep.Report{}, f
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return sweep.Report{}, err
	}
	b := &bench{opts: opts}
	if err := b.prepare(ctx, dir); err != nil {
		return sweep.Report{}, err
	}
	if err := b.open(ctx, dir); err != nil {
		return sweep.Report{}, err
	}
	defer func() { err = errors.Join(err, b.home.Close()) }()
	return b.measure(ctx)
}

// open opens the state.
func (b *bench) open(ctx context.Context, dir string) (err error) {
	if b.opts.Cluster == nil {
		b.home, err = instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), true)
		return err
	}
	if b.home, err = instance.OpenCluster(ctx, b.opts.Cluster, instance.ClusterOptions{}); err != nil {
		return err
	}
	workers, err := registry.Workers(ctx, b.home)
	if err == nil && slices.ContainsFunc(workers, func(w registry.WorkerEntry) bool { return !w.Gone }) {
		err = &fault.Error{Kind: fault.Script, Message: "workers of the cluster are there: they would take batches of the bench",
			Hint: "end them for as long as it measures, or name a cluster that has none"}
	}
	if err != nil {
		return errors.Join(err, b.home.Close())
	}
	return nil
}

// settlesWith is how many times as many rows a worker settles with as are measured: it judges by what a class does over
// several seconds in which there is enough to do.
const settlesWith = 4

// prepare loads the script, or makes one.
func (b *bench) prepare(ctx context.Context, dir string) error {
	noPython := runtime.FindInterpreter(b.opts.Interpreter, fault.Place{})
	if b.opts.Script == "" {
		if err := b.generate(ctx, dir, noPython == nil); err != nil {
			return err
		}
		if noPython != nil {
			b.notes = append(b.notes, "nodes with Python are not measured: "+fault.Of(noPython).Message)
		}
		_, err := b.choose()
		return err
	}
	var err error
	if b.work, err = b.load(ctx, b.opts.Script, ""); err != nil {
		return err
	}
	nodes, err := b.choose()
	if err == nil && noPython != nil && runtime.NeedsPython(nodes) {
		err = noPython
	}
	b.more = b.work
	return err
}

// generate makes a pipeline, and the same with more rows.
func (b *bench) generate(ctx context.Context, dir string, python bool) (err error) {
	most := slices.Max(append(b.opts.Numbers[concurrency.Batches], 2*b.cores()))
	for times, to := range map[int64]*loaded{1: &b.work, settlesWith: &b.more} {
		in := filepath.Join(dir, fmt.Sprintf("rows-%d", times))
		if err := os.Mkdir(in, 0o700); err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "make a directory for inputs of the bench", Err: err}
		}
		path, bytes, err := generate(ctx, in, times*b.opts.Rows, b.opts.Seed, python, most)
		if err != nil {
			return err
		}
		if times == 1 {
			b.tune = cut(bytes, most)
		}
		if *to, err = b.load(ctx, path, in); err != nil {
			return err
		}
	}
	return nil
}

// load loads a script; relative names of files are seen from dir, "" being the process's.
func (b *bench) load(ctx context.Context, path, dir string) (l loaded, err error) {
	src := b.opts.Sources(nil, dir, path, b.opts.ParamsPath)
	src.Known, src.Params = b.opts.Known, b.opts.Params
	src.Read = sources.Remembered(src.Read)
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		return l, &sources.InvalidScriptError{Diagnostics: diags}
	}
	s.Notify, s.Deadline = nil, "" // nobody is told of measurements
	return loaded{Script: s, begin: runner.Options{Script: s, ScriptSources: &src, ScriptPath: path,
		ParamsPath: b.opts.ParamsPath, Params: b.opts.Params, Dir: dir, Workspace: Workspace, Unattended: true}}, nil
}

// choose decides which nodes are run.
func (b *bench) choose() ([]*script.Node, error) {
	all, err := b.work.Affected(nil)
	if err != nil {
		return nil, err
	}
	b.nodes = map[string][]string{}
	var left, names []string
	var chosen []*script.Node
	for _, n := range all {
		if n.Out != nil && b.opts.Script != "" && !b.opts.Writes {
			left = append(left, n.Name)
			continue
		}
		class := concurrency.ClassOf(string(n.Type))
		b.nodes[class] = append(b.nodes[class], n.Name)
		names, chosen = append(names, n.Name), append(chosen, n)
	}
	if len(chosen) == 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "no node of the script can be measured",
			Hint: "nodes that write files are measured with {{set writes}}: they write where the script says"}
	}
	if len(left) > 0 {
		b.work.begin.Select.To = names
		b.notes = append(b.notes, fmt.Sprintf("nodes that write are left out, as they write where the script says: %v", left))
	}
	return chosen, nil
}

// measure lets a worker choose, and then measures that beside fixed numbers.
func (b *bench) measure(ctx context.Context) (r sweep.Report, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, b.tidy(ctx))
		}
	}()
	chosen, runs, err := b.settle(ctx)
	if err != nil {
		return r, err
	}
	r = sweep.Report{Version: sweep.Version, Script: b.opts.Script, Cores: b.cores(), State: "a directory",
		Rounds: b.opts.Rounds, Settling: runs, Settled: settled(chosen), Notes: b.notes}
	if b.opts.Cluster != nil {
		r.State = "a cluster"
	}
	settings := b.settings(chosen)
	if !slices.ContainsFunc(chosen, func(s concurrency.Setting) bool { return s.Knob == concurrency.Writers }) {
		r.Notes = append(r.Notes, "parts in a directory are written by the batches themselves: there are no writers to choose")
	}
	if !r.Settled {
		r.Notes = append(r.Notes, fmt.Sprintf("the worker was still trying (?) when its time was up (%s): "+
			"what it chose is where it was",
			b.opts.Settle))
	}
	var samples []sweep.Sample
	for round := range b.opts.Rounds {
		for _, setting := range sweep.Order(settings, round) {
			b.opts.Progress(fmt.Sprintf("round %d of %d: %s", round+1, b.opts.Rounds, said(setting)))
			classes, err := b.once(ctx, fixed(setting, chosen))
			if err != nil {
				return r, err
			}
			samples = append(samples, sweep.Sample{Setting: setting, Round: round, Classes: classes})
		}
	}
	r.Classes = sweep.New(samples, b.nodes, chosen)
	r.Notes = append(r.Notes, sweep.Doubts(samples)...)
	return r, nil
}

func said(s sweep.Setting) string {
	if s.N == 0 {
		return "as the worker chose"
	}
	return fmt.Sprintf("%s %d", s.Knob, s.N)
}

// settings lists what is measured: what the worker chose, and each number of each knob that there is.
func (b *bench) settings(chosen []concurrency.Setting) []sweep.Setting {
	out := []sweep.Setting{{}}
	for _, knob := range []string{concurrency.Batches, concurrency.Threads, concurrency.Writers} {
		if !slices.ContainsFunc(chosen, func(s concurrency.Setting) bool { return s.Knob == knob }) {
			continue
		}
		numbers := slices.Clone(b.opts.Numbers[knob])
		slices.Sort(numbers)
		for _, n := range slices.Compact(numbers) {
			out = append(out, sweep.Setting{Knob: knob, N: n})
		}
	}
	return out
}

// fixed forces what the worker chose, but for one knob. One thread a batch is as many as others leave it, as long as
// the worker has not chosen more: it stays so.
func fixed(setting sweep.Setting, chosen []concurrency.Setting) concurrency.Fixed {
	out := concurrency.Fixed{}
	for _, s := range chosen {
		n := s.Value
		if s.Knob == setting.Knob && setting.N > 0 {
			n = setting.N
		} else if s.Knob == concurrency.Threads && n == 1 {
			continue
		}
		out[concurrency.Of{Class: s.Class, Knob: s.Knob}] = n
	}
	return out
}

func settled(chosen []concurrency.Setting) bool {
	return !slices.ContainsFunc(chosen, func(s concurrency.Setting) bool { return !s.Settled })
}

// settle has a worker work until it is done with trying.
func (b *bench) settle(ctx context.Context) (chosen []concurrency.Setting, runs int, err error) {
	s := b.serve(ctx, nil)
	defer func() { err = errors.Join(err, s.stop()) }()
	for began := time.Now(); ; {
		runs++
		b.opts.Progress(fmt.Sprintf("run %d in which the worker chooses by itself", runs))
		if _, err := s.run(ctx, b.more); err != nil {
			return nil, runs, err
		}
		chosen = nil
		for _, k := range s.atOnce() {
			if len(b.nodes[k.Class]) > 0 {
				chosen = append(chosen, k)
			}
		}
		if settled(chosen) || time.Since(began) >= b.opts.Settle {
			return chosen, runs, nil
		}
	}
}

// once measures one run of a worker that does so much at once.
func (b *bench) once(ctx context.Context, f concurrency.Fixed) (_ map[string]sweep.Work, err error) {
	s := b.serve(ctx, f)
	defer func() { err = errors.Join(err, s.stop()) }()
	return s.run(ctx, b.work)
}

// remove drops a run and what it has stored.
func (b *bench) remove(ctx context.Context, key state.RunKey) error {
	by := b.opts.Caller.Mark("a bench has measured it")
	if _, err := control.Drop(ctx, b.home, []state.RunKey{key}, control.DropOptions{By: by}); err != nil {
		return fmt.Errorf("drop what was measured: %w", err)
	}
	_, err := control.Collect(ctx, b.home, control.CollectOptions{Process: b.opts.Process, Workspace: Workspace, By: by})
	if err != nil {
		return fmt.Errorf("remove what was measured: %w", err)
	}
	b.at = state.RunKey{}
	return nil
}

// tidy ends and removes the run of a bench that has ended early. What is in its own directory goes with that.
func (b *bench) tidy(ctx context.Context) error {
	if b.opts.Cluster == nil || b.at.Run == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyWithin)
	defer cancel()
	if _, err := orders.Stop(ctx, b.home.State, b.at, b.opts.Caller.Mark("the bench has ended")); err != nil {
		return fmt.Errorf("stop run %d: %w", b.at.Run, err)
	}
	return b.remove(ctx, b.at)
}

func (b *bench) cores() int { return cmp.Or(b.opts.Cores, budget.Cores()) }
