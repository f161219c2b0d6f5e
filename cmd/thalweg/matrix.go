package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// sweep runs the script over values.
func (c *runCmd) sweep(ctx context.Context, a *console, place *workplace, opts app.RunOptions) error {
	if c.Resume || c.RunNumber != 0 {
		return &fault.Error{Kind: fault.Script, Message: "--matrix goes on with what is missing or failed by itself",
			Hint: "leave --resume out"}
	}
	if c.AtOnce < 1 {
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--matrix-concurrency %d is no number of cells",
			c.AtOnce), Hint: "give 1 or more"}
	}
	if err := app.CheckAxes(c.Matrix); err != nil {
		return err
	}
	opts.Reuse = true // --fresh is of the cells: each begins anew, and computes everything
	if c.Fresh {
		opts.Reuse = false
	}
	if place.home.Cluster() == nil { // else its workers tell
		told, err := place.home.Tell(ctx, place.openLineage)
		if err != nil {
			return err
		}
		defer told.Close()
		told.Wrap(ctx, &opts)
	}
	began := time.Now()
	cells, err := place.home.RunMatrix(ctx, a.caller(), app.MatrixOptions{RunOptions: place.equip(a, opts),
		Dir: c.State, Axes: c.Matrix, Concurrency: c.AtOnce, FailFast: c.FailFast, Again: c.Fresh,
		Show: func(s app.CellState) { c.showCell(a, s) }})
	if len(cells) == 0 {
		return err
	}
	return c.swept(ctx, a, cells, time.Since(began), err)
}

// showCell tells of a cell that is over.
func (c *runCmd) showCell(a *console, s app.CellState) {
	switch {
	case c.JSON:
		row := s.View()
		row.Event = "cell_finished"
		_ = printJSON(a.stdout, row) // nobody is left to tell when this fails
	case s.Kept:
		fmt.Fprintf(a.stderr, "%s: run %d is %s\n", s.Cell, s.Run, s.Status)
	case s.Run == 0:
		fmt.Fprintf(a.stderr, "%s: %s\n", s.Cell, s.Status)
	default:
		fmt.Fprintf(a.stderr, "%s: run %d is %s after %s\n", s.Cell, s.Run, s.Status, span(s.Elapsed))
	}
}

// swept prints how all cells are, and gives the command's result.
func (c *runCmd) swept(ctx context.Context, a *console, cells []app.CellState, took time.Duration, err error) error {
	counts := map[string]int{}
	var first *app.CellState
	waits, stopped := false, false
	for i, s := range cells {
		counts[string(s.Status)]++
		if s.Status == view.FailedRun && first == nil {
			first = &cells[i]
		}
		waits = waits || s.Status == view.PausedRun || s.Status == view.Waiting || s.Status == view.Running
		stopped = stopped || s.Status == view.StoppedRun
	}
	if c.JSON {
		if perr := printJSON(a.stdout, view.MatrixFinished{Event: "matrix_finished", Matrix: cells[0].Matrix,
			Cells: counts}); perr != nil {
			return perr
		}
	} else {
		rows := make([]view.Cell, len(cells))
		for i, s := range cells {
			rows[i] = s.View()
		}
		printCells(a, rows)
		fmt.Fprintf(a.stdout, "\nmatrix %s: %d of %s complete, in %s\n", cells[0].Matrix, counts[string(view.Complete)],
			counted(len(cells), "cell", "cells"), span(took))
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		fmt.Fprintln(a.stderr, "the same command goes on with the cells that are not complete")
		return errReported{exitInterrupted}
	case first != nil:
		return a.cellFailed(*first)
	case waits:
		return errReported{exitWaiting}
	case stopped:
		return errReported{exitStopped}
	}
	return nil
}

// cellFailed tells of the first cell that failed, and gives the command's result.
func (a *console) cellFailed(s app.CellState) error {
	const next = "when the cause is gone, the same command does again what is missing or failed"
	code := exitCode(s.Failure.Kind)
	if a.json {
		failure := *s.Failure
		failure.Message = s.Cell + ": " + failure.Message
		a.printTwin(view.FailedFrom(failure, code, next))
		return errReported{code}
	}
	a.printFailure(s.Cell+": "+s.Failure.Text(), s.Failure.Place, s.Failure.Hint, s.Failure.Detail)
	fmt.Fprintln(a.stderr, next)
	return errReported{code}
}

func printCells(a *console, cells []view.Cell) {
	t := a.newTable("cell", "run", "status", "tries", "took", "what happened").leaves("tries", "took")
	rightAligned(t, 2, 4, 5)
	for _, s := range cells {
		run, what := "-", ""
		if s.Run > 0 {
			run = fmt.Sprint(s.Run)
		}
		if s.Failure != nil {
			what = s.Failure.Text()
		}
		t.AppendRow([]any{s.Cell, run, runStatusText(a, string(s.Status)), s.Try,
			span(time.Duration(s.ElapsedMS) * time.Millisecond), what})
	}
	t.Render()
}

// matrixCmd lists matrices, or the cells of one.
type matrixCmd struct {
	ID   string `arg:"" optional:"" help:"Matrix: its id, or last; default: all are listed."`
	JSON bool   `name:"json" help:"Print a JSON array."`
	stateFlags
}

func (c *matrixCmd) Run(ctx context.Context, a *console) error {
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	all, err := home.Operations.Matrices(ctx, c.Workspace)
	if err != nil {
		return err
	}
	if c.ID == "" {
		return c.list(a, all)
	}
	one, err := c.pick(all)
	if err != nil {
		return err
	}
	cells, err := home.Operations.MatrixCells(ctx, c.Workspace, one.Matrix)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return printJSON(a.stdout, cells)
	}
	fmt.Fprintf(a.stdout, "matrix %s of %s: %s\n\n", one.Matrix, one.Script, axesText(one.Axes))
	printCells(a, cells)
	return nil
}

func (c *matrixCmd) pick(all []view.Matrix) (view.Matrix, error) {
	var ids []string
	for _, m := range all {
		ids = append(ids, m.Matrix)
		if m.Matrix == c.ID {
			return m, nil
		}
	}
	if c.ID == "last" && len(all) > 0 {
		return all[len(all)-1], nil
	}
	f := fault.New(fault.Script, "workspace %s has no matrix %s", c.Workspace, c.ID)
	if f.Code = fault.NotFound; f.Suggest(c.ID, ids).Hint == "" {
		f.Hint = "thalweg matrix lists them"
	}
	return view.Matrix{}, f
}

func (c *matrixCmd) list(a *console, all []view.Matrix) error {
	if c.JSON {
		return printJSON(a.stdout, all)
	}
	t := a.newTable("matrix", "begun", "script", "cells")
	for _, m := range all {
		t.AppendRow([]any{m.Matrix, m.Begun.Local().Format(time.DateTime), m.Script, axesText(m.Axes)})
	}
	t.Render()
	return nil
}

// axesText says which values a matrix has, the first and the last of many.
func axesText(axes []app.Axis) string {
	const shown = 4
	texts := make([]string, len(axes))
	for i, axis := range axes {
		values := strings.Join(axis.Values, ",")
		if n := len(axis.Values); n > shown {
			values = fmt.Sprintf("%s … %s (%d values)", axis.Values[0], axis.Values[n-1], n)
		}
		texts[i] = axis.Name + "=" + values
	}
	return strings.Join(texts, " ")
}
