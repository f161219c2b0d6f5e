package lineage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/io/files"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// rowsMax bounds the rows of one table that a trace follows.
const rowsMax = 10_000

// Config of a trace.
type Config struct {
	Store state.Store
	Parts parts.Store
	// Job gives the content of a run, as it was begun.
	Job    func(ctx context.Context, run state.RunKey) (*pipeline.Pipeline, error)
	Dir    string   // private to the call
	Reach  []string // directories of the parts
	Engine engine.InstanceConfig
	Beside bool // other batches are at work: see pipeline.Again
}

// Target selects the rows to trace: of a table, or of output files.
type Target struct {
	Node  state.NodeKey
	Files []state.File // of one batch; none: the node's table
	Dir   string       // of a node that writes a directory of files; "": it does not
}

// Options of a trace.
type Options struct {
	Where  string // condition on the target's columns; "": all rows
	Limit  int    // target rows that are traced
	Sample int    // of rows that many are made of, how many are followed
}

// Tree holds rows and the rows that they are made of. Rows name each other by their places in Rows.
type Tree struct {
	Target  string `json:"target"`
	Run     int64  `json:"run"`
	Matches int64  `json:"matches"` // rows for which the condition holds
	Roots   []int  `json:"roots"`   // those that are traced
	Rows    []*Row `json:"rows"`
}

// Row is a row of a table or of an output file, or a record of an input file.
type Row struct {
	ID    int    `json:"id"`
	Run   int64  `json:"run,omitempty"`
	Node  string `json:"node,omitempty"`
	Type  string `json:"type,omitempty"` // of the node
	Table string `json:"table,omitempty"`
	File  string `json:"file,omitempty"`
	// Row is its number, from 1, in the file or in the table's order; 0: rows have none.
	Row    int64    `json:"row,omitempty"`
	Line   int64    `json:"line,omitempty"` // in a CSV file, from 1, at which the record begins
	Text   string   `json:"text,omitempty"` // of a record
	Values Values   `json:"values,omitempty"`
	Note   string   `json:"note,omitempty"` // why it goes no further, or what is not known
	From   []Origin `json:"from,omitempty"`
}

// Origin is rows of one table or file that a row is made of.
type Origin struct {
	Role   plan.Role `json:"role"`
	Run    int64     `json:"run,omitempty"`
	Table  string    `json:"table,omitempty"`
	File   string    `json:"file,omitempty"`
	Count  int64     `json:"count"`
	Sample []int     `json:"rows"` // the first of them
}

// tracer is one call of Trace.
type tracer struct {
	cfg   Config
	opts  Options
	in    *engine.Instance
	nodes map[state.NodeKey]*traced
	order []*traced // readers behind what they read
	paths plan.Paths
	tree  *Tree
	names int // of temporary tables
	// single: only the one row is wanted that each is computed from.
	single bool

	release []func()
}

// traced is a node whose rows are followed.
type traced struct {
	pipeline.TracedNode
	key     state.NodeKey
	job     *pipeline.Pipeline
	table   *plan.Table   // of its rows; nil: it writes files, or is ephemeral and nobody has asked for its rows
	own     bool          // see plan.Own
	inner   bool          // its table is ephemeral
	files   []files.Slice // of an ephemeral table of files: what was read
	edges   []edge
	ids     map[int64]int   // of its rows in the tree, by n
	at      map[int64]place // of rows that are known by their places in batches
	keys    string          // the temporary table of their order columns, by n
	blocked string          // why its rows cannot be followed; "": they can
}

// place is a row of a batch.
type place struct {
	batch int
	row   int64
}

// edge is a temporary table: rows of a node that rows of another one are made of.
type edge struct {
	name   string
	reader *traced
	role   plan.Role
}

// Trace follows rows of the target back to the files.
func Trace(ctx context.Context, cfg Config, target Target, opts Options) (_ *Tree, err error) {
	t, err := open(ctx, cfg, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	start, err := t.visit(ctx, target.Node)
	if err != nil {
		return nil, err
	}
	t.tree.Run = target.Node.Run
	if len(target.Files) > 0 || target.Dir != "" {
		err = t.startFiles(ctx, start, target)
	} else {
		err = t.startTable(ctx, start)
	}
	if err != nil {
		return nil, err
	}
	for i, n := range slices.Backward(t.order) {
		progress.Tell(ctx, progress.Progress{Phase: "following the rows of node " + n.key.Node,
			Done: int64(len(t.order) - 1 - i), Of: int64(len(t.order)), Unit: "nodes"})
		if err := t.follow(ctx, n); err != nil {
			return nil, err
		}
	}
	for _, n := range t.order {
		n.sort(t.tree)
	}
	return t.tree, nil
}

// open makes a tracer that somebody has to close.
func open(ctx context.Context, cfg Config, opts Options) (_ *tracer, err error) {
	dir, err := os.MkdirTemp(cfg.Dir, "trace-")
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "make a directory for tracing", Err: err,
			Hint: "check the state directory's permissions and free space"}
	}
	cfg.Dir = dir
	t := &tracer{cfg: cfg, opts: opts, nodes: map[state.NodeKey]*traced{}, paths: plan.Paths{}, tree: &Tree{}}
	ours := cfg.Engine
	ours.SpillDir, ours.Paths = filepath.Join(dir, "spill"), append([]string{dir}, cfg.Reach...)
	if t.in, err = engine.OpenInstance(ctx, ours); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// sort puts what the rows are made of in the order in which the node reads it,
