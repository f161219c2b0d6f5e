package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/similar"
	"thalweg/internal/io/outfile"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// IndexOptions say what of a table is in its index, and where that is written.
type IndexOptions struct {
	Table       string
	Key         []string // columns that a row is found by
	Columns     []string // what is found; none: all others
	Path        string   // of the file, which appears when it is whole
	MemoryBytes int64
	// Measured hears how large the index will be, before it is built; nil is allowed.
	Measured func(view.TableIndex)
}

// engineBytesMin is the least memory that the rows of an index are read in.
const engineBytesMin = budget.MemoryBytesMin / 2

// Index writes the index of a table of a run: see package tableindex.
func (s *Service) Index(ctx context.Context, by caller.Caller, run state.RunKey, o IndexOptions) (out view.TableIndex,
	err error) {
	table, err := TableOf(ctx, s.Home, run, o.Table)
	if err != nil {
		return out, err
	}
	w, err := indexOf(table, o)
	if err != nil {
		return out, err
	}
	needed := max(budget.MemoryBytesMin, engineBytesMin+outfile.IndexMemory(table.Rows()))
	if o.MemoryBytes > 0 && o.MemoryBytes < needed {
		return out, littleMemory(table, needed, o.MemoryBytes)
	}
	p := s.in(by, o.MemoryBytes)
	leave, err := s.visit(ctx, &p.MemoryBytes, needed)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if p.MemoryBytes < needed { // which the machine has not
		return out, littleMemory(table, needed, p.MemoryBytes)
	}
	out = view.TableIndex{Run: table.Run.Run, Table: table.Name, Key: o.Key, File: o.Path}
	for _, c := range w.Values() {
		out.Columns = append(out.Columns, c.Name)
	}
	x := &indexing{Service: s, table: table, o: o, made: out,
		to: outfile.Output{Writer: w, Path: o.Path,
			Source: fmt.Sprintf("%s, run %d of %s", table.Name, run.Run, run.Workspace)}}
	return x.write(ctx, p.MemoryBytes-outfile.IndexMemory(table.Rows()))
}

func littleMemory(t RunTable, needed, bytes int64) error {
	f := fault.New(fault.Environment, "an index of the %s of %s is built in %s of memory, and there are %s",
		format.Counted(t.Rows(), "row", "rows"), t.Name, format.Size(needed), format.Size(bytes))
	f.Hint = "give more with {{set memory}}"
	return f
}

// indexOf describes the index of a table: its texts are those of a CSV file.
func indexOf(t RunTable, o IndexOptions) (*script.FileWriter, error) {
	w := &script.FileWriter{Form: script.FormIndex}
	if len(o.Columns) == 0 {
		for _, c := range t.Layout.Columns {
			if !slices.Contains(o.Key, c.Name) {
				o.Columns = append(o.Columns, c.Name)
			}
		}
		if len(o.Columns) == 0 {
			return nil, fault.New(fault.Script, "all columns of %s are in the key: a row has no value", t.Name)
		}
	}
	for i, name := range slices.Concat(o.Key, o.Columns) {
		if slices.ContainsFunc(w.Columns, func(c *script.OutputColumn) bool { return c.Name == name }) {
			return nil, fault.New(fault.Script, "column %s is there twice", name)
		}
		c, err := indexColumn(t, name)
		if err != nil {
			return nil, err
		}
		if w.Columns = append(w.Columns, c); i < len(o.Key) {
			w.Index = append(w.Index, c)
		}
	}
	return w, nil
}

func indexColumn(t RunTable, name string) (*script.OutputColumn, error) {
	var names []string
	for _, c := range t.Layout.Columns {
		if names = append(names, c.Name); c.Name != name {
			continue
		}
		typ, ok := expr.ParseType(c.Type)
		if !ok {
			return nil, fmt.Errorf("column %s of table %s has the type %q", name, t.Name, c.Type)
		}
		if typ.Nested() {
			f := fault.New(fault.Script, "column %s is a %s: an index holds texts, numbers and times", name, c.Type)
			f.Hint = "name the columns of the index"
			return nil, f
		}
		return &script.OutputColumn{Name: c.Stored(), Header: name, Type: typ, Nullable: c.Nullable}, nil
	}
	f := fault.New(fault.Script, "table %s has no column %s", t.Name, name)
	f.Hint = "its columns: " + strings.Join(names, ", ")
	if near := similar.Nearest(name, names); near != "" {
		f.Hint = "did you mean " + near + "?"
	}
	return nil, f
}

// indexing is the making of an index.
type indexing struct {
	*Service
	table RunTable
	o     IndexOptions
	to    outfile.Output
	made  view.TableIndex
}

// write reads the table in an engine with so much memory.
func (x *indexing) write(ctx context.Context, memoryBytes int64) (_ view.TableIndex, err error) {
	paths, release, err := pipeline.FetchTables(ctx, x.Home.Parts, []*plan.Table{x.table.Table})
	if err != nil {
		return x.made, err
	}
	defer release()
	if x.to.Scratch, err = x.Home.Scratch(); err != nil {
		return x.made, err
	}
	defer func() { _ = os.RemoveAll(x.to.Scratch) }() // what is left goes with the instance's own
	cfg := engine.InstanceConfig{MemoryBytes: memoryBytes, Threads: budget.Cores(),
		SpillDir: filepath.Join(x.to.Scratch, "spill"), Paths: []string{x.to.Scratch}}
	for _, path := range paths {
		cfg.Paths = append(cfg.Paths, path)
	}
	in, err := engine.OpenInstance(ctx, cfg)
	if err != nil {
		return x.made, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	x.to.Rows = x.table.SelectAll(paths)
	if x.made.Rows, x.made.Bytes, err = outfile.IndexSize(ctx, in, x.to); err != nil {
		return x.made, err
	}
	if x.o.Measured != nil {
		x.o.Measured(x.made)
	}
	return x.made, outfile.PublishIndex(ctx, in, x.to, x.made.Bytes)
}
