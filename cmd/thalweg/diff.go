package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

type diffCmd struct {
	RunA      runRef   `arg:"" name:"run-a" help:"Run: its number, last, or last~1 for the one before it."`
	RunB      runRef   `arg:"" name:"run-b" help:"Run to compare with it."`
	Table     string   `arg:"" help:"Table of both runs; also NAME__failed or NAME__bad."`
	Key       []string `help:"Fields that identify a row; default: a key that both tables have." placeholder:"FIELD,…"`
	ByRows    bool     `help:"Compare rows as they are, without a key." xor:"key"`
	Columns   []string `help:"Compare only these columns, and those of the key." placeholder:"COLUMN,…"`
	Tolerance float64  `help:"Take floats for equal that differ by no more, absolutely or relative to the larger one."`
	Limit     int      `help:"Rows of each kind to show." default:"10"`
	Memory    string   `help:"Memory for the comparison." default:"2GB" placeholder:"SIZE"`
	JSON      bool     `name:"json" help:"Print a JSON object."`
	stateFlags
}

// exitDiffers is the exit code when two tables differ.
const exitDiffers = 1

func (c *diffCmd) Run(ctx context.Context, a *console) error {
	bytes, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	if c.ByRows && len(c.Key) > 0 {
		return &fault.Error{Kind: fault.Script, Message: "--key and --by-rows exclude each other",
			Hint: "--key finds the rows of both sides by fields, --by-rows by all of their values: give one of them"}
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	var keys [2]view.RunKey
	for i, ref := range []runRef{c.RunA, c.RunB} {
		r, err := ref.find(ctx, home, c.Workspace)
		if err != nil {
			return err
		}
		keys[i] = r.RunKey
	}
	ctx, end := a.showProgress(ctx)
	defer end()
	result, err := home.Operations.Diff(ctx, a.caller(), keys, app.DiffOptions{Table: c.Table, Key: c.Key, ByRows: c.ByRows,
		Columns: c.Columns, Tolerance: c.Tolerance, RowsMax: c.Limit, MemoryBytes: bytes})
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.stdout, result.View())
	} else {
		diffReport{result}.print(a)
	}
	if err == nil && !result.Equal() {
		err = errReported{exitDiffers}
	}
	return err
}

// diffReport prints the result of a comparison for people.
type diffReport struct{ app.Comparison }

func (r diffReport) print(a *console) {
	out := a.data
	how := "rows as they are"
	if len(r.Key) > 0 {
		how = "rows by " + strings.Join(r.Key, ", ")
		if r.KeyOf != "" {
			how += " (" + r.KeyOf + ")"
		}
	}
	if r.Equal() {
		fmt.Fprintf(out, "table %s is the same in %s and %s: %s; compared %s\n", r.Table, r.Names[0], r.Names[1],
			countRows(r.RowsA), how)
		return
	}
	fmt.Fprintf(out, "table %s, from %s to %s; compared %s\n", r.Table, r.Names[0], r.Names[1], how)
	for _, d := range r.Schema {
		switch {
		case d.TypeA == "":
			fmt.Fprintf(out, "column %s: only in %s (%s)\n", d.Column, r.Names[1], d.TypeB)
		case d.TypeB == "":
			fmt.Fprintf(out, "column %s: only in %s (%s)\n", d.Column, r.Names[0], d.TypeA)
		default:
			fmt.Fprintf(out, "column %s: %s in %s, %s in %s; its values are not compared\n", d.Column,
				d.TypeA, r.Names[0], d.TypeB, r.Names[1])
		}
	}
	if len(r.Columns) == 0 {
		fmt.Fprintf(out, "rows: %s and %s; nothing of them can be compared\n", count(r.RowsA), count(r.RowsB))
		return
	}
	r.printCounts(a)
	r.printChanged(a)
	r.printOneSided(a, "removed: only in "+r.Names[0], r.SampleRemoved, r.Removed,
		func(d view.Difference) []any { return d.A })
	r.printOneSided(a, "added: only in "+r.Names[1], r.SampleAdded, r.Added,
		func(d view.Difference) []any { return d.B })
}

