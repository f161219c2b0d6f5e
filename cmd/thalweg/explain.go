package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/scripts"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
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

func (c *explainCmd) Run(ctx context.Context, a *app) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	s, diags, err := c.load(ctx, a)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return &scripts.InvalidScriptError{Diagnostics: diags}
	}
	e, err := runner.Explain(ctx, s, memory, c.Cores, c.Ephemeral)
	if err != nil {
		return err
	}
	reuse, err := c.foresee(ctx, a, s, memory)
	if err != nil {
		return err
	}
	nodes := make([]explainedNode, 0, len(e.Nodes))
	var names []string
	for _, p := range e.Nodes {
		names = append(names, p.Node.Name)
		if c.Node == "" || p.Node.Name == c.Node {
			one := explainNode(p, e.Budget)
			one.reuse(reuse[p.Node])
			one.Waits = gatesBefore(s, p.Node)
			nodes = append(nodes, one)
		}
	}
	if len(nodes) == 0 {
		err := fault.New(fault.Script, "the script has no node %q", c.Node)
		if near := similar.Nearest(c.Node, names); near != "" {
			err.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, explained{Budget: e.Budget, Nodes: nodes})
	}
	a.printDiagnostics(diags.Warnings())
	var b strings.Builder
	printBudget(&b, e.Budget)
	for _, n := range nodes {
		n.print(&b)
	}
	_, err = io.WriteString(a.stdout, b.String())
	return err
}

// foresee says what a run would take over of the runs in the state directory;
// nothing where there is none.
func (c *explainCmd) foresee(ctx context.Context, a *app, s *script.Script,
	memory int64) (_ map[*script.Node]runner.Foreseen, err error) {
	if _, err := os.Stat(filepath.Join(c.State, "state.db")); c.Cluster == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	return runner.Forecast(ctx, home, s, s.Nodes, runner.Options{ScriptPath: c.Script, Workspace: c.Workspace,
		Ephemeral: c.Ephemeral, Process: runtime.Process{Caller: a.caller(), MemoryBytes: memory, Cores: c.Cores,
			Interpreter: c.Python,
			Keeper:      ownExecutable, Known: a.known, Logger: newLogger(a, false)}})
}

// explained is the JSON form.
type explained struct {
	Budget budget.Budget   `json:"budget"`
	Nodes  []explainedNode `json:"nodes"`
}

type explainedNode struct {
	Node      string        `json:"node"`
	Type      string        `json:"type"`
	Manual    bool          `json:"manual,omitempty"`
	Sources   []string      `json:"sources"` // files, or tables
	Table     string        `json:"table,omitempty"`
	File      string        `json:"file,omitempty"`
	Fields    []plan.Column `json:"fields,omitempty"`
	OrderCols int           `json:"order_columns"`
	Buckets   int           `json:"buckets,omitempty"`
	BucketKey string        `json:"bucket_key,omitempty"`
	Join      string        `json:"join,omitempty"`
	Cut       string        `json:"cut,omitempty"` // of a query
	Batches   int           `json:"batches"`
	Checks    int           `json:"checks,omitempty"`       // of Batches
	Shares    int           `json:"check_shares,omitempty"` // of Checks: each looks at a share
	RowsIn    int64         `json:"rows_in"`                // -1: not known
	BytesIn   int64         `json:"bytes_in"`
	RowsOut   int64         `json:"rows_out_max,omitempty"`
	Estimated bool          `json:"estimated"`
	Memory    int64         `json:"memory_bytes"`
	OneThread bool          `json:"one_thread,omitempty"`
	Setup     []string      `json:"setup,omitempty"`
	Python    string        `json:"python_source,omitempty"`
	SQL       string        `json:"sql,omitempty"`
	Problem   string        `json:"problem,omitempty"`
	Waits     []string      `json:"waits_for,omitempty"` // gates that have to be passed before

	ComputedIn string `json:"computed_in,omitempty"` // of an ephemeral table
	Stored     string `json:"stored,omitempty"`      // why its table is stored beside --ephemeral

	ReusedFrom *reusedFrom `json:"reused_from,omitempty"` // the node whose rows a run would take over
	Computed   string      `json:"computed,omitempty"`    // why a run would compute it
}

