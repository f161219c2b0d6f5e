package instance

import (
	"context"
	"fmt"
	"path/filepath"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// Identity says which script a run is of. Scripts that have a name are the
// script of that name, wherever they lie. The others are known by their path:
// seen from the directory that the state directory is in, so that a folder can
// be moved together with its state, and without symbolic links.
func (h *Instance) Identity(name, path string) string {
	switch {
	case name != "":
		return "name " + name
	case address.Remote(path):
		return "path " + address.Redact(path)
	}
	if plain, err := address.Local(path); err == nil {
		path = plain
	}
	return "path " + h.relative(address.Resolve(path))
}

// IdentityOf is which script a recorded run is of. Runs of earlier versions
// have only the path that was typed, mostly beside the state directory.
func (h *Instance) IdentityOf(r state.Run) string {
	switch {
	case r.Script != "":
		return r.Script
	case address.Remote(r.ScriptPath):
		return "path " + r.ScriptPath
	case filepath.IsAbs(r.ScriptPath):
		return "path " + h.relative(address.Resolve(r.ScriptPath))
	}
	return "path " + h.relative(address.Resolve(filepath.Join(h.BaseDir, r.ScriptPath)))
}

// relative returns a path relative to the directory of the state directory, or the whole path if it
// is not below.
func (h *Instance) relative(path string) string {
	if h.BaseDir == "" {
		return filepath.ToSlash(path)
	}
	rel, err := filepath.Rel(address.Resolve(h.BaseDir), path)
	if err != nil || !filepath.IsLocal(rel) {
		return filepath.ToSlash(path)
	}
	return filepath.ToSlash(rel)
}

// PlanOf reads a node's plan; ok is false if it has none.
func PlanOf(ctx context.Context, store state.Store, n state.Node) (np plan.NodePlan, ok bool, err error) {
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

func RunNotFound(key state.RunKey) error {
	return &fault.Error{Kind: fault.Script, Code: fault.NotFound,
		Message: fmt.Sprintf("workspace %s has no run %d", key.Workspace, key.Run),
		Hint:    "{{do runs}} lists them"}
}

// RunDropped refuses to go on with a run.
func RunDropped(run state.Run) error {
	return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
		Message: fmt.Sprintf("run %d was dropped by %s: %s", run.Run, run.Dropped.Actor, run.Dropped.Reason),
		Hint:    "a dropped run does not go on: start a new one"}
}
