package sqltext

import (
	"fmt"
	"strings"
)

// NegativeZero is in the message of a guarded COPY's failure.
const NegativeZero = "thalweg: -0 beside a dictionary"

// Copy is a COPY of rows into one file, which it makes or replaces.
//
// DuckDB 1.5.5 looks values up in a Parquet column's dictionary by equality,
// so that of -0 and 0 both become whichever came first in their row group, and
// so do NaNs of different bits: a result would depend on how its work was cut.
// NaN has no sign that anybody could mean, so all are written as one. -0 has,
// but is rare, and without dictionaries repeated texts are many times as large:
// a COPY is first tried with dictionaries and a guard that fails at the first
// -0, and done without them when it does. docs/decisions/0019-negative-zero.md
// has the figures.
type Copy struct {
	Query   string   // SELECT of the rows, in order
	Path    string   // of the file
	Options []string // of the statement, like "FORMAT parquet"
	Floats  []string // DOUBLE columns of Query, if the file is Parquet
}

// SQL is the statement as it is meant, for people.
func (c Copy) SQL() string { return c.copyOf(c.Query, c.Options) }

// Guarded is the statement to be tried first: it fails with NegativeZero in
// its message if dictionaries could take a -0 for 0.
func (c Copy) Guarded() string {
	return c.sql("WHEN %[1]s = 0 AND signbit(%[1]s) THEN error("+String(NegativeZero)+") ", c.Options)
}

// Exact is the statement that keeps -0 apart from 0, in a larger file.
func (c Copy) Exact() string {
	if len(c.Floats) == 0 {
		return c.sql("", c.Options)
	}
	return c.sql("", append(c.Options[:len(c.Options):len(c.Options)], "DICTIONARY_SIZE_LIMIT 0"))
}

// sql has a further case of each float column, with its name as %[1]s.
func (c Copy) sql(further string, options []string) string {
	query := c.Query
	if len(c.Floats) > 0 {
		columns := make([]string, len(c.Floats))
		for i, f := range c.Floats {
			columns[i] = fmt.Sprintf("CASE "+further+
				"WHEN isnan(%[1]s) THEN CAST('nan' AS DOUBLE) ELSE %[1]s END AS %[1]s", Ident(f))
		}
		query = "SELECT * REPLACE (" + strings.Join(columns, ", ") + ") FROM (" + query + ")"
	}
	return c.copyOf(query, options)
}

func (c Copy) copyOf(query string, options []string) string {
	return "COPY (" + query + ") TO " + String(c.Path) + " (" + strings.Join(options, ", ") + ")"
}
