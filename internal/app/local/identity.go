package local

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// identity says which script a run is of. Scripts that have a name are the
// script of that name, wherever they lie. The others are known by their path:
// seen from the directory that the state directory is in, so that a folder can
// be moved together with its state, and without symbolic links.
func (h *Instance) identity(name, path string) string {
	switch {
	case name != "":
		return "name " + name
	case address.Remote(path):
		return "path " + address.Redact(path)
	}
	if plain, err := address.Local(path); err == nil {
		path = plain
	}
	return "path " + h.relative(resolved(path))
}

// identityOf is which script a recorded run is of. Runs of earlier versions
// have only the path that was typed, mostly beside the state directory.
func (h *Instance) identityOf(r state.Run) string {
	switch {
	case r.Script != "":
		return r.Script
	case address.Remote(r.ScriptPath):
		return "path " + r.ScriptPath
	case filepath.IsAbs(r.ScriptPath):
		return "path " + h.relative(resolved(r.ScriptPath))
	}
	return "path " + h.relative(resolved(filepath.Join(h.beside, r.ScriptPath)))
}

// relative is how a path is seen from beside the state directory, if it is below.
func (h *Instance) relative(path string) string {
	if h.beside == "" {
		return filepath.ToSlash(path)
	}
	rel, err := filepath.Rel(resolved(h.beside), path)
	if err != nil || !filepath.IsLocal(rel) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// resolved is a path without symbolic links, as far as there is something at it.
func resolved(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	if up := filepath.Dir(abs); up != abs {
		return filepath.Join(resolved(up), filepath.Base(abs))
	}
	return abs
}

// checkSources refuses, before a run exists, runs to read tables from that are
// not there or have none of the tables that the nodes read of other runs.
func (r *runner) checkSources(ctx context.Context, nodes []*script.Node) error {
	if len(r.opts.From) == 0 {
		return nil
	}
	var wanted []string
	for _, n := range nodes {
		for _, source := range n.Sources(r.script) {
			if !slices.Contains(nodes, source) && !slices.Contains(wanted, source.Table.Name) {
				wanted = append(wanted, source.Table.Name)
			}
		}
	}
	if len(wanted) == 0 {
		return &fault.Error{Kind: fault.Script, Message: "no node of this run reads a table of another run",
			Hint: "leave --from out, or say with --start which nodes to run"}
	}
	for _, run := range r.opts.From {
		key := state.RunKey{Workspace: r.opts.Workspace, Run: run}
		nodes, err := r.home.State.Nodes(ctx, key)
		if err != nil {
			if errors.Is(err, state.ErrNotFound) {
				return noRun(key)
			}
			return fmt.Errorf("read the nodes of run %d: %w", run, err)
		}
		nodes = slices.DeleteFunc(nodes, func(n state.Node) bool {
			return n.Table == "" ||
				!slices.Contains(wanted, n.Table)
		})
		for _, n := range nodes {
			if n.Status == state.Invalidated {
				return pipeline.Voided(ctx, r.home.State, n)
			}
		}
		if !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status == state.Succeeded }) {
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("run %d has completed none of the tables that are read from other runs: %s", run,
					strings.Join(wanted, ", ")),
				Hint: "`thalweg nodes --run N` shows what a run has completed"}
		}
	}
	return nil
}

// ForeignTable is a table that a run has read and not written.
type ForeignTable struct {
	Table  string
	Source state.NodeKey // what wrote it
	Script string        // the script of that run, for people
}

// foreignTables lists what the nodes of a run have read of other runs.
func (h *Instance) foreignTables(ctx context.Context, key state.RunKey, nodes []state.Node) ([]ForeignTable, error) {
	var out []ForeignTable
	seen := map[ForeignTable]bool{}
	taken := map[state.NodeKey]bool{} // by nodes of the run itself
	for _, n := range nodes {
		if n.ReusedFrom != nil {
			taken[*n.ReusedFrom] = true
		}
	}
	for _, n := range nodes {
		np, ok, err := planOf(ctx, h.State, n)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for table, source := range np.Sources {
			f := ForeignTable{Table: table, Source: source.NodeKey}
			if source.RunKey == key || taken[source.NodeKey] || seen[f] {
				continue
			}
			seen[f] = true
			run, err := h.State.Run(ctx, source.RunKey)
			if err != nil {
				return nil, fmt.Errorf("read run %d: %w", source.Run, err)
			}
			f.Script = pipeline.ScriptName(h.identityOf(run))
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b ForeignTable) int {
		return strings.Compare(fmt.Sprintf("%s %020d", a.Table, a.Source.Run), fmt.Sprintf("%s %020d", b.Table, b.Source.Run))
	})
	return out, nil
}

// planOf reads a node's plan; ok is false if it has none.
func planOf(ctx context.Context, store state.Store, n state.Node) (np plan.NodePlan, ok bool, err error) {
	if n.PlanDigest == "" {
		return np, false, nil
	}
	full, err := store.Node(ctx, n.NodeKey)
	if err != nil {
		return np, false, fmt.Errorf("read node %s of run %d: %w", n.Name, n.Run, err)
	}
	if full.Plan == nil { // it was withdrawn meanwhile
		return np, false, nil
	}
	np, err = plan.DecodeNodePlan(full.Plan)
	return np, err == nil, err
}

func noRun(key state.RunKey) error {
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("workspace %s has no run %d", key.Workspace, key.Run),
		Hint: "`thalweg runs` lists them"}
}
