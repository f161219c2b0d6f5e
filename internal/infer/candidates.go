package infer

import (
	"fmt"
	"strings"

	"thalweg/internal/expr"
	"thalweg/internal/sqltext"
)

// candidate is a type that a CSV column may have.
type candidate struct {
	typ    expr.Type
	format string
	shape  string // pattern that the whole text must match besides
}

func (c candidate) String() string {
	if c.format != "" {
		return c.typ.String() + " " + c.format
	}
	return c.typ.String()
}

// candidates lists the types from the narrowest on. Patterns keep away texts
// that a type's reading accepts but that hardly mean it: 1 and t as truth
// values, 007 and +1 as a number, a third decimal that would be rounded away, more
// digits before the point than a float has.
func candidates() []candidate {
	list := []candidate{
		{expr.Bool, "", `(?i)true|false`},
		{expr.Int, "", `0|-?[1-9][0-9]*`},
		{expr.Decimal, "", `-?(0|[1-9][0-9]*)(\.[0-9]{1,2})?`},
		{expr.Float, "", `-?(0|[1-9][0-9]{0,14})?(\.[0-9]*)?([eE][+-]?[0-9]+)?`},
	}
	for _, layout := range layouts() {
		list = append(list, candidate{expr.DateTime, layout, layoutShape(layout)})
	}
	return list
}

// layouts of datetimes that are tried; where two fit, see choose.
func layouts() []string {
	return []string{
		"2006-01-02", "2006-01-02 15:04:05", "2006-01-02 15:04:05.000", "2006-01-02 15:04",
		"2006-01-02T15:04:05", "2006-01-02T15:04:05.000", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05.000Z07:00",
		"2006/01/02", "2006/01/02 15:04:05", "01/02/2006", "02/01/2006", "01/02/2006 15:04:05", "02/01/2006 15:04:05",
		"02.01.2006", "02.01.2006 15:04:05", "2006/01/02 15:04", "01/02/2006 15:04", "02/01/2006 15:04", "02.01.2006 15:04", "02-Jan-2006", "Jan 2, 2006",
	}
}

// layoutShape is a pattern of what a layout reads: cheap to try before it is
// parsed. Seconds may have a fraction wherever they end.
func layoutShape(layout string) string {
	return strings.NewReplacer(".000", `\.[0-9]+`, "05", `[0-9]{2}(\.[0-9]+)?`, "2006", `[0-9]{4}`, "Jan", `[A-Za-z]{3}`, "Z07:00", `(Z|[+-][0-9]{2}:[0-9]{2})`,
		"01", `[0-9]{2}`, "02", `[0-9]{2}`, "15", `[0-9]{2}`, "04", `[0-9]{2}`, "2", `[0-9]{1,2}`, ".", `\.`).Replace(layout)
}

// nullLike lists texts that usually stand for a missing value.
func nullLike() []string {
	return []string{"NULL", "null", "Null", "NA", "N/A", "n/a", "na", `\N`, "None", "none", "NaN", "nan", "-", "?"}
}

// unlike is the condition that a text of a column does not look like the type.
func (c candidate) unlike(column string) string {
	return fmt.Sprintf("NOT regexp_full_match(%s, %s)", column, sqltext.String(c.shape))
}

// value renders the reading of a column's text: NULL if it does not have the type.
func (c candidate) value(column string) (string, error) {
	parsed, err := expr.ScanSQL(c.typ, c.format, column)
	if err != nil {
		return "", fmt.Errorf("render %s: %w", c, err)
	}
	return fmt.Sprintf("CASE WHEN NOT (%s) THEN %s END", c.unlike(column), parsed), nil
}
