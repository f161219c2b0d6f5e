package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// TraceOptions say what is traced, and with what.
type TraceOptions struct {
	runtime.Process
	Workspace string
	Name      string // a table, or an output file
	Run       int64  // 0: the latest that has it
	Trace     lineage.Options
}

// Trace says what rows of a table or of an output file are made of.
func Trace(ctx context.Context, home *instance.Instance, opts TraceOptions) (_ *lineage.Tree, err error) {
	targets, err := findTargets(ctx, home, opts)
	if err != nil {
		return nil, err
	}
	// Batches are executed beside the instance that puts what they give together.
	half := max(opts.MemoryBytes/2, budget.MemoryBytesMin)
	process := opts.Process
	process.MemoryBytes = half
	t, err := runtime.New(home, process)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs := runtime.TracedRuns{Tools: t, Jobs: map[state.RunKey]*pipeline.Pipeline{}}
	defer runs.Close()
	dir, err := home.Scratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the instance's own
	cfg := lineage.Config{Store: home.State, Parts: home.Parts, Job: runs.Job, Dir: dir, Reach: []string{home.PartsDir},
		Engine: engine.InstanceConfig{MemoryBytes: half, Threads: budget.Cores()}}
	return traceFirst(ctx, cfg, targets, opts.Trace)
}

// traceFirst traces rows of the first of some targets that has any: runs that have written rows into
// one table of a database, the latest first. Those before one that has replaced the table do not count.
func traceFirst(ctx context.Context, cfg lineage.Config, targets []lineage.Target, opts lineage.Options) (*lineage.Tree,
	error) {
	var none *lineage.NoMatchError
	for i, target := range targets {
		tree, err := lineage.Trace(ctx, cfg, target, opts)
		if !errors.As(err, &none) {
			return tree, err
		}
		if i+1 < len(targets) && targets[i+1].Node == target.Node { // another batch
			continue
		}
		job, err := cfg.Job(ctx, target.Node.RunKey)
		if err != nil {
			return nil, err
		}
		n, err := job.TracedNode(ctx, target.Node.Node)
		if err != nil {
			return nil, err
		}
		if w := n.Node.Out; w == nil || w.Target == nil || w.Target.Mode == database.Replace {
			break
		}
		if i > 0 && i == len(targets)-1 {
			none.Fault.Message = fmt.Sprintf("none of the runs that have written into %s has written a row "+
				"for which %s", target.Files[0].URL, opts.Where)
		}
	}
	return nil, none
}

// findTargets finds the run that has a table or an output file: of those that wrote it the latest whose
// file is there as it was written, else the latest. Of a table of a database it finds all, the latest first.
func findTargets(ctx context.Context, home *instance.Instance, opts TraceOptions) (targets []lineage.Target,
	err error) {
	name, only := opts.Name, opts.Run
	path := address.Redact(name)
	if !address.Remote(name) {
		if path, err = filepath.Abs(address.Seen(opts.Process.Dir, name)); err != nil {
			return nil, err
		}
	}
	if of, table, ok := runTable(name); ok && (only == 0 || only == of) { // a file may be called so, too
		found, ok, err := tableOfRun(ctx, home, state.RunKey{Workspace: opts.Workspace, Run: of}, table)
		if err != nil || ok {
			return []lineage.Target{found}, err
		}
		if err := orDropped(ctx, home, state.RunKey{Workspace: opts.Workspace, Run: of}); err != nil {
			return nil, err
		}
	}
	at, _, _ := strings.Cut(name, "#")
	for page := (state.Page{}); ; {
		runs, next, err := home.State.Runs(ctx, opts.Workspace, page)
		if err != nil {
			return nil, fmt.Errorf("read the runs of workspace %s: %w", opts.Workspace, err)
		}
		for _, r := range runs {
			if only != 0 && r.Run != only {
				continue
			}
			found, sure, err := targetIn(ctx, home, r, name, path)
			switch {
			case err != nil:
				return nil, err
			case sure && !address.Database(at):
				return found, nil
			}
			targets = append(targets, found...)
		}
		if page.From = next; next == 0 {
			break
		}
	}
	switch {
	case len(targets) > 0 && !address.Database(at):
		return targets[:1], nil
	case len(targets) > 0:
		return targets, nil
	}
	return nil, nothingToTrace(ctx, home, opts, only)
}

// orDropped says that a run was dropped, where it was.
func orDropped(ctx context.Context, home *instance.Instance, key state.RunKey) error {
	run, err := home.State.Run(ctx, key)
	if err == nil && run.Dropped != nil {
		return instance.RunDropped(run)
	}
	return nil //nolint:nilerr // that there is no such run is said behind it
}