// whichever was followed first.
func (n *traced) sort(tree *Tree) {
	places := map[string]int{}
	for i, table := range n.sources() {
		places[fmt.Sprint(table.Run.Run, " ", table.Node.Table.Name)] = i
	}
	place := func(o Origin) int {
		switch {
		case o.Role == plan.RoleRight: // a table may be on both sides
			return len(places)
		case o.Table == "":
			return len(places) + 1
		}
		return places[fmt.Sprint(o.Run, " ", o.Table)]
	}
	for _, id := range n.ids {
		slices.SortStableFunc(tree.Rows[id].From, func(a, b Origin) int { return cmp.Compare(place(a), place(b)) })
	}
}

func (t *tracer) close() error {
	for _, release := range slices.Backward(t.release) {
		release()
	}
	var err error
	if t.in != nil {
		err = t.in.Close()
	}
	return errors.Join(err, os.RemoveAll(t.cfg.Dir))
}

// visit finds a node and, before it, all nodes whose rows its own may be made of.
func (t *tracer) visit(ctx context.Context, key state.NodeKey) (*traced, error) {
	node, err := t.cfg.Store.Node(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	if node.ReusedFrom != nil {
		// it may not be there any more
		if _, err := pipeline.ReadTable(ctx, t.cfg.Store, key); node.Table != "" && err != nil {
			return nil, err
		}
		key = *node.ReusedFrom
	}
	if n := t.nodes[key]; n != nil {
		return n, nil
	}
	n := &traced{key: key, ids: map[int64]int{}, at: map[int64]place{}}
	if err := n.open(ctx, t.cfg); err != nil {
		return nil, err
	}
	for _, source := range n.sources() {
		if _, err := t.visit(ctx, nodeOf(source)); err != nil {
			return nil, err
		}
	}
	t.nodes[key] = n
	t.order = append(t.order, n)
	return n, nil
}

// open finds what is known of a node. Where the script of its run cannot be had
// any more, its rows can be shown, but not followed.
func (n *traced) open(ctx context.Context, cfg Config) (err error) {
	if n.State, err = cfg.Store.Node(ctx, n.key); err != nil {
		return fmt.Errorf("read node %s of run %d: %w", n.key.Node, n.key.Run, err)
	}
	n.job, err = cfg.Job(ctx, n.key.RunKey)
	if err == nil {
		n.TracedNode, err = n.job.TracedNode(ctx, n.key.Node)
	}
	var f *fault.Error
	switch {
	case err == nil:
		n.inner, n.own = n.Plan.ComputedIn != "", plan.Own(n.Node, n.In)
	case n.State.Table != "" && errors.As(err, &f) && (f.Kind == fault.Script || f.Kind == fault.Environment):
		n.blocked = f.Error()
	default:
		return err
	}
	if n.State.Table == "" || n.inner {
		return nil
	}
	if n.table, err = pipeline.ReadTable(ctx, cfg.Store, n.key); err != nil {
		return err
	}
	n.table.Node = n.Node
	return nil
}

// sources are the tables that a node's rows are made of.
func (n *traced) sources() []*plan.Table {
	var out []*plan.Table
	if n.Node == nil {
		return nil
	}
	if n.In.Reader != nil {
		out = n.In.Reader.Members()
	}
	if n.In.Lookup != nil {
		out = append(out, n.In.Lookup)
	}
	if n.Node.Query != nil {
		for _, input := range n.Node.Query.Inputs {
			if table := n.In.Named[input.Creator.Table.Name]; !slices.Contains(out, table) {
				out = append(out, table)
			}
		}
	}
	return out
}

// nodeOf is the node that has written a table.
func nodeOf(table *plan.Table) state.NodeKey {
	return state.NodeKey{RunKey: table.Run, Node: table.Writer}
}

// of is the node that has written a table which another one reads.
func (t *tracer) of(table *plan.Table) (*traced, error) {
	for key, n := range t.nodes {
		if key.RunKey == table.Run && key.Node == table.Writer {
			return n, nil
		}
	}
	return nil, fault.New(fault.Bug, "table %s of run %d was not looked for", table.Writer, table.Run.Run)
}

// fetch makes parts local; nil: all of the table.
func (t *tracer) fetch(ctx context.Context, table *plan.Table, parts []int) error {
	some := &plan.Table{Run: table.Run, Writer: table.Writer}
	for i, p := range table.Parts {
		if t.paths[p.Key] == "" && (parts == nil || slices.Contains(parts, i)) {
			some.Parts = append(some.Parts, p)
		}
	}
	paths, release, err := pipeline.FetchTables(ctx, t.cfg.Parts, []*plan.Table{some})
	if err != nil {
		return err
	}
	t.release = append(t.release, release)
	for key, path := range paths {
		t.paths[key] = path
	}
	return nil
}

// temp makes a temporary table of a query's rows, and names it.
func (t *tracer) temp(ctx context.Context, query string) (string, error) {
	t.names++
	name := fmt.Sprintf("rows_%d", t.names)
	return name, t.exec(ctx, "CREATE TEMP TABLE "+name+" AS "+query)
}

func (t *tracer) exec(ctx context.Context, statement string) error {
	if err := t.in.Exec(ctx, statement); err != nil {
		if ctx.Err() != nil {
			return &fault.Error{Kind: fault.Canceled, Message: "tracing was interrupted", Err: context.Cause(ctx)}
		}
		return fmt.Errorf("follow rows: %w", err)
	}
	return nil
}

// add puts a row into the tree.
func (t *tracer) add(r *Row) int {
	r.ID = len(t.tree.Rows)
	t.tree.Rows = append(t.tree.Rows, r)
	return r.ID
}

// row describes a row of a node.
func (n *traced) row() *Row {
	return &Row{Run: n.key.Run, Node: n.key.Node, Type: n.State.Kind, Table: n.State.Table, Note: n.blocked}
}

// orderList are the names of order columns behind an alias.
func orderList(alias string, count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("%s.__o%d", alias, i))
	}
	return names
}