func (n *explainedNode) reuse(f runner.Foreseen) {
	n.ReusedFrom, n.Computed = reusedFromOf(f.From), f.Why
}

// explainNode puts a preview into words.
func explainNode(p plan.Preview, b budget.Budget) explainedNode {
	n := p.Node
	out := explainedNode{Node: n.Name, Type: runner.KindOf(n), Manual: n.StartPolicy == script.PolicyManual,
		Sources: sourceNames(n),
		Fields:  p.Plan.Layout.Columns, OrderCols: p.Plan.Layout.OrderCols, Buckets: p.Plan.Layout.Buckets,
		BucketKey: p.Plan.Layout.BucketKey,
		Batches:   p.Batches, Checks: p.Checks, Shares: p.Shares, RowsIn: p.Rows, BytesIn: p.Bytes, RowsOut: p.RowsOut,
		Estimated: p.Estimated,
		Cut:       p.Cut, Memory: b.SlotEngineBytes, OneThread: p.Task.OneThread, SQL: p.Task.Query,
		ComputedIn: p.Plan.ComputedIn,
		Stored:     p.Stored}
	if n.Table != nil {
		out.Table = n.Table.Name
	}
	if n.Out != nil {
		out.File = n.Out.URL
	}
	if f := p.Task.Output.File; f != nil {
		out.SQL = f.Copy.SQL()
	}
	out.SQL = sqltext.Format(out.SQL)
	for _, s := range p.Task.Setup {
		out.Setup = append(out.Setup, sqltext.Format(s))
	}
	if p.Task.Python != nil {
		out.Python = sqltext.Format(p.Task.Python.Source)
	}
	if join := p.Plan.Join; join != nil {
		out.Join = "every batch reads all of table " + n.Lookup.Index.Node.Table.Name
		if join.Buckets > 0 {
			out.Join = fmt.Sprintf("both tables meet in %s of the key", counted(join.Buckets, "bucket", "buckets"))
		}
	}
	if p.Problem != nil {
		out.Problem = p.Problem.Error()
	}
	return out
}

// gatesBefore says what a node waits for, and whom.
func gatesBefore(s *script.Script, n *script.Node) []string {
	var out []string
	for _, g := range s.Gates {
		if !slices.Contains(g.Guards, n) {
			continue
		}
		text := g.Name
		if len(g.By) > 0 {
			text += " by " + strings.Join(g.By, " or ")
		}
		if !g.Always {
			text += ", if a check of table " + g.Name + " fails"
		}
		if g.Timeout > 0 {
			text += fmt.Sprintf(", rejected after %s", span(g.Timeout))
		}
		if len(g.Answers) > 0 {
			names := make([]string, len(g.Answers))
			for i, a := range g.Answers {
				names[i] = a.Name + " = " + a.Default
			}
			text += "; it asks for " + strings.Join(names, ", ")
		}
		out = append(out, text)
	}
	return out
}

// sourceNames lists the files or the tables that a node reads.
func sourceNames(n *script.Node) []string {
	out := []string{}
	for _, source := range n.Sources(nil) {
		if name := "table " + source.Table.Name; !slices.Contains(out, name) { // a check may name it again
			out = append(out, name)
		}
	}
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			out = append(out, address.Redact(u.URL))
		}
	}
	return out
}

func printBudget(w io.Writer, b budget.Budget) {
	fmt.Fprintf(w, "memory %s: %s with %s for DuckDB each", size(b.TotalBytes), counted(b.Slots, "slot", "slots"),
		size(b.SlotEngineBytes))
	if b.Interpreters > 0 {
		fmt.Fprintf(w, ", %s with %s each", counted(b.Interpreters, "interpreter", "interpreters"), size(b.InterpreterBytes))
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
		fmt.Fprintf(w, "           thalweg sql does not show it, a run that is resumed computes it again, and other runs "+
			"cannot read it\n")
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