// nothingToTrace says that no run has what is to be traced.
func nothingToTrace(ctx context.Context, home *instance.Instance, opts TraceOptions, only int64) error {
	if only != 0 {
		if err := orDropped(ctx, home, state.RunKey{Workspace: opts.Workspace, Run: only}); err != nil {
			return err
		}
	}
	f := &fault.Error{Kind: fault.Script,
		Message: fmt.Sprintf("no run of workspace %s has completed a table %s or written a file of that name",
			opts.Workspace, opts.Name), Hint: "{{do runs}} lists the runs, {{do nodes}} what they have made"}
	for _, side := range []string{engine.BadTable, "__failed"} {
		if table, ok := strings.CutSuffix(opts.Name, side); ok {
			f.Hint = fmt.Sprintf("rows that were put aside are not traced: those of %s are, and {{do sql}} shows %s",
				table, opts.Name)
		}
	}
	if only != 0 {
		f.Message = fmt.Sprintf("run %d has no table %s that is complete, and has not written a file of that name",
			only, opts.Name)
	}
	return f
}

// runTable takes the name of a run's table apart as queries have it: run7.orders.
func runTable(name string) (run int64, table string, ok bool) {
	schema, table, ok := strings.Cut(name, ".")
	if !ok {
		return 0, "", false
	}
	number, ok := strings.CutPrefix(schema, "run")
	run, err := strconv.ParseInt(number, 10, 64)
	return run, table, ok && err == nil && run > 0
}

// tableOfRun looks for a table in one run.
func tableOfRun(ctx context.Context, home *instance.Instance, key state.RunKey, table string) (target lineage.Target,
	ok bool,
	err error) {
	nodes, err := home.State.Nodes(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return target, false, nil
	}
	if err != nil {
		return target, false, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	for _, n := range nodes {
		if n.Table != "" && strings.EqualFold(n.Table, table) && n.Status == state.Succeeded {
			return lineage.Target{Node: n.NodeKey}, true, nil
		}
	}
	return target, false, nil
}

// targetIn looks for a table or file in a run: of a table of a database there are as many as batches have written
// it. sure says that a file is as the run wrote it, or that nobody can tell.
func targetIn(ctx context.Context, home *instance.Instance, r state.Run, name, path string) (targets []lineage.Target,
	sure bool,
	err error) {
	for _, n := range r.Nodes {
		if n.Table != "" && strings.EqualFold(n.Table, name) && n.Status == state.Succeeded {
			return []lineage.Target{{Node: state.NodeKey{RunKey: r.RunKey, Node: n.Name}}}, true, nil
		}
	}
	for _, n := range r.Nodes {
		if n.Table != "" {
			continue
		}
		node, err := home.State.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: n.Name})
		if err != nil {
			return nil, false, fmt.Errorf("read node %s of run %d: %w", n.Name, r.Run, err)
		}
		key := node.NodeKey
		if node.ReusedFrom != nil {
			key = *node.ReusedFrom
		}
		files, err := state.All(ctx, home.State.Files, key)
		if err != nil {
			return nil, false, fmt.Errorf("read the files of %s: %w", n.Name, err)
		}
		found := filesAt(key, files, path)
		if len(found) == 0 {
			continue
		}
		sure, err := asTheyWere(ctx, found[0].Files)
		return found, sure, err
	}
	return nil, false, nil
}

// filesAt finds the file of a path among those of a node, or all of its directory, or what each batch has written
// into the table of a database; none: it is none of them.
func filesAt(key state.NodeKey, files []state.File, path string) (out []lineage.Target) {
	is := func(url string) bool {
		return url == path || !address.Remote(path) && address.Resolve(url) == address.Resolve(path)
	}
	dir := ""
	for _, f := range files {
		if f.Manifest && filepath.Base(f.URL) == script.DirManifest {
			dir = filepath.Dir(f.URL)
		}
	}
	if dir != "" && is(dir) {
		return []lineage.Target{{Node: key, Dir: dir, Files: slices.DeleteFunc(slices.Clone(files),
			func(f state.File) bool { return f.Manifest })}}
	}
	for _, f := range files {
		if !f.Manifest && is(f.URL) {
			out = append(out, lineage.Target{Node: key, Dir: dir, Files: []state.File{f}})
		}
	}
	return out
}

// asTheyWere reports whether files of this machine are as they were written, or are not there:
// then nobody has written others.
func asTheyWere(ctx context.Context, files []state.File) (bool, error) {
	for _, f := range files {
		if _, err := os.Stat(f.URL); address.Remote(f.URL) || err != nil {
			continue
		}
		if same, err := pipeline.SameFile(ctx, f); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// ScriptOf loads a run's script as it was when the run began; relative names in
// it are seen from dir.
func ScriptOf(ctx context.Context, home *instance.Instance, run state.RunKey, p runtime.Process) (_ *script.Script,
	dir string, err error) {
	t, err := runtime.New(home, p)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	rec, err := t.RecallFrom(ctx, run, true)
	if err != nil {
		return nil, "", err
	}
	return rec.Script, rec.Dir, nil
}
