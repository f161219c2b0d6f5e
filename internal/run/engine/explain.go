package engine

import (
	"context"
	"errors"
)

// Statements are the SQL of a task.
type Statements struct {
	Setup  []string // run before everything else
	Python string   // SELECT of what functions of Python read; "": there are none
	Query  string   // of the rows that are written
}

// StatementsOf returns the SQL of a task.
func StatementsOf(t Task) Statements {
	out := Statements{Setup: t.Setup, Query: t.Query}
	if t.Python != nil {
		out.Python = t.Python.Source
	}
	if t.Output.File != nil {
		out.Query = t.Output.File.Copy.Query
	}
	return out
}

// Planned returns the statement that Explain explains: that of Python where there is one, because the query reads what
// functions have returned.
func (s Statements) Planned() string {
	if s.Python != "" {
		return s.Python
	}
	return s.Query
}

// Explain says by which plan DuckDB would execute a task: see Planned. Nothing is computed or written.
func Explain(ctx context.Context, cfg InstanceConfig, task Task) (out Step, err error) {
	if task.Prepare != nil {
		if err := task.Prepare(ctx); err != nil {
			return out, classify(ctx, err, task)
		}
	}
	cfg.Paths = append(append([]string{}, cfg.Paths...), task.Paths...)
	in, err := OpenInstance(ctx, cfg)
	if err != nil {
		return out, classify(ctx, err, task)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, stmt := range task.Setup {
		if err := in.Exec(ctx, stmt); err != nil {
			return out, classify(ctx, err, task)
		}
	}
	if out, err = PlanOf(ctx, in, StatementsOf(task).Planned()); err != nil {
		return out, classify(ctx, err, task)
	}
	return out, nil
}
