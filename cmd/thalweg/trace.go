package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// traceCmd says what rows are made of.
type traceCmd struct {
	Name   string `arg:"" name:"file-or-table" help:"An output file of a run, or a table: NAME, or runN.NAME of run N."`
	Where  string `help:"Which rows: an expression of DuckDB's SQL over the columns; default: all." placeholder:"EXPR"`
	Limit  int    `help:"Rows to trace at most." default:"10" placeholder:"N"`
	Sample int    `help:"Of many rows that one is made of, how many are shown and traced." default:"10" placeholder:"N"`
	Memory string `help:"Memory to use." default:"2GB" placeholder:"SIZE"`
	Python string `help:"Python interpreter, for formulas that leave rows out." default:"python3" env:"THALWEG_PYTHON"`
	JSON   bool   `name:"json" help:"Print JSON."`
	runFlag
	remoteFlags
	stateFlags
}

func (c *traceCmd) Run(ctx context.Context, a *console) error {
	if c.Limit < 1 || c.Sample < 1 {
		return &fault.Error{Kind: fault.Script, Message: "--limit and --sample are numbers from 1"}
	}
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	home, err := c.openHome(ctx, a, false, func(p *app.Process) { p.Remote = client })
	if err != nil {
		return err
	}
	defer home.Close()
	o := app.TraceOptions{Workspace: c.Workspace, Name: c.Name, Run: c.RunFlag(),
		Process: app.Process{MemoryBytes: memory, Interpreter: c.Python}}
	o.Trace.Where, o.Trace.Limit, o.Trace.Sample = c.Where, c.Limit, c.Sample
	ctx, end := a.showProgress(ctx)
	defer end()
	tree, err := home.Operations.Trace(ctx, a.caller(), o)
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(a.data, tree)
	} else {
		printTrace(a, tree)
	}
	if err != nil {
		return err
	}
	if more := tree.Matches - int64(len(tree.Roots)); more > 0 {
		fmt.Fprintf(a.stderr, "%d rows match; the first %s traced: narrow --where, or give --limit %d\n", tree.Matches,
			counted(len(tree.Roots), "is", "are"), tree.Matches)
		return errReported{exitUsers}
	}
	return nil
}

// RunFlag is the run that was named; 0: none.
func (c *traceCmd) RunFlag() int64 { return c.runFlag.Run }

// printTrace draws the tree.
func printTrace(a *console, tree *view.Tree) {
	p := tracePrinter{a: a, tree: tree, shown: map[int]bool{}}
	fmt.Fprintf(a.data, "%s of run %d: %s\n", plain(tree.Target), tree.Run, rowsText(tree.Matches))
	for i, id := range tree.Roots {
		p.row(id, "", i == len(tree.Roots)-1)
	}
}

// tracePrinter draws each row's way once.
type tracePrinter struct {
	a     *console
	tree  *view.Tree
	shown map[int]bool
}

// branches of a tree.
const (
	branch, branchEnd = "├─ ", "└─ "
	trunk, trunkEnd   = "│  ", "   "
)

func (p *tracePrinter) row(id int, indent string, last bool) {
	r := p.tree.Rows[id]
	mark, below := branch, trunk
	if last {
		mark, below = branchEnd, trunkEnd
	}
	text := plain(rowText(r, p.tree.Run))
	if p.shown[id] && len(r.From) > 0 {
		fmt.Fprintf(p.a.data, "%s%s%s (see above)\n", indent, mark, text)
		return
	}
	p.shown[id] = true
	fmt.Fprintf(p.a.data, "%s%s%s\n", indent, mark, text)
	indent += below
	if r.Note != "" {
		fmt.Fprintf(p.a.data, "%s%s\n", indent, p.a.paint(plain(r.Note), yellow))
	}
	for i, o := range r.From {
		lastOrigin := i == len(r.From)-1
		if o.Count == 1 && (o.Role == view.RoleRow || o.Role == view.RoleLeft) {
			p.row(o.Sample[0], indent, lastOrigin)
			continue
		}
		mark, below := branch, trunk
		if lastOrigin {
			mark, below = branchEnd, trunkEnd
		}
		fmt.Fprintf(p.a.data, "%s%s%s\n", indent, mark, plain(originText(o)))
		for k, id := range o.Sample {
			p.row(id, indent+below, k == len(o.Sample)-1)
		}
	}
}

// rowText is a row in one line; tables of other runs are called as in queries.
func rowText(r *view.Row, run int64) string {
	var b strings.Builder
	table := r.Table
	if r.Run != run {
		table = fmt.Sprintf("run%d.%s", r.Run, table)
	}
	switch {
	case r.Line > 0:
		fmt.Fprintf(&b, "%s:%d", r.File, r.Line)
	case r.File != "":
		fmt.Fprintf(&b, "%s row %d", r.File, r.Row)
	case r.Row > 0:
		fmt.Fprintf(&b, "%s row %d (%s %s)", table, r.Row, r.Type, r.Node)
	default:
		fmt.Fprintf(&b, "%s (%s %s)", table, r.Type, r.Node)
	}
	if r.Text != "" {
		b.WriteString("  " + shorten(r.Text))
	}
	cells := make([]string, len(r.Values))
	for i, v := range r.Values {
		cells[i] = v.Name + "=" + cellText(v)
	}
	if len(cells) > 0 {
		b.WriteString("  " + shortenTo(strings.Join(cells, " "), rowRunesMax))
	}
	return b.String()
}

// rowRunesMax is the most characters of a row's values that are shown.
const rowRunesMax = 160

func cellText(v view.Value) string {
	switch {
	case v.Text == nil:
		return "NULL"
	case v.Bare:
		return *v.Text
	}
	return fmt.Sprintf("%q", shorten(*v.Text))
}

// originText says what rows are to the one that is made of them.
func originText(o view.Origin) string {
	text := map[view.Role]string{
		view.RoleRow: "made of %s of %s", view.RoleLeft: "made of %s of %s", view.RoleRight: "%s of %s that it met",
		view.RoleGroup: "made of a group: %s of %s, of any of which it may be made",
		view.RoleSame:  "%s of %s with the same key; the first was kept",
		view.RoleBatch: "a function got %s of %s together: it may be made of any",
		view.RoleQuery: "the query has put together %s of %s", view.RoleAll: "it cannot be told which: all %s of %s",
	}[o.Role]
	from := "table " + o.Table
	if o.File != "" {
		from = o.File
	}
	text = fmt.Sprintf(text, rowsText(o.Count), from)
	if more := o.Count - int64(len(o.Sample)); more > 0 {
		text += fmt.Sprintf("; the first %d", len(o.Sample))
	}
	return text
}

func rowsText(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return count(n) + " rows"
}
