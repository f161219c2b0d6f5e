package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

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
			Hint: "leave {{set from}} out, or say with {{set start}} which nodes to run"}
	}
	for _, run := range r.opts.From {
		key := state.RunKey{Workspace: r.opts.Workspace, Run: run}
		nodes, err := r.Instance.State.Nodes(ctx, key)
		if err != nil {
			if errors.Is(err, state.ErrNotFound) {
				return instance.RunNotFound(key)
			}
			return fmt.Errorf("read the nodes of run %d: %w", run, err)
		}
		nodes = slices.DeleteFunc(nodes, func(n state.Node) bool {
			return n.Table == "" ||
				!slices.Contains(wanted, n.Table)
		})
		for _, n := range nodes {
			if n.Status == state.Invalidated {
				return pipeline.Voided(ctx, r.Instance.State, n)
			}
		}
		if !slices.ContainsFunc(nodes, func(n state.Node) bool { return n.Status == state.Succeeded }) {
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("run %d has completed none of the tables that are read from other runs: %s", run,
					strings.Join(wanted, ", ")),
				Hint: "{{do nodes run=N}} shows what a run has completed"}
		}
	}
	return nil
}
