package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/base/action"
	"thalweg/internal/base/progress"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// CheckOptions of checks that are made of the tables of a run.
type CheckOptions struct {
	runtime.Process
	Run        state.Run
	ScriptPath string
	// Named is the script for Children, who load it once more; without a path it is the run's own.
	Named   sources.Named
	Nodes   []string // that are checked; none: all that have checks
	RowsMax int      // failing rows that are given of each check; 0: all that it keeps
}

// CheckFound holds the result of a check over the rows of a run.
type CheckFound struct {
	state.CheckResult
	Before  *state.CheckResult // what the check of this name found in the run; nil: it had none
	Failing QueryResult        // rows, with why each fails behind its fields
}

// Check makes the checks of a script over the tables that a run has left. It runs no node, and writes nothing.
func Check(ctx context.Context, home *instance.Instance, s *script.Script, opts CheckOptions) ([]CheckFound, error) {
	nodes, err := checkedNodes(s, opts.Nodes)
	if err != nil {
		return nil, err
	}
	c := checker{home: home, opts: opts, identity: home.Identity(s.Name, opts.ScriptPath)}
	c.left = pipeline.Left{Store: home.State, Run: opts.Run.RunKey}
	if c.planner.Budget, err = runtime.ShareOf(opts.MemoryBytes, 0, false); err != nil {
		return nil, err
	}
	c.planner.Script = s
	var all []plan.Recheck
	for _, n := range nodes { // what is not there is found before anything is read
		r := plan.Recheck{Node: n}
		if r.Own, r.Inputs, err = c.left.Checked(ctx, n); err != nil {
			return nil, c.wayOut(ctx, n, nodes, err)
		}
		all = append(all, r)
	}
	var out []CheckFound
	now := progress.Progress{Unit: "checks"}
	for _, r := range all {
		now.Of += int64(len(r.Node.Checks))
	}
	for _, r := range all {
		now.Phase = "checking node " + r.Node.Name
		progress.Tell(ctx, now)
		now.Done += int64(len(r.Node.Checks))
		found, err := c.check(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// LatestOf is the latest run of a script in a workspace; ok is false if there is none.
func LatestOf(ctx context.Context, home *instance.Instance, workspace string, s *script.Script,
	path string) (run state.Run,
	ok bool,
	err error) {
	runs, _, err := home.State.Runs(ctx, workspace, state.Page{Limit: queryRunsMax})
	if err != nil {
		return run, false, fmt.Errorf("read the runs of workspace %s: %w", workspace, err)
	}
	identity := home.Identity(s.Name, path)
	at := slices.IndexFunc(runs, func(r state.Run) bool { return home.IdentityOf(r) == identity })
	if at < 0 {
		return run, false, nil
	}
	return runs[at], true, nil
}

// checkedNodes are those of the named nodes that have checks; with no names all of the script.
func checkedNodes(s *script.Script, names []string) (out []*script.Node, err error) {
	for _, name := range names {
		n := s.Node(name)
		if n == nil {
			var known []string
			for _, one := range s.Nodes {
				known = append(known, one.Name)
			}
			f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the script has no node %q", name),
				Hint: action.Do("explain", "script", s.Path).String() + " lists its nodes"}
			if near := similar.Nearest(name, known); near != "" {
				f.Hint = "did you mean " + near + "?"
			}
			return nil, f
		}
		if !plan.HasChecks(n) {
			return nil, &fault.Error{Kind: fault.Script, Message: "node " + name + " has no checks",
				Hint: "write some below its key checks: docs/checks.md has all kinds"}
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	if len(names) > 0 {
		return out, nil
	}
	for _, n := range s.Topological() {
		if plan.HasChecks(n) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: "the script has no checks",
			Hint: "write some below the key checks of a node: docs/checks.md has all kinds"}
	}
	return out, nil
}

// checker makes the checks of one script over one run.
type checker struct {
	home     *instance.Instance
	opts     CheckOptions
	left     pipeline.Left
	planner  plan.Planner
	identity string
}

func (c *checker) check(ctx context.Context, r plan.Recheck) (out []CheckFound, err error) {
	key := state.NodeKey{RunKey: c.opts.Run.RunKey, Node: r.Node.Name}
	before, err := c.before(ctx, key)
	if err != nil {
		return nil, err
	}
	r.Checks = plan.CheckContext{Run: c.opts.Run.RunKey, Created: c.opts.Run.Created}
	if slices.ContainsFunc(r.Node.Checks, (*script.Check).Previous) {
		same := func(run state.Run) bool { return c.home.IdentityOf(run) == c.identity }
		if r.Checks.Measured, err = pipeline.MeasuredBefore(ctx, c.home.State, key, same); err != nil {
			return nil, err
		}
	}
	paths, release, err := pipeline.FetchTables(ctx, c.home.Parts, r.Reads())
	if err != nil {
		return nil, err
	}
	defer release()
	r.Paths = paths
	r.Tell = func(ctx context.Context, db engine.Querier, found []state.CheckResult,
		failing func(string, int) string) error {
		for _, res := range found {
			one := CheckFound{CheckResult: res}
			one.NodeKey = key
			if b, ok := before[res.Name]; ok {
				one.Before = &b
			}
			if res.Kept > 0 {
				if err := readFailing(ctx, db, failing(res.Name, c.opts.RowsMax), &one.Failing); err != nil {
					return fmt.Errorf("read the failing rows of check %s: %w", res.Name, err)
				}
			}
			out = append(out, one)
		}
		return nil
	}
	task, err := c.planner.RecheckTask(r)
	if err != nil {
		return nil, err
	}
	dir, err := c.home.Scratch()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the instance's own
	b := c.planner.Budget
	_, err = engine.Execute(ctx, engine.InstanceConfig{MemoryBytes: b.SlotEngineBytes * int64(b.Slots),
		Threads: b.Cores, SpillDir: filepath.Join(dir, "spill"), SpillBytes: b.SpillBytes}, nil, task)
	return out, err
}

// readFailing reads rows of the types of scripts, which the driver gives as they are.
func readFailing(ctx context.Context, db engine.Querier, query string, into *QueryResult) error {
	return (&reader{in: db, to: &resultSink{res: into}, out: &Executed{}}).read(ctx, query)
}

// before returns the results that the run's own checks of a node had, by their names.
func (c *checker) before(ctx context.Context, key state.NodeKey) (map[string]state.CheckResult, error) {
	node, err := c.home.State.Node(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	results, err := Checks(ctx, c.home.State, []state.Node{node})
	if err != nil {
		return nil, err
	}
	out := map[string]state.CheckResult{}
	for _, r := range results {
		out[r.Name] = r
	}
	return out, nil
}

// wayOut adds to a table that the run has not left which run has it, or which nodes can be checked without.
func (c *checker) wayOut(ctx context.Context, n *script.Node, nodes []*script.Node, err error) error {
	var none *pipeline.NotLeftError
	if !errors.As(err, &none) {
		return err
	}
	f := fault.Of(err)
	runs, _, err := c.home.State.Runs(ctx, c.opts.Run.Workspace, state.Page{Limit: queryRunsMax})
	if err != nil {
		return fmt.Errorf("look for a run that has table %s: %w", none.Table, err)
	}
	for _, r := range runs {
		has := slices.ContainsFunc(r.Nodes, func(b state.NodeBrief) bool {
			return b.Table == none.Table &&
				b.Status == state.Succeeded
		})
		if has && r.RunKey != c.opts.Run.RunKey {
			f.Hint = fmt.Sprintf("run %d has it: {{set run=%d}} checks the tables of that run", r.Run, r.Run)
			break
		}
	}
	if f.Hint == "" {
		f.Hint = "run the script first"
	}
	if others := c.checkable(ctx, n, nodes); others != "" {
		f.Hint += "; " + action.Setting("node", others) + " checks what is there"
	}
	return f
}

// checkable names those of the nodes whose tables are there.
func (c *checker) checkable(ctx context.Context, without *script.Node, nodes []*script.Node) (names string) {
	for _, n := range nodes {
		if n == without {
			continue
		}
		if _, _, err := c.left.Checked(ctx, n); err == nil {
			if names != "" {
				names += ","
			}
			names += n.Name
		}
	}
	return names
}
