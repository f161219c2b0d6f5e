package infer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/address"
	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/script"
)

// ColumnsMax is the most columns of a file.
const ColumnsMax = 1_000

// Options of an inference.
type Options struct {
	Separator   string // of CSV; "": the one that cuts the records evenly
	Header      Header
	MemoryBytes int64
	Threads     int
	WorkDir     string // for spill and scratch files: private, exists
}

// Header says whether a CSV file has one.
type Header int

// The ways to know.
const (
	HeaderGuess Header = iota
	HeaderYes
	HeaderNo
)

// Proposal is what was found out about a file.
type Proposal struct {
	Path      string
	Parquet   bool
	Separator byte   // CSV
	Encoding  string // CSV: of the text; "": UTF-8
	HasHeader bool   // CSV
	Rows      int64
	Columns   []Column
	Notes     []string // about the file as a whole

	text string // where the text of a CSV file is in UTF-8
}

// Column is a proposed column.
type Column struct {
	Name      string // for the script
	Source    string // in the file: header or Parquet name; "" without a header
	Index     int
	Type      expr.Type // Invalid: cannot be read, left out of the script
	Format    string    // CSV datetime: the layout
	Nullable  bool
	NullTexts []string // CSV: texts that stand for a missing value, "" the empty cell
	Evidence  string
}

// File reads all of a file.
func File(ctx context.Context, path string, o Options) (Proposal, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // opening a pipe would wait for ever
		return Proposal{}, &fault.Error{Kind: fault.UserData, Place: fault.Place{File: path}, Message: "it is not a regular file", Hint: "name one file"}
	}
	p := Proposal{Path: path, Parquet: address.Parquet(path)}
	if p.Parquet {
		err := p.parquet(ctx, o)
		return p, err
	}
	if err := p.plainText(ctx, o); err != nil {
		return p, err
	}
	shape, err := shapeOf(ctx, p.text, path, o)
	if err != nil {
		return p, err
	}
	p.Separator, p.HasHeader, p.Notes = shape.separator, shape.header, append(p.Notes, shape.notes...)
	for i, name := range shape.names {
		p.Columns = append(p.Columns, Column{Source: name, Index: i})
	}
	if !shape.header {
		for i := range p.Columns {
			p.Columns[i].Source = ""
		}
	}
	p.nameColumns()
	err = p.csv(ctx, o)
	return p, err
}

// nameColumns makes identifiers of what the file calls its columns.
func (p *Proposal) nameColumns() {
	used := map[string]bool{"rowid": true, "batch_idx": true} // the language keeps these
	for i := range p.Columns {
		c := &p.Columns[i]
		base := identifier(c.Source, i)
		name := base
		for n := 2; used[name]; n++ {
			name = numbered(base, n)
		}
		used[name] = true
		c.Name = name
	}
}

// reader is a script's reader of all columns: those of CSV as text, those of
// Parquet with the types that they have so far.
func (p *Proposal) reader() *script.FileReader {
	r := &script.FileReader{URLs: []script.FileURL{{URL: p.Path}}, Parquet: p.Parquet,
		CSV: script.CSVReader{HeaderRecord: -1, Separator: p.Separator}}
	if p.HasHeader {
		r.CSV.HeaderRecord, r.CSV.FirstDataRecord = 0, 1
	}
	for i, c := range p.Columns {
		one := &script.InputColumn{Name: columnName(i), Type: expr.String, Index: c.Index}
		if p.Parquet {
			if c.Type == expr.Invalid {
				continue
			}
			one.Type, one.Nullable, one.Parquet = c.Type, true, c.Source
		}
		r.Columns = append(r.Columns, one)
	}
	return r
}

// source is a file open for queries.
type source struct {
	*engine.Instance
	from    string // FROM item
	reader  *script.FileReader
	slices  []files.Slice
	scratch string
}

// open starts an instance that may read the file.
func (p *Proposal) open(ctx context.Context, o Options) (*source, error) {
	s := &source{reader: p.reader(), scratch: filepath.Join(o.WorkDir, "scratch")}
	if err := os.MkdirAll(s.scratch, 0o700); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "make a directory for scratch files", Err: err}
	}
	at := files.Places{}
	if p.text != "" && p.text != p.Path {
		at.Copies = map[string]files.Copy{p.Path: {Path: p.text}}
	}
	plan, err := files.PlanSlicesBy(ctx, s.reader, at, func(int64) int64 { return math.MaxInt64 }, 1)
	if err != nil {
		return nil, err
	}
	paths := []string{s.scratch}
	for _, batch := range plan {
		for _, slice := range batch {
			s.slices = append(s.slices, slice)
			paths = append(paths, slice.Path)
		}
	}
	from, prepare, err := files.ReadSQL(s.reader, s.slices, s.scratch, files.Unnumbered)
	var refused *fault.Error
	if errors.As(err, &refused) {
		return nil, unreadable{refused}
	}
	if err != nil {
		return nil, err
	}
	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return nil, err
		}
	}
	s.from = from
	s.Instance, err = engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: o.MemoryBytes, Threads: o.Threads, SpillDir: filepath.Join(o.WorkDir, "spill"), Paths: paths})
	return s, err
}

// row reads the only row of a query as texts. A failure says what is wrong with the file.
func (s *source) row(ctx context.Context, cols []string, from string) ([]sql.NullString, error) {
	cells, err := readRow(ctx, s.Instance, "SELECT "+strings.Join(cols, ", ")+" FROM "+from, len(cols))
	if err == nil {
		return cells, nil
	}
	var found *fault.Error
	if diagnosed := files.Diagnose(ctx, s.Instance, s.reader, s.slices, s.scratch, err); errors.As(diagnosed, &found) {
		return nil, diagnosed
	}
	return nil, fmt.Errorf("look through %s: %w", s.reader.URLs[0].URL, err)
}

// closing joins the failure to close an instance to err.
func closing(in *engine.Instance, err *error) { *err = errors.Join(*err, in.Close()) }
