package runtime

import (
	"context"
	"fmt"

	"thalweg/internal/app/outputs"
	"thalweg/internal/app/sources"
	"thalweg/internal/lang/script"
)

// Answered gives what reads a run's script again with the answers that were
// given at its gates; nil where it was not read from anywhere.
func (t *Runtime) Answered(j JobSpec) func(context.Context, map[string]string) (*script.Script, error) {
	if j.Sources == nil {
		return nil
	}
	return func(ctx context.Context, answers map[string]string) (*script.Script, error) {
		src := *j.Sources
		src.Answers = answers
		s, diags := script.Load(ctx, src)
		if diags.HasErrors() {
			return nil, &sources.InvalidScriptError{Diagnostics: diags}
		}
		if err := j.Script.Differs(s); err != nil {
			return nil, err
		}
		nodes, err := t.Store.Nodes(ctx, j.Run)
		if err != nil {
			return nil, fmt.Errorf("read the nodes of run %d: %w", j.Run.Run, err)
		}
		var mine []*script.Node
		for _, n := range nodes {
			if node := s.Node(n.Name); node != nil {
				mine = append(mine, node)
			}
		}
		return s, outputs.CheckFiles(ctx, t.Instance, t.Process.Remote.Within(j.Policy), s, mine)
	}
}
