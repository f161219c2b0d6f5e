package database

import (
	"errors"
	"strings"

	"thalweg/internal/fault"
	"thalweg/internal/sqltext"
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

func isSyntax(text string) bool {
	return strings.Contains(text, syntaxError) || strings.Contains(text, "syntax error")
}

// queryFault says what to do about a query that a database does not understand, where it
// stands in parentheses.
func queryFault(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Hint == "" && (isSyntax(f.Message) || f.Err != nil && isSyntax(f.Err.Error())) {
		f.Hint = onlySelect
	}
	return err
}

const (
	syntaxError = "error in your SQL syntax" // of MySQL
	onlySelect  = "the query has to be one SELECT, without INTO and the like: it is run in parentheses"
)