func (r diffReport) printCounts(a *console) {
	fmt.Fprintln(a.data)
	t := a.newTable()
	t.out = a.data
	rightAligned(t, 2)
	for i, n := range []int64{r.RowsA, r.RowsB} {
		t.AppendRow([]any{"rows in " + r.Names[i], count(n)})
	}
	t.AppendRow([]any{"removed", count(r.Removed)})
	t.AppendRow([]any{"added", count(r.Added)})
	if len(r.Key) > 0 {
		t.AppendRow([]any{"changed", count(r.Changed)})
	}
	for _, c := range r.ChangedIn {
		t.AppendRow([]any{"  in " + c.Column, count(c.Rows)})
	}
	t.Render()
	if r.RepeatedA+r.RepeatedB > 0 {
		fmt.Fprintf(a.data, "keys that occur more than once: %s in %s, %s in %s; their equal rows go together first, "+
			"and where one is left on either side it has changed\n",
			count(r.RepeatedA), r.Names[0], count(r.RepeatedB), r.Names[1])
	}
}

// printChanged lists what has changed, a line for each column of a row.
func (r diffReport) printChanged(a *console) {
	if len(r.SampleChanged) == 0 {
		return
	}
	fmt.Fprintf(a.data, "\nchanged%s\n", ofAll(int64(len(r.SampleChanged)), r.Changed))
	headers := make([]any, 0, len(r.Key)+3)
	for _, k := range r.Key {
		headers = append(headers, k)
	}
	t := a.newTable(append(headers, "column", r.Names[0], r.Names[1])...)
	t.out = a.data
	for _, d := range r.SampleChanged {
		key := make([]any, len(r.Key))
		for i := range key {
			key[i] = diffCell(d.A[i])
		}
		for _, i := range d.Changed {
			old, now := changedCells(d.A[i], d.B[i])
			t.AppendRow(append(slices.Clone(key), r.Columns[i], old, now))
			key = slices.Repeat([]any{""}, len(key)) // said once
		}
	}
	t.Render()
}

// printOneSided lists rows that only one table has.
func (r diffReport) printOneSided(a *console, what string, sample []view.Difference, all int64,
	of func(view.Difference) []any) {
	if len(sample) == 0 {
		return
	}
	var shown int64
	several := false
	for _, d := range sample {
		shown += d.Times
		several = several || d.Times > 1
	}
	fmt.Fprintf(a.data, "\n%s%s\n", what, ofAll(shown, all))
	headers := make([]any, 0, len(r.Columns)+1)
	for _, name := range r.Columns {
		headers = append(headers, name)
	}
	if several {
		headers = append([]any{"times"}, headers...)
	}
	t := a.newTable(headers...)
	t.out, t.sheet = a.data, true
	for _, d := range sample {
		var cells []any
		if several {
			cells = append(cells, count(d.Times))
		}
		for _, v := range of(d) {
			cells = append(cells, diffCell(v))
		}
		t.AppendRow(cells)
	}
	t.Render()
}

// ofAll says how much of something is shown.
func ofAll(shown, all int64) string {
	if shown == all {
		return ""
	}
	return fmt.Sprintf(" (%s of %s)", count(shown), count(all))
}

// diffCell is a value in a table on the screen.
func diffCell(v any) string {
	if v == "" {
		return `""` // an empty cell says nothing
	}
	return shorten(shownCell(app.Cell(v)))
}

// changedCells are two values that differ, so that people see it: texts from a
// little before where they do, and in quotes with escapes where they look alike.
func changedCells(old, now any) (string, string) {
	a, ok := old.(string)
	b, both := now.(string)
	if !ok || !both {
		return diffCell(old), diffCell(now)
	}
	if visible(a) == visible(b) {
		a, b = strconv.QuoteToASCII(a), strconv.QuoteToASCII(b)
	}
	const before, most = 20, 60
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	if max(len(x), len(y)) > most && same > before {
		a, b = "…"+string(x[same-before:]), "…"+string(y[same-before:])
	}
	return diffCell(a), diffCell(b)
}

// visible is of a text what nobody can take for something else.
func visible(text string) string {
	return strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' {
			return -1
		}
		return c
	}, text)
}
