package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type explainCmd struct {
	scriptFlags
	Node   string `help:"Only this node." placeholder:"NAME"`
	Memory string `help:"Memory to plan for, e.g. 4GB; default: as run." placeholder:"SIZE"`
	Cores  int    `help:"Cores to plan for; 0 or default: all."`
	Python string `help:"Python interpreter; default: as run." default:"python3" env:"THALWEG_PYTHON"`
	JSON   bool   `name:"json" help:"Print it as JSON."`

	Ephemeral bool `help:"Plan as run --ephemeral does."`
	stateFlags
}

func (c *explainCmd) Run(ctx context.Context, a *console) error {
	e, warnings, err := c.explained(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, e)
	}
	a.printDiagnostics(warnings)
	var b strings.Builder
	printBudget(&b, e.Budget)
	if e.Forecast != nil && e.Forecast.Elapsed != nil {
		fmt.Fprintf(&b, "\n%s\n", forecastText(*e.Forecast))
	}
	for _, n := range e.Nodes {
		explainedNode{n}.print(&b)
	}
	_, err = io.WriteString(a.stdout, b.String())
	return err
}

// explained plans the script, here or on the server. Warnings are of the script, for people.
func (c *explainCmd) explained(ctx context.Context, a *console) (out view.Explained, warnings view.Diagnostics,
	err error) {
	if a.server == "" {
		memory, err := parseSize(c.Memory)
		if err != nil {
			return out, nil, err
		}
		s, diags, err := c.valid(ctx, a)
		if err != nil {
			return out, nil, err
		}
		out, err = c.explain(ctx, a, s, memory)
		return out, diags.Warnings(), err
	}
	client, sent, err := c.throughServer(ctx, a)
	if err != nil {
		return out, nil, err
	}
	if out, err = client.Explain(ctx, c.Workspace, sent, c.Node, c.Ephemeral); err != nil || c.JSON {
		return out, nil, err
	}
	valid, err := client.Validate(ctx, c.Workspace, sent)
	return out, valid.Diagnostics.Warnings(), err
}

