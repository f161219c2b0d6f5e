package runner

import (
	"context"

	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/io/files"
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
// Inputs are looked at from a directory, "" being the working directory, as far as a policy allows.
func Explain(ctx context.Context, s *script.Script, opts Options) (Explanation, error) {
	var out Explanation
	var err error
	if out.Budget, err = runtime.ShareOf(opts.MemoryBytes, opts.Cores, runtime.NeedsPython(s.Nodes)); err != nil {
		return out, err
	}
	planner := plan.Planner{Script: s, Budget: out.Budget, Fuse: opts.Ephemeral,
		Places: files.Places{Dir: opts.Dir, Policy: opts.Policy}}
	out.Nodes, err = planner.Preview(ctx)
	return out, err
}
