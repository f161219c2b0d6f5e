package infer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
)

// read reads all of the files as a run would, with the types that were chosen. A column whose values the engine
// reads otherwise becomes text, and they are to be read again.
func (p *Proposal) read(ctx context.Context, o Options) (again bool, err error) {
	refused, err := p.readAll(ctx, o)
	if refused == nil {
		return false, err
	}
	why := "most values cannot be read as " + refused.Type.String()
	if err != nil {
		why = fault.Of(err).Error()
	}
	refused.Type, refused.Format, refused.Nullable, refused.NullTexts = expr.String, "", false, nil
	refused.Evidence, refused.behind, refused.guess, refused.misfits = "text: "+why, "", "", 0
	return true, nil
}

// readAll is one such reading. refused is the column that it fails at, if it is one's fault.
func (p *Proposal) readAll(ctx context.Context, o Options) (refused *Column, err error) {
	if p.badStructure > 0 || p.anyMisfits() {
		return p.readSound(ctx, o)
	}
	s, err := p.open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer closing(s.Instance, &err)
	typed := s.typed()
	cols := []string{"count(*)"}
	for _, i := range typed {
		cols = append(cols, extremes(s.plainValue(i, sqltext.Ident(s.columns[i].Name)))...)
	}
	cells, err := s.row(ctx, cols, s.from)
	if err != nil {
		return p.columnOf(err), err
	}
	p.Rows = number(cells[0])
	s.describeTyped(typed, cells[1:])
	return nil, nil
}

// plainValue is a column's value without the zone that it may have.
func (s *source) plainValue(i int, value string) string {
	if s.reader.Columns[i].Zoned() {
		return "(" + value + ").t"
	}
	return value
}

// extremes are the least and the largest value of a column, as text.
func extremes(value string) []string {
	return []string{"CAST(min(" + value + ") AS VARCHAR)", "CAST(max(" + value + ") AS VARCHAR)"}
}

// readSound reads all but bad rows, and counts those. refused is a column that makes many rows bad.
func (p *Proposal) readSound(ctx context.Context, o Options) (refused *Column, err error) {
	s, err := p.source(ctx, o)
	if err != nil {
		return nil, err
	}
	typed := s.typed()
	used := map[string]bool{}
	for _, i := range typed {
		used[s.columns[i].Name] = true
	}
	for i, c := range s.columns {
		if p.someBroken || len(typed) == 0 && i == 0 { // texts have to be looked at, too
			used[c.Name] = true
		}
	}
	t, err := files.ReadTolerant(s.reader, s.slices, s.scratch, func(name string) bool { return used[name] })
	if err != nil {
		return nil, err
	}
	p.BadRows, p.firstBad = 0, nil
	first := func(rec files.BadRecord) error {
		if p.BadRows++; p.firstBad == nil {
			rec.Place.Record = 0
			p.firstBad = &fault.Error{Kind: fault.UserData, Place: rec.Place, Message: rec.Reason}
		}
		return nil
	}
	if err := t.Prepare(ctx, first); err != nil {
		return nil, err
	}
	if err := s.start(ctx, o); err != nil {
		return nil, err
	}
	defer closing(s.Instance, &err)
	var bad, cols []string
	for at, c := range s.reader.Columns {
		if used[c.Name] {
			bad = append(bad, files.TolerantColumn(at)+" IS NULL")
		}
	}
	for _, i := range typed {
		cols = append(cols, extremes(s.plainValue(i, files.TolerantColumn(i)+"[1]"))...)
		cols = append(cols, "count(*) FILTER (WHERE "+files.TolerantColumn(i)+" IS NULL)")
	}
	cols = append([]string{"count(*)", "count(*) FILTER (WHERE " + strings.Join(bad, " OR ") + ")"}, cols...)
	var cells []sql.NullString
	err = s.Tolerantly(ctx, func() (err error) {
		cells, err = s.row(ctx, cols, t.SQL)
		return err
	})
	if err != nil {
		return nil, err
	}
	var ends []sql.NullString
	const each = 3 // the extremes, and how many values cannot be read
	for k, i := range typed {
		of := cells[2+each*k : 2+each*(k+1)]
		c := s.columns[i]
		if bad := number(of[each-1]); bad > c.misfits && !tolerable(bad, number(cells[0])) {
			return c, nil
		}
		ends = append(ends, of[:each-1]...)
	}
	p.Rows = number(cells[0]) + p.BadRows
	p.BadRows += number(cells[1])
	s.describeTyped(typed, ends)
	return nil, nil
}

// typed are the columns that are more than text.
func (s *source) typed() (list []int) {
	for i, c := range s.columns {
		if c.Type != expr.String {
			list = append(list, i)
		}
	}
	return list
}

func (p *Proposal) anyMisfits() bool {
	for _, c := range p.Columns {
		if c.misfits > 0 {
			return true
		}
	}
	return false
}

// describeTyped says from where to where the values go.
func (s *source) describeTyped(typed []int, cells []sql.NullString) {
	for k, i := range typed {
		c := s.columns[i]
		c.Evidence = fmt.Sprintf("%s … %s", shown(c.Type, cells[2*k].String), shown(c.Type, cells[2*k+1].String))
		if c.Type == expr.Int && looksLikeDays(cells[2*k].String) && looksLikeDays(cells[2*k+1].String) {
			c.Evidence += `; might be days in the format 20060102`
		}
	}
}

// columnOf is the column at which a reading failed, nil if it is nobody's.
func (p *Proposal) columnOf(err error) *Column {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.UserData {
		return nil
	}
	for i := range p.Columns {
		if c := &p.Columns[i]; f.Place.Field == c.Name && c.Type != expr.String && c.Type != expr.Invalid {
			return c
		}
	}
	return nil
}

// start opens an instance that may read the source's files.
func (s *source) start(ctx context.Context, o Options) (err error) {
	paths := []string{s.scratch}
	for _, slice := range s.slices {
		paths = append(paths, slice.Path)
	}
	s.Instance, err = engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: o.MemoryBytes, Threads: o.Threads,
		SpillDir: filepath.Join(o.WorkDir, "spill"), Paths: paths, Unlocked: true})
	return err
}

// shown is a least or largest value as evidence.
func shown(t expr.Type, s string) string {
	if t == expr.DateTime {
		return strings.TrimSuffix(s, " 00:00:00")
	}
	return s
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func counted(n int64, what string) string { return format.Counted(n, what, what+"s") }

func rowsText(n int64) string { return counted(n, "row") }

func grouped(n int64) string { return format.Count(n) }