// explain plans the script; of the runs in the state directory it says nothing where there is none.
func (c *explainCmd) explain(ctx context.Context, a *console, s *app.Script,
	memory int64) (_ view.Explained, err error) {
	o := app.ExplainOptions{Node: c.Node, Ephemeral: c.Ephemeral, Path: c.Script, Workspace: c.Workspace}
	process := func(p *app.Process) {
		p.MemoryBytes, p.Cores, p.Interpreter, p.Logger = memory, c.Cores, c.Python, newLogger(a, false)
	}
	if _, err := os.Stat(filepath.Join(c.State, "state.db")); c.Cluster == "" && errors.Is(err, fs.ErrNotExist) {
		return app.Explain(ctx, a.process(process), s, o)
	}
	home, err := c.openHome(ctx, a, false, process)
	if err != nil {
		return view.Explained{}, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	return home.Explain(ctx, a.caller(), s, o)
}

// explainedNode is a node as people read it.
type explainedNode struct{ view.ExplainedNode }

func printBudget(w io.Writer, b view.Budget) {
	fmt.Fprintf(w, "memory %s: %s with %s for DuckDB each", size(b.TotalBytes), counted(b.Slots, "slot", "slots"),
		size(b.SlotEngineBytes))
	if b.Interpreters > 0 {
		fmt.Fprintf(w, ", %s with %s each", counted(b.Interpreters, "interpreter", "interpreters"),
			size(b.InterpreterBytes))
	}
	fmt.Fprintf(w, "\na batch reads up to %s; a right side up to %s is read whole by every batch of its lookup\n",
		size(b.BatchBytes), size(b.BroadcastBytes))
}

// shownMost bounds the sources that are listed.
const shownMost = 5

func (n explainedNode) print(w io.Writer) {
	manual := ""
	if n.Manual {
		manual = ", manual"
	}
	fmt.Fprintf(w, "\n%s (%s%s)\n", n.Node, n.Type, manual)
	shown := strings.Join(n.Sources[:min(len(n.Sources), shownMost)], ", ")
	if more := len(n.Sources) - shownMost; more > 0 {
		shown += fmt.Sprintf(" … %d more", more)
	}
	if shown != "" {
		fmt.Fprintf(w, "  reads    %s\n", shown)
	}
	switch {
	case n.ReusedFrom != nil:
		fmt.Fprintf(w, "  reuse    taken over from run %d\n", n.ReusedFrom.Run)
	case n.Computed != "" && n.ComputedIn == "":
		fmt.Fprintf(w, "  reuse    computed: %s\n", n.Computed)
	}
	if n.File != "" {
		fmt.Fprintf(w, "  writes   %s\n", n.File)
	} else {
		n.printLayout(w)
	}
	for _, gate := range n.Waits {
		fmt.Fprintf(w, "  waits    for approval %s\n", gate)
	}
	if n.Join != "" {
		fmt.Fprintf(w, "  join     %s\n", n.Join)
	}
	if n.Cut != "" {
		fmt.Fprintf(w, "  query    %s\n", n.Cut)
	}
	n.printBatches(w)
	if n.Problem != "" {
		fmt.Fprintf(w, "  problem  %s\n", n.Problem)
	}
	if len(n.Setup) > 0 {
		printSQL(w, "tables of the query", strings.Join(n.Setup, ";\n"))
	}
	if n.Python != "" {
		printSQL(w, "Python reads", n.Python)
	}
	if n.SQL != "" {
		printSQL(w, "first batch", n.SQL)
	}
}

func (n explainedNode) printLayout(w io.Writer) {
	fields := make([]string, len(n.Fields))
	for i, f := range n.Fields {
		fields[i] = f.Name + " " + f.Type
		if f.Nullable {
			fields[i] += "?"
		}
	}
	fmt.Fprintf(w, "  writes   table %s: %s\n", n.Table, strings.Join(fields, ", "))
	order := "its parts hold the rows in their order"
	if n.OrderCols > 0 {
		order = fmt.Sprintf("%d hidden columns carry the order of the rows", n.OrderCols)
	}
	if n.ComputedIn != "" {
		fmt.Fprintf(w, "  ephemeral, computed inside node %s: not stored, so\n", n.ComputedIn)
		fmt.Fprintf(w, "           thalweg sql does not show it, a run that is resumed computes it again, and other "+
			"runs cannot read it\n")
		return
	}
	if n.Stored != "" {
		fmt.Fprintf(w, "  stored   because %s\n", n.Stored)
	}
	fmt.Fprintf(w, "  layout   %s\n", order)
	if n.Buckets > 0 {
		fmt.Fprintf(w, "           in %s of %s; rows that come by this key stay as they come\n",
			counted(n.Buckets, "bucket", "buckets"), n.BucketKey)
	}
}

func (n explainedNode) printBatches(w io.Writer) {
	if n.Batches == 0 {
		return
	}
	about := ""
	if n.Estimated {
		about = "about "
	}
	rows := "rows not counted"
	if n.RowsIn >= 0 {
		rows = count(n.RowsIn) + " rows"
	}
	checks := ""
	if n.Checks > 0 {
		checks = fmt.Sprintf(" and %d that check them", n.Checks)
		if n.Shares > 0 {
			checks += fmt.Sprintf(" (%d look at a share each of the rows and of the keys, the last adds up)", n.Shares)
		}
	}
	fmt.Fprintf(w, "  batches  %s%d%s, of %s%s, %s uncompressed\n", about, n.Batches-n.Checks, checks, about, rows,
		size(n.BytesIn))
	threads := ""
	if n.OneThread {
		threads = ", one thread: the result could show the order in which rows arrive"
	}
	fmt.Fprintf(w, "  memory   %s a batch%s\n", size(n.Memory), threads)
}

func printSQL(w io.Writer, title, sql string) {
	fmt.Fprintf(w, "  %s\n    %s\n", title, strings.ReplaceAll(sql, "\n", "\n    "))
}
