package runner

import (
	"context"

	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
)

// Explanation describes a run of all nodes of a script before it begins: its budget and the plan of
// each node.
type Explanation struct {
	Budget budget.Budget
	Nodes  []plan.Preview // in the order in which they could run
}

// Explain plans all nodes of a script without running any, within a budget as
// for Options: 0 is the machine's. Nothing is written.
// With ephemeral, tables that can be are not stored.
func Explain(ctx context.Context, s *script.Script, memoryBytes int64, cores int, ephemeral bool) (Explanation, error) {
	var out Explanation
	var err error
	if out.Budget, err = runtime.ShareOf(memoryBytes, cores, runtime.NeedsPython(s.Nodes)); err != nil {
		return out, err
	}
	planner := plan.Planner{Script: s, Budget: out.Budget, Fuse: ephemeral}
	out.Nodes, err = planner.Preview(ctx)
	return out, err
}
