package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/compare"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/store/state"
)

// Service answers questions about the tables of one instance.
type Service struct {
	Home     *instance.Instance
	Process  runtime.Process // what answers may use
	Children Children        // execute what takes DuckDB; nil: this process does, in its turn (see budget.Guest)
}

// Children execute in processes of their own what would use DuckDB in this one: with limits, so that what goes wrong
// there costs one answer. MemoryBytes and what else a request says of resources they decide.
type Children interface {
	Executor
	Diff(ctx context.Context, by caller.Caller, runs [2]state.RunKey, o DiffOptions) (Comparison, error)
	Trace(ctx context.Context, by caller.Caller, o TraceOptions) (*view.Tree, error)
	Check(ctx context.Context, by caller.Caller, sc *script.Script, run state.Run, o CheckOptions) ([]CheckFound, error)
	ExplainBatch(ctx context.Context, by caller.Caller, key state.BatchKey) (view.BatchSQL, error)
}

// in returns what an answer may use: memoryBytes of memory, in a caller's name.
func (s *Service) in(by caller.Caller, memoryBytes int64) runtime.Process {
	p := s.Process
	p.Caller, p.MemoryBytes = by, memoryBytes
	return p
}

// visit waits for the memory of an answer: at most bytes, which it sets to what there is, and not less than least. An
// answer without a figure (0) has half of what the machine has for runs.
func (s *Service) visit(ctx context.Context, bytes *int64, least int64) (leave func() error, err error) {
	whole := budget.Default()
	if *bytes == 0 {
		*bytes = max(whole/2, budget.MemoryBytesMin)
	}
	member := budget.Member{Owner: fmt.Sprintf("the query of process %d", os.Getpid()), Total: max(whole, 2**bytes),
		Waiting: s.Process.Waiting, Guest: &budget.Guest{LeastBytes: min(least, *bytes), MostBytes: *bytes}}
	*bytes, leave, err = budget.Visit(ctx, filepath.Join(s.Home.Dir, "shares"), member, func(err error) {
		if s.Process.Logger != nil {
			s.Process.Logger.Warn("what other processes hold of the memory cannot be followed; it is tried again",
				"error", err)
		}
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, interrupted(ctx)
	case err != nil:
		return nil, instance.Fault(s.Home.Dir, "share the memory with other processes", err)
	}
	return leave, nil
}

// Query runs SQL over the tables of a workspace's runs: see Query.
func (s *Service) Query(ctx context.Context, by caller.Caller, o QueryOptions) (res QueryResult, err error) {
	o.Process = s.in(by, o.MemoryBytes)
	if s.Children != nil {
		return QueryIn(ctx, s.Home, s.Children, o)
	}
	leave, err := s.visit(ctx, &o.MemoryBytes, budget.MemoryBytesMin)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return Query(ctx, s.Home, o)
}

// Tables lists the names of the tables that a query can read without naming a run, in order.
func (s *Service) Tables(ctx context.Context, workspace string) ([]string, error) {
	return Tables(ctx, s.Home, workspace)
}

// Written notes that a query has written a file: it may be written again.
func (s *Service) Written(ctx context.Context, workspace, path string) error {
	return NoteQueried(ctx, s.Home, workspace, address.Seen(s.Process.Dir, path))
}

// UseOf says what one of the latest runs has to do with a file of this machine; "": none has.
func (s *Service) UseOf(ctx context.Context, workspace, path string) (string, error) {
	return UseOf(ctx, s.Home, workspace, address.Seen(s.Process.Dir, path))
}

// Trace says what rows of a table or of an output file are made of.
func (s *Service) Trace(ctx context.Context, by caller.Caller, o TraceOptions) (tree *view.Tree, err error) {
	memory, interpreter := o.MemoryBytes, o.Interpreter
	o.Process = s.in(by, memory)
	o.Interpreter = interpreter
	if s.Children != nil {
		return s.Children.Trace(ctx, by, o)
	}
	leave, err := s.visit(ctx, &o.MemoryBytes, 2*budget.MemoryBytesMin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return Trace(ctx, s.Home, o)
}

// ScriptOf returns the script that a run was begun with, and the directory that its relative names are seen from.
func (s *Service) ScriptOf(ctx context.Context, key state.RunKey) (*script.Script, string, error) {
	return ScriptOf(ctx, s.Home, key, s.Process)
}

// NodeLineage says what the columns of a node are made of, and what is made of them.
func (s *Service) NodeLineage(ctx context.Context, key state.RunKey, node string) (view.NodeLineage, error) {
	sc, _, err := s.ScriptOf(ctx, key)
	if err != nil {
		return view.NodeLineage{}, err
	}
	n := sc.Node(node)
	if n == nil {
		return view.NodeLineage{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("the script of run %d has no node %s", key.Run, node)}
	}
	return view.NodeLineage{Node: node, Columns: lineage.ColumnsOf(sc).OfNode(n)}, nil
}

// LineageEvents lists the OpenLineage events of a run.
func (s *Service) LineageEvents(ctx context.Context, key state.RunKey) ([]lineage.Event, error) {
	how := lineage.Telling{Namespace: s.Process.Getenv("OPENLINEAGE_NAMESPACE"), Hide: s.Process.Known.Text}
	var err error
	if how.Script, how.Dir, err = s.ScriptOf(ctx, key); err != nil { // what state says itself can be told
		s.Process.Logger.Warn("the script of the run cannot be had: events have no columns", "error", err)
	}
	return lineage.Events(ctx, s.Home.State, key, how)
}

// Check makes the checks of a script over the tables of a run: of its latest, else of the last, where run is 0.
func (s *Service) Check(ctx context.Context, by caller.Caller, sc *script.Script, run state.Run,
	o CheckOptions) (found []CheckFound, err error) {
	o.Process, o.Run = s.in(by, o.MemoryBytes), run
	if s.Children != nil {
		return s.Children.Check(ctx, by, sc, run, o)
	}
	leave, err := s.visit(ctx, &o.MemoryBytes, budget.MemoryBytesMin)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return Check(ctx, s.Home, sc, o)
}

// LatestOf returns the latest run of a script, and whether there is one.
func (s *Service) LatestOf(ctx context.Context, workspace string, sc *script.Script, path string) (state.Run, bool,
	error) {
	return LatestOf(ctx, s.Home, workspace, sc, path)
}

// DiffOptions say how a table of two runs is compared.
type DiffOptions struct {
	Table       string
	Key         []string // fields that say which row is which; none: a key that both tables are known to have
	ByRows      bool     // rows are compared as they are, without a key
	Columns     []string // compared beside those of the key; none: all
	Tolerance   float64  // within which floats are equal, absolutely or relative to the larger one
	RowsMax     int      // of each kind that are given
	MemoryBytes int64
}

// Diff says how a table differs between two runs.
func (s *Service) Diff(ctx context.Context, by caller.Caller, runs [2]state.RunKey, o DiffOptions) (out Comparison,
	err error) {
	if s.Children != nil {
		return s.Children.Diff(ctx, by, runs, o)
	}
	leave, err := s.visit(ctx, &o.MemoryBytes, budget.MemoryBytesMin)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	return Diff(ctx, s.Home, runs, o)
}

// Diff says how a table differs between two runs.
func Diff(ctx context.Context, home *instance.Instance, runs [2]state.RunKey, o DiffOptions) (out Comparison,
	err error) {
	memory, err := budget.Split(o.MemoryBytes, 1, 0)
	if err != nil {
		return out, &fault.Error{Kind: fault.Script, Message: err.Error(), Hint: "give more with {{set memory}}"}
	}
	memory.Cores = budget.Cores()
	var tables [2]RunTable
	for i, key := range runs {
		if tables[i], err = TableOf(ctx, home, key, o.Table); err != nil {
			return out, err
		}
		out.Runs[i], out.Names[i] = key.Run, runName(key.Run)
	}
	dir, err := home.Scratch()
	if err != nil {
		return out, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with the instance's own
	out.Table = tables[0].Name
	out.Result, err = compare.Tables(ctx, compare.Options{A: tables[0].Table, B: tables[1].Table,
		UniqueA: tables[0].Unique, UniqueB: tables[1].Unique, Key: o.Key, ByRows: o.ByRows, Columns: o.Columns,
		Tolerance: o.Tolerance, Limit: o.RowsMax, Memory: memory, SpillDir: filepath.Join(dir, "spill"),
		Parts: home.Parts, Names: out.Names})
	return out, err
}

func runName(run int64) string { return fmt.Sprintf("run %d", run) }

// Comparison holds the differences of a table between two runs.
type Comparison struct {
	*compare.Result
	Table string
	Runs  [2]int64
	Names [2]string // of the runs, for people
}

// Cells returns the values of a row as they are shown.
func (Comparison) Cells(row []any) []any {
	out := make([]any, len(row))
	for i, v := range row {
		out[i] = Cell(v)
	}
	return out
}

// View returns the comparison as programs see it.
func (c Comparison) View() view.Diff {
	out := view.Diff{Table: c.Table, RunA: c.Runs[0], RunB: c.Runs[1], Equal: c.Equal(),
		Key: append([]string{}, c.Key...), KeyOf: c.KeyOf, Columns: append([]string{}, c.Columns...),
		Schema: append([]compare.SchemaDifference{}, c.Schema...), RowsA: c.RowsA, RowsB: c.RowsB, Removed: c.Removed,
		Added: c.Added, Changed: c.Changed, ChangedIn: append([]compare.ColumnCount{}, c.ChangedIn...),
		RepeatedA: c.RepeatedA, RepeatedB: c.RepeatedB,
		SampleRemoved: []view.DiffRow{}, SampleAdded: []view.DiffRow{}, SampleChanged: []view.DiffRow{}}
	all := make([]int, len(c.Columns))
	for i := range all {
		all[i] = i
	}
	for _, d := range c.SampleRemoved {
		out.SampleRemoved = append(out.SampleRemoved, view.DiffRow{Row: c.object(d.A, all), Times: d.Times})
	}
	for _, d := range c.SampleAdded {
		out.SampleAdded = append(out.SampleAdded, view.DiffRow{Row: c.object(d.B, all), Times: d.Times})
	}
	for _, d := range c.SampleChanged {
		out.SampleChanged = append(out.SampleChanged, view.DiffRow{Key: c.object(d.A, all[:len(c.Key)]),
			A: c.object(d.A, d.Changed), B: c.object(d.B, d.Changed)})
	}
	return out
}

// object holds the values of some columns of a row.
func (c Comparison) object(row []any, columns []int) *view.Object {
	out := &view.Object{}
	for _, i := range columns {
		out.Names, out.Cells = append(out.Names, c.Columns[i]), append(out.Cells, Cell(row[i]))
	}
	return out
}
