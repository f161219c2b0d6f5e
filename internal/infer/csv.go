package infer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/sqltext"
)

const (
	// sampleRows of a file say which types are worth trying on all of it.
	sampleRows = 2_000
	// chunkColumns are looked at in one pass over the file.
	chunkColumns = 40
	// hopelessShare: a type that does not fit so much of the sample is not tried on.
	hopelessShare = 0.1
	// exampleChars of a value are shown as evidence.
	exampleChars = 24
)

// facts are what a pass over the file tells of a column.
type facts struct {
	rows, blank, nullLike int64
	nullTexts             []string
	leadingZeros, pluses  int64
	sampled, different    int64 // of the first rows
	least, most           string
	fits                  []fit
}

// fit is how well a candidate does.
type fit struct {
	candidate
	misfits     int64
	example     string // of a misfit
	least, most string
}

// csv looks at a sample for types that are worth trying, then at all of the
// file with those.
func (p *Proposal) csv(ctx context.Context, o Options) (err error) {
	s, err := p.open(ctx, o)
	if err != nil {
		return err
	}
	defer closing(s.Instance, &err)
	for from := 0; from < len(p.Columns); from += chunkColumns {
		to := min(from+chunkColumns, len(p.Columns))
		samples, err := s.sample(ctx, from, to)
		if err != nil {
			return err
		}
		whole, err := s.pass(ctx, from, samples)
		if err != nil {
			return err
		}
		for i, f := range whole {
			p.Rows = f.rows
			f.sampled, f.different = samples[i].rows, samples[i].different
			p.Columns[from+i].choose(f)
		}
	}
	return nil
}

// sampled is what the first rows of a file tell of a column.
type sampled struct {
	rows, different int64
	worth           []candidate // those that many of the values look like
}

// sample looks at columns [from, to) by shape only.
func (s *source) sample(ctx context.Context, from, to int) ([]sampled, error) {
	list := candidates()
	cols := []string{"count(*)"}
	for i := from; i < to; i++ {
		c := sqltext.Ident(columnName(i))
		cols = append(cols, fmt.Sprintf("count(DISTINCT %s) FILTER (WHERE %s)", c, filledSQL(c)), fmt.Sprintf("count(*) FILTER (WHERE %s)", filledSQL(c)))
		for _, cand := range list {
			cols = append(cols, fmt.Sprintf("count(*) FILTER (WHERE %s AND %s)", filledSQL(c), cand.unlike(c)))
		}
	}
	cells, err := s.row(ctx, cols, fmt.Sprintf("(SELECT * FROM %s LIMIT %d)", s.from, sampleRows))
	if err != nil {
		return nil, err
	}
	out := make([]sampled, to-from)
	rows, cells := number(cells[0]), cells[1:]
	for i := range out {
		out[i] = sampled{rows: rows, different: number(cells[0])}
		filled := number(cells[1])
		cells = cells[2:]
		for k, cand := range list {
			if float64(number(cells[k])) <= hopelessShare*float64(filled) {
				out[i].worth = append(out[i].worth, cand)
			}
		}
		cells = cells[len(list):]
	}
	return out, nil
}

// filledSQL is the condition that a cell says something.
func filledSQL(column string) string {
	return fmt.Sprintf("trim(%s) <> '' AND NOT list_contains(%s, %s)", column, sqltext.Strings(nullLike()), column)
}

// pass measures columns from the given one on, one row of figures for all.
func (s *source) pass(ctx context.Context, from int, samples []sampled) ([]facts, error) {
	const perColumn, perFit = 7, 4
	cols := []string{"count(*)"}
	nulls := sqltext.Strings(nullLike())
	for i, sample := range samples {
		c := sqltext.Ident(columnName(from + i))
		filled := filledSQL(c)
		cols = append(cols,
			fmt.Sprintf("count(*) FILTER (WHERE trim(%s) = '')", c),
			fmt.Sprintf("count(*) FILTER (WHERE list_contains(%s, %s))", nulls, c),
			fmt.Sprintf("array_to_string(list_sort(list(DISTINCT %s) FILTER (WHERE list_contains(%s, %s))), chr(10))", c, nulls, c),
			fmt.Sprintf("count(*) FILTER (WHERE regexp_full_match(%s, '[+-]?0[0-9]+'))", c),
			fmt.Sprintf("count(*) FILTER (WHERE regexp_full_match(%s, '[+][0-9][0-9.]*'))", c),
			fmt.Sprintf("min(left(%s, %d)) FILTER (WHERE %s)", c, exampleChars, filled),
			fmt.Sprintf("max(left(%s, %d)) FILTER (WHERE %s)", c, exampleChars, filled))
		for _, cand := range sample.worth {
			value, err := cand.value(c)
			if err != nil {
				return nil, err
			}
			cols = append(cols,
				fmt.Sprintf("count(*) FILTER (WHERE %s AND (%s) IS NULL)", filled, value),
				fmt.Sprintf("min(left(%s, %d)) FILTER (WHERE %s AND (%s) IS NULL)", c, exampleChars, filled, value),
				fmt.Sprintf("CAST(min(%s) FILTER (WHERE %s) AS VARCHAR)", value, filled), fmt.Sprintf("CAST(max(%s) FILTER (WHERE %s) AS VARCHAR)", value, filled))
		}
	}
	cells, err := s.row(ctx, cols, s.from)
	if err != nil {
		return nil, err
	}
	rows, cells := number(cells[0]), cells[1:]
	out := make([]facts, len(samples))
	for i, sample := range samples {
		f := facts{
			rows:         rows,
			blank:        number(cells[0]),
			nullLike:     number(cells[1]),
			leadingZeros: number(cells[3]),
			pluses:       number(cells[4]),
			least:        cells[5].String,
			most:         cells[6].String,
		}
		if cells[2].String != "" {
			f.nullTexts = strings.Split(cells[2].String, "\n")
		}
		cells = cells[perColumn:]
		for _, cand := range sample.worth {
			f.fits = append(f.fits, fit{candidate: cand, misfits: number(cells[0]), example: cells[1].String, least: cells[2].String, most: cells[3].String})
			cells = cells[perFit:]
		}
		out[i] = f
	}
	return out, nil
}

