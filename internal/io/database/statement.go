package database

import (
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// one refuses a query of several statements.
func one(src Source, kind string) error {
	_, more := sqltext.Statement(src.Query, sqltext.Dialect(kind))
	if more {
		f := fault.New(fault.Script, "the query has several statements, with semicolons between them")
		f.Hint = "make a node for each"
		return f
	}
	return nil
}

// onlySelect is the hint for what a database does not understand: only queries are written by people.
const onlySelect = "the query has to be one SELECT, without INTO and the like: it is run in parentheses"
