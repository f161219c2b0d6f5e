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
// a result would depend on how its work was cut. Without dictionaries repeated
// texts are many times as large, and -0 is rare: a COPY is first tried with
// dictionaries and a guard that fails at the first -0, and done without them
// when it does. docs/decisions/0019-negative-zero.md has the figures.
type Copy struct {
	Query   string   // SELECT of the rows, in order
	Path    string   // of the file
	Options []string // of the statement, like "FORMAT parquet"
	Floats  []string // DOUBLE columns of Query, if the file is Parquet
}

// SQL is the statement as it is meant.
func (c Copy) SQL() string { return c.sql(c.Query, c.Options) }

// Guarded is the statement to be tried first: it fails with NegativeZero in
// its message if SQL could take a -0 for 0.
func (c Copy) Guarded() string {
	if len(c.Floats) == 0 {
		return c.SQL()
	}
	guards := make([]string, len(c.Floats))
	for i, f := range c.Floats {
		x := Ident(f)
		guards[i] = fmt.Sprintf("CASE WHEN %s = 0 AND signbit(%s) THEN error(%s) ELSE %s END AS %s", x, x, String(NegativeZero), x, x)
	}
	return c.sql("SELECT * REPLACE ("+strings.Join(guards, ", ")+") FROM ("+c.Query+")", c.Options)
}

// Exact is the statement that keeps -0 apart from 0, in a larger file.
func (c Copy) Exact() string {
	return c.sql(c.Query, append(c.Options[:len(c.Options):len(c.Options)], "DICTIONARY_SIZE_LIMIT 0"))
}

func (c Copy) sql(query string, options []string) string {
	return "COPY (" + query + ") TO " + String(c.Path) + " (" + strings.Join(options, ", ") + ")"
}