// readRow reads the only row of a query as texts.
func readRow(ctx context.Context, in *engine.Instance, query string, columns int) ([]sql.NullString, error) {
	rows, err := in.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	cells := make([]sql.NullString, columns)
	into := make([]any, columns)
	for i := range cells {
		into[i] = &cells[i]
	}
	if rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
	}
	return cells, rows.Err()
}

func number(c sql.NullString) int64 {
	var n int64
	if _, err := fmt.Sscan(c.String, &n); err != nil {
		return 0
	}
	return n
}

// choose takes the first type that fits all values that are there.
func (c *Column) choose(f facts) {
	c.Type = expr.String
	filled := f.rows - f.blank - f.nullLike
	var fitting []fit
	var near *fit
	for i, one := range f.fits {
		switch {
		case one.misfits == 0:
			fitting = append(fitting, one)
		case one.typ != expr.Int && one.typ != expr.Decimal || f.leadingZeros == 0:
			if near == nil || one.misfits < near.misfits {
				near = &f.fits[i]
			}
		}
	}
	switch {
	case filled == 0:
		c.Evidence = "no values"
	case len(fitting) > 1 && fitting[0].typ == expr.DateTime:
		c.Evidence = fmt.Sprintf("text %s … %s: every value is a datetime both of %s and of %s, so choose", quoted(f.least), quoted(f.most), fitting[0].format, fitting[1].format)
		return
	case len(fitting) > 0:
		c.take(fitting[0], f)
	default:
		c.Evidence = fmt.Sprintf("text, %s different in %s, %s … %s", grouped(f.different), rowsText(f.sampled), quoted(f.least), quoted(f.most))
		switch {
		case f.leadingZeros > 0:
			c.Evidence += fmt.Sprintf("; %s have leading zeros, which a number would lose", grouped(f.leadingZeros))
		case f.pluses > 0:
			c.Evidence += fmt.Sprintf("; %s have a plus sign, which a number would lose", grouped(f.pluses))
		case near != nil:
			c.Evidence += fmt.Sprintf("; not %s because of %s, e.g. %s", near.candidate, counted(near.misfits, "value"), quoted(near.example))
		}
	}
	if f.blank > 0 {
		c.Evidence += fmt.Sprintf("; %s empty", grouped(f.blank))
	}
}

// take makes the fit the column's type; empty cells and texts that stand for
// nothing become NULL then.
func (c *Column) take(chosen fit, f facts) {
	c.Type, c.Format = chosen.typ, chosen.format
	c.Evidence = fmt.Sprintf("%s … %s", shown(c.Type, chosen.least), shown(c.Type, chosen.most))
	if c.Type == expr.Int && looksLikeDays(chosen.least) && looksLikeDays(chosen.most) {
		c.Evidence += `; might be days: datetime with format "20060102"`
	}
	if f.blank+f.nullLike == 0 {
		return
	}
	c.Nullable = true
	if f.nullLike > 0 {
		c.NullTexts = f.nullTexts
		if f.blank > 0 {
			c.NullTexts = append([]string{""}, c.NullTexts...)
		}
		c.Evidence += fmt.Sprintf("; %s of %s", grouped(f.nullLike), strings.Join(f.nullTexts, ", "))
	}
}

func looksLikeDays(s string) bool {
	day, err := time.Parse("20060102", s)
	return err == nil && day.Year() >= 1900 && day.Year() <= 2100
}

// shown is a least or largest value as evidence.
func shown(t expr.Type, s string) string {
	if t == expr.DateTime {
		return strings.TrimSuffix(s, " 00:00:00")
	}
	return s
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped writes a count with separators.
func rowsText(n int64) string {
	if n == 1 {
		return "1 row"
	}
	return grouped(n) + " rows"
}

func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
