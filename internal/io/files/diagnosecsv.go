package files

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// diagnoseCSV goes through the slices in order: first the structure of each
// as encoding/csv sees it, then its first value that does not convert, which
// DuckDB finds.
func diagnoseCSV(ctx context.Context, db Querier, r *script.FileReader, slices []Slice, scratchDir string) error {
	for _, s := range slices {
		plan, err := planCSV(r, []Slice{s}, filepath.Join(scratchDir, "diagnose"), Positioned)
		if err != nil {
			return err
		}
		if len(plan.runs) == 0 {
			continue
		}
		if err := s.unchanged(); err != nil {
			return err
		}
		c := csvSlice{Slice: s, r: r, head: plan.runs[0].head, lines: plan.runs[0].head.lines}
		if err := c.checkStructure(ctx); err != nil {
			return err
		}
		if err := plan.prepare(ctx); err != nil {
			return err
		}
		if err := c.checkValues(ctx, db, plan); err != nil {
			return err
		}
	}
	return nil
}

// checkStructure finds what no reading of values can survive.
func (c *csvSlice) checkStructure(ctx context.Context) error {
	for rec, err := range c.records(ctx) {
		switch {
		case err != nil:
			return err
		case rec.flaw != flawNone:
			return c.fault(rec)
		}
		for i, n := range c.head.index {
			if n < 0 {
				continue
			}
			value := rec.shape.value(rec.text, n)
			if utf8.Valid(value) {
				continue
			}
			f := c.source().bad("column %s is not valid UTF-8", c.r.Columns[i].Name)
			c.place(f, rec, i, strings.ToValidUTF8(string(value), "\uFFFD"))
			f.Hint = notUTF8Hint(ctx, c.Path)
			return f
		}
	}
	return nil
}

// checkValues asks DuckDB for the first record with a value that is neither
// blank nor of its column's type.
func (c *csvSlice) checkValues(ctx context.Context, db Querier, plan *csvPlan) error {
	var bad, which []string
	texts := columnTexts(c.r, c.head)
	for i, col := range c.r.Columns {
		if col.Type == expr.String {
			continue
		}
		wrong, err := csvBad(col, texts[i])
		if err != nil {
			return err
		}
		bad = append(bad, wrong)
		which = append(which, fmt.Sprintf("WHEN %s THEN %d", wrong, i))
	}
	if len(bad) == 0 {
		return nil
	}
	row, err := queryRow(ctx, db, "SELECT CAST(n AS VARCHAR), CAST(CASE "+strings.Join(which, " ")+
		" END AS VARCHAR) FROM (SELECT *, row_number() OVER () AS n FROM "+
		plan.reader(plan.runs[0], c.head.field)+") WHERE "+strings.Join(bad, " OR ")+" ORDER BY n LIMIT 1")
	if err != nil || row == nil {
		return err
	}
	n, err := strconv.ParseInt(row[0].String, 10, 64)
	if err != nil {
		return err
	}
	i, err := strconv.Atoi(row[1].String)
	if err != nil {
		return err
	}
	return c.valueFault(ctx, c.FirstRecord+n-1, i)
}

// valueFault reports column i of a record.
func (c *csvSlice) valueFault(ctx context.Context, record int64, i int) error {
	col := c.r.Columns[i]
	if cell := c.head.fixed[i]; cell != nil {
		return c.source().fixedFault(col, cell)
	}
	for rec, err := range c.records(ctx) {
		switch {
		case err != nil:
			return err
		case rec.flaw != flawNone:
			return c.fault(rec)
		case c.FirstRecord+rec.row < record:
			continue
		}
		value := string(rec.shape.value(rec.text, c.head.index[i]))
		f := c.source().bad("%s", notOfType(col, value))
		if _, f.Hint = tooFine(c.r, col, value); f.Hint == "" {
			f.Hint = valueHint(c.r, col, value)
		}
		c.place(f, rec, i, value)
		return f
	}
	return nil
}

// describeType says what a column's cells must look like.
func describeType(c *script.InputColumn) string {
	names := map[expr.Type]string{expr.Int: "an int", expr.Float: "a float",
		expr.Bool:     "a bool (1, t, true, 0, f, false …)",
		expr.DateTime: "a datetime"}
	name := cmp.Or(names[c.Type], "a "+c.Type.String())
	switch {
	case c.Zone != "":
		return fmt.Sprintf("%s in the format %q that clocks of %s show once", name, c.Format, c.Zone)
	case c.Format != "":
		return fmt.Sprintf("%s in the format %q", name, c.Format)
	case c.Type == expr.Date:
		name += " like 2024-12-31"
	case c.Type == expr.Instant:
		name += " like 2024-12-31T23:59:59.123456+01:00"
	}
	return name + numbersText(c.Numbers)
}
