package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// ForeignTable is a table that a run has read and not written.
type ForeignTable struct {
	Table  string
	Source state.NodeKey // what wrote it
	Script string        // the script of that run, for people
}

// ForeignTables lists what the nodes of a run have read of other runs.
func ForeignTables(ctx context.Context, h *instance.Instance, key state.RunKey, nodes []state.Node) ([]ForeignTable,
	error) {
	var out []ForeignTable
	seen := map[ForeignTable]bool{}
	taken := map[state.NodeKey]bool{} // by nodes of the run itself
	for _, n := range nodes {
		if n.ReusedFrom != nil {
			taken[*n.ReusedFrom] = true
		}
	}
	for _, n := range nodes {
		np, ok, err := instance.PlanOf(ctx, h.State, n)
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
			f.Script = pipeline.ScriptName(h.IdentityOf(run))
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b ForeignTable) int {
		return strings.Compare(fmt.Sprintf("%s %020d", a.Table, a.Source.Run),
			fmt.Sprintf("%s %020d", b.Table, b.Source.Run))
	})
	return out, nil
}
