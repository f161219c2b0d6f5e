package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// ExplainBatch says what SQL a batch of a run executes, and by which plan.
func (s *Service) ExplainBatch(ctx context.Context, by caller.Caller, key state.BatchKey) (out view.BatchSQL,
	err error) {
	if s.Children != nil {
		return s.Children.ExplainBatch(ctx, by, key)
	}
	p := s.in(by, 0)
	leave, err := s.visit(ctx, &p.MemoryBytes, budget.MemoryBytesMin)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return ExplainBatch(ctx, s.Home, p, key)
}

// ExplainBatch says what SQL a batch of a run executes, and by which plan.
func ExplainBatch(ctx context.Context, home *instance.Instance, p runtime.Process, key state.BatchKey) (
	out view.BatchSQL, err error) {
	t, err := runtime.New(home, p)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	runs := runtime.TracedRuns{Tools: t, Jobs: map[state.RunKey]*pipeline.Pipeline{}}
	defer runs.Close()
	if key.NodeKey, err = holder(ctx, home, key.NodeKey); err != nil {
		return out, err
	}
	job, err := runs.Job(ctx, key.RunKey)
	if err != nil {
		return out, err
	}
	found, err := job.ExplainBatch(ctx, key)
	if err != nil {
		return out, err
	}
	names := strings.NewReplacer(found.Names...)
	text := func(s string) string { return p.Known.Text(names.Replace(s)) }
	out = view.BatchSQL{Run: key.Run, Node: key.Node, Batch: key.Batch, Setup: []string{}, Python: text(found.Python),
		SQL: text(found.Query), Plan: []view.PlanStep{}}
	for _, s := range found.Setup {
		out.Setup = append(out.Setup, text(s))
	}
	if found.Plan != nil {
		addStep(&out.Plan, *found.Plan, 0, text)
	}
	return out, nil
}

// holder returns the node whose batches a node's rows are of: another one, if they were taken over.
func holder(ctx context.Context, home *instance.Instance, key state.NodeKey) (state.NodeKey, error) {
	n, err := home.State.Node(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return key, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("run %d has no node %s", key.Run, key.Node), Hint: "{{do nodes}} lists them"}
	}
	if err != nil {
		return key, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	return HolderOf(n), nil
}

// addStep appends an operator of a plan, and those that it reads behind it.
func addStep(list *[]view.PlanStep, s engine.Step, depth int, text func(string) string) {
	step := view.PlanStep{Depth: depth, Operator: strings.TrimSpace(s.Name), Says: []string{}}
	for _, name := range slices.SortedFunc(maps.Keys(s.Info), cmp.Compare) {
		said := fmt.Sprint(s.Info[name])
		if list, is := s.Info[name].([]any); is {
			texts := make([]string, len(list))
			for i, one := range list {
				texts[i] = fmt.Sprint(one)
			}
			said = strings.Join(texts, ", ")
		}
		if said != "" {
			step.Says = append(step.Says, text(name+": "+said))
		}
	}
	*list = append(*list, step)
	for _, child := range s.Children {
		addStep(list, child, depth+1, text)
	}
}
