package infer

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/script"
	"thalweg/internal/sqltext"
)

// parquet takes the types from the file's schema, and reads all values as a
// run would: what is said of a column holds for the column that a run sees.
func (p *Proposal) parquet(ctx context.Context, o Options) error {
	list, err := files.Columns(ctx, files.Look{}, p.Path, script.CSVReader{}, true)
	if err != nil {
		return err
	}
	if len(list) > ColumnsMax {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Path},
			Message: fmt.Sprintf("the file has %d columns; the limit is %d", len(list), ColumnsMax)}
	}
	for i, c := range list {
		col := Column{Source: c.Name, Index: i, Type: c.Type}
		switch {
		case c.Type == expr.Invalid:
			col.Evidence = c.Kind + " in the file cannot be read"
		case c.Name == "":
			col.Type, col.Evidence = expr.Invalid, "without a name in the file, so it cannot be asked for"
		}
		p.Columns = append(p.Columns, col)
	}
	p.nameColumns()
	for {
		err := p.parquetFacts(ctx, o, list)
		if err == nil || !p.leaveOut(err) {
			return err
		}
	}
}

// unreadable is a failure that concerns one column: its declaration or a value.
type unreadable struct{ fault *fault.Error }

func (u unreadable) Error() string { return u.fault.Error() }

func (u unreadable) Unwrap() error { return u.fault }

// leaveOut takes the column that could not be read from the script.
func (p *Proposal) leaveOut(err error) bool {
	var u unreadable
	if !errors.As(err, &u) {
		return false
	}
	place, found := u.fault.Place, false
	for i := range p.Columns {
		c := &p.Columns[i]
		if c.Source == place.Field && c.Type != expr.Invalid {
			c.Type, c.Evidence, found = expr.Invalid, "left out: "+u.fault.Message, true
			if place.Record > 0 {
				c.Evidence += fmt.Sprintf(" (record %d)", place.Record)
			}
		}
	}
	return found
}

// parquetFacts reads the columns that have a type, once.
func (p *Proposal) parquetFacts(ctx context.Context, o Options, list []script.FileColumn) (err error) {
	readable := p.readable()
	if len(readable) == 0 {
		return p.nothingReadable()
	}
	s, err := p.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(s.Instance, &err)
	const perColumn = 4
	cols := []string{"count(*)"}
	for _, c := range readable {
		name := sqltext.Ident(columnName(c.Index))
		text := "CAST(%s(" + name + ") AS VARCHAR)"
		example := func(which string) string { return fmt.Sprintf("left("+text+", %d)", which, exampleChars) }
		cols = append(cols, "count("+name+")", example("min"), example("max"), "typeof(min("+name+"))")
	}
	cells, err := s.row(ctx, cols, s.from)
	if err != nil {
		if f := fault.Of(err); f.Place.Record > 0 { // not damage: a value that does not fit
			return unreadable{f}
		}
		return err
	}
	p.Rows = number(cells[0])
	for i, c := range readable {
		own := cells[1+perColumn*i:]
		p.Columns[c.Index].describe(list[c.Index].Kind, p.Rows, p.Rows-number(own[0]), own[1].String, own[2].String)
		if c.Type == expr.Decimal && scaleOf(own[3].String) > 2 {
			p.Columns[c.Index].Evidence += "; stored with 2 digits after the point"
		}
	}
	return nil
}

// nothingReadable: a script needs a column.
func (p *Proposal) nothingReadable() error {
	f := fault.New(fault.UserData, "no column of the file can be read")
	if len(p.Columns) > 0 {
		c := p.Columns[0]
		f.Message += fmt.Sprintf("; the first, %q: %s", c.Source, c.Evidence)
	}
	f.Place.File = p.Path
	f.Hint = "write the file with columns of other types: docs/parquet.md lists those that are read"
	return f
}

func (c *Column) describe(kind string, rows, nulls int64, least, most string) {
	c.Evidence = kind
	switch {
	case rows == nulls:
		c.Evidence += ", no values"
	case c.Type == expr.String:
		c.Evidence += fmt.Sprintf(", %s … %s", quoted(least), quoted(most))
	default:
		c.Evidence += fmt.Sprintf(", %s … %s", shown(c.Type, least), shown(c.Type, most))
	}
	if nulls > 0 {
		c.Nullable = true
		c.Evidence += fmt.Sprintf("; %s NULL", grouped(nulls))
	}
}

// scaleOf is the number of digits behind the point of a type of the engine.
func scaleOf(typ string) int {
	var precision, scale int
	if _, err := fmt.Sscanf(typ, "DECIMAL(%d,%d)", &precision, &scale); err != nil {
		return 0
	}
	return scale
}
