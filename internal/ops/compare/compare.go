package compare

import (
	"context"
	"errors"
	"slices"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
)

// Options of a comparison of the tables A and B.
type Options struct {
	A, B             *plan.Table
	UniqueA, UniqueB []plan.UniqueKey // what is known of their keys
	Key              []string         // the fields that say which row is which; none: what is known of both tables
	ByRows           bool             // without a key: rows are compared as they are
	Columns          []string         // that are compared besides the key; none: all
	// Tolerance is by how much floats may differ: by so much, or so much of the
	// larger one. 0: by nothing, not even the sign of 0. It needs a key.
	Tolerance float64
	Limit     int // rows of each kind in the sample; 0: none
	Memory    budget.Budget
	SpillDir  string // private to the comparison
	Parts     parts.Store
	Names     [2]string // what A and B are called for people
}

// engineQuarters is DuckDB's share of a slot's memory, in quarters. Its join and its readers took 600 MB
// beside the limit, with 10 M rows on a machine under load.
const engineQuarters = 3

// LimitMax is the most rows of each kind that a sample can have.
const LimitMax = 10_000

// Result lists the differences of B from A.
type Result struct {
	Schema       []SchemaDifference
	Key, Columns []string // that were compared, the key's columns first
	KeyOf        string   // the check that the key was taken from, or what else knows it; "": it was given
	RowsA, RowsB int64
	Removed      int64 // rows of A that are not in B
	Added        int64 // rows of B that are not in A
	Changed      int64 // rows that are in both by their key, with other values
	ChangedIn    []ColumnCount
	RepeatedA    int64 // keys that occur more than once in A, if anything differs
	RepeatedB    int64

	SampleRemoved, SampleAdded, SampleChanged []Difference // in order of the key, then of the columns
}

// Equal reports whether nothing differs.
func (r *Result) Equal() bool {
	return len(r.Schema) == 0 && r.Removed+r.Added+r.Changed == 0
}

// ColumnCount is in how many of the changed rows a column has changed.
type ColumnCount struct {
	Column string `json:"column"`
	Rows   int64  `json:"rows"`
}

// Difference is a row of the sample.
type Difference struct {
	A, B    []any // values by Result.Columns, as the driver gives them; nil: not there
	Changed []int // places of the columns that have changed
	Times   int64 // so many equal ones
}

// Tables compares two tables.
func Tables(ctx context.Context, opts Options) (_ *Result, err error) {
	c, err := newComparison(opts)
	if err != nil {
		return nil, err
	}
	if len(c.columns) == 0 {
		return &c.result, nil
	}
	progress.Tell(ctx, progress.Progress{Phase: "looking for parts that are equal"})
	release, err := c.separate(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if len(c.rest[0])+len(c.rest[1])+len(c.pairs) == 0 {
		return &c.result, nil
	}
	in, err := engine.OpenInstance(ctx,
		engine.InstanceConfig{MemoryBytes: opts.Memory.SlotEngineBytes * engineQuarters / 4, Threads: opts.Memory.Cores,
			SpillDir: opts.SpillDir, Paths: c.files()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	c.db = in
	if err := c.comparePairs(ctx); err != nil {
		return nil, failure(ctx, err)
	}
	if err := c.compareRows(ctx); err != nil {
		return nil, failure(ctx, err)
	}
	return &c.result, nil
}

// failure classifies an error of the engine, and adds a hint.
func failure(ctx context.Context, err error) error {
	err = engine.Classify(ctx, err, "compare the tables")
	if errors.Is(err, engine.ErrOutOfMemory) {
		return &fault.Error{Kind: fault.Environment,
			Message: "compare the tables: more memory is needed than it is given",
			Err:     err, Hint: "give more with {{set memory}}, or compare fewer columns with {{set columns}}"}
	}
	return err
}

// comparison is one that is being made. Column i of the tables is a0, a1 … and
// b0, b1 … in its statements, the key's columns first.
type comparison struct {
	Options
	columns []column
	keys    int  // of columns
	unique  bool // no key is in either table twice: there is a proof
	db      *engine.Instance
	result  Result

	paths plan.Paths
	pairs [][2]part // parts that may have the same rows at the same places
	rest  [2][]part // parts of A and of B whose rows are looked for in all of the other's
	kept  []string  // files of rows that differ at the same places
	// repeated is the relation of hashes of keys that may be more than once on a side; "": none is.
	repeated string
}

// compareRows finds what differs among the rows that are not known to be in both.
func (c *comparison) compareRows(ctx context.Context) error {
	if len(c.kept)+len(c.rest[0])+len(c.rest[1]) == 0 {
		return nil
	}
	progress.Tell(ctx, progress.Progress{Phase: "comparing the rows that are not at the same places"})
	if !c.unique {
		if err := c.findRepeated(ctx); err != nil {
			return err
		}
	}
	relation, err := c.sideBySide(ctx)
	if err != nil {
		return err
	}
	if err := c.summarize(ctx, relation); err != nil {
		return err
	}
	if r := &c.result; r.Removed+r.Added+r.Changed == 0 {
		r.RepeatedA, r.RepeatedB = 0, 0
	}
	return nil
}

// files lists the paths that statements read.
func (c *comparison) files() []string {
	var out []string
	for _, p := range c.paths {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}
