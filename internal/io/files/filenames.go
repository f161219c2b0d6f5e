package files

import (
	"cmp"
	"regexp"
	"slices"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

// fixedCell is the one value of a column in all rows of a file. It is part of the file's name, or nothing for
// a missing optional column.
type fixedCell struct {
	text  string
	empty bool // as an empty cell without quotes
	named bool // it is of the file's name
}

// namer finds the values of columns that are taken from files' names.
type namer struct {
	r        *script.FileReader
	patterns []script.NamePattern
}

var slashes = regexp.MustCompile("//+")

func newNamer(r *script.FileReader) *namer {
	n := &namer{r: r}
	for _, u := range r.URLs {
		pattern := u.Pattern
		switch {
		case pattern == "":
			continue
		case address.Remote(pattern):
		case address.Scheme(pattern) != "":
			pattern = address.Unescape(pattern[len(address.Scheme(pattern))+len("://"):])
			fallthrough
		default:
			pattern = slashes.ReplaceAllString(pattern, "/")
		}
		n.patterns = append(n.patterns, script.ParseNamePattern(pattern))
	}
	return n
}

// cells has a value for each column that is taken from the name, nil for the others.
func (n *namer) cells(src source) ([]*fixedCell, error) {
	out := make([]*fixedCell, len(n.r.Columns))
	var values map[string]script.PartValue
	for i, c := range n.r.Columns {
		switch {
		case c.InFile():
			continue
		case !c.Part:
			out[i] = &fixedCell{text: src.url, named: true}
			continue
		case values == nil:
			var err error
			if values, err = n.values(src); err != nil {
				return nil, err
			}
		}
		v := values[c.File]
		out[i] = &fixedCell{text: v.Text, empty: v.Null, named: true}
	}
	return out, nil
}

func (n *namer) values(src source) (map[string]script.PartValue, error) {
	for _, p := range n.patterns {
		values, twofold := p.Values(src.url)
		if twofold != "" {
			f := src.bad("what part <%s> of the file's name is can be read in two ways", twofold)
			f.Hint = "write what stands between two parts so that it occurs once, or take one part and cut it in an expression"
			return nil, f
		}
		if values != nil {
			return values, nil
		}
	}
	f := src.bad("the file's name has not the parts that urls ask for")
	f.Hint = "a part stands for one or more characters but /: dir/<region>/<day>.csv"
	return nil, f
}

// fixedText is a fixed cell's text in SQL, as columnTexts has those of cells.
func fixedText(c *script.InputColumn, cell *fixedCell) string {
	switch {
	case !cell.empty:
		return sqltext.String(cell.text)
	case tellsQuotes(c):
		return "CAST(NULL AS VARCHAR)"
	}
	return "''"
}

// fixedValue renders the value of a column of a Parquet file whose cell is fixed.
func fixedValue(c *script.InputColumn, cell *fixedCell) (string, error) {
	if !cell.empty {
		return csvValue(c, sqltext.String(cell.text))
	}
	if c.Nullable {
		return "CAST(NULL AS " + storedType(c) + ")", nil
	}
	otherwise, err := expr.DefaultSQL(c.Type, c.Default, c.Format)
	if err != nil {
		return "", scriptFault(c.Pos, c.Name, "default_value %q of column %s: %s", shorten(c.Default), c.Name, err)
	}
	return otherwise, nil
}

// fixedFault says that a part of a file's name is no value of its column.
func (s source) fixedFault(c *script.InputColumn, cell *fixedCell) *fault.Error {
	f := s.bad("%s; it is taken from the file's name", notOfType(c, cell.text))
	f.Place.Field, f.Place.Value = c.Name, shorten(cell.text)
	return f
}

// Lacking lists the inputs among slices that have not all optional columns, with those.
func Lacking(r *script.FileReader, list []Slice) (out []string, err error) {
	var optional []*script.InputColumn
	for _, c := range r.Columns {
		if c.Optional {
			optional = append(optional, c)
		}
	}
	if len(optional) == 0 || r.Records != "" { // each record may lack others
		return nil, nil
	}
	for _, s := range list {
		if s.Offset > 0 || s.FirstRow > 0 || s.FileBytes == 0 { // it is said once of a file
			continue
		}
		has, err := s.columns(r)
		if err != nil {
			return nil, err
		}
		var missing []string
		for _, c := range optional {
			if !has(c) {
				missing = append(missing, cmp.Or(c.Header+c.Parquet, c.Name))
			}
		}
		if len(missing) > 0 {
			out = append(out, "input file "+s.URL+" has no column "+quoteList(missing)+
				", which may be missing: it is as if its cells were empty")
		}
	}
	return out, nil
}

// Further lists the CSV files among slices that have columns which the first file, from
// which the columns were taken, has not: nobody has asked for them, or has left them out.
func Further(r *script.FileReader, list []Slice) (out []string) {
	if r.First == nil || r.Parquet || r.Records != "" || r.CSV.HeaderRecord < 0 {
		return nil
	}
	known := slices.Clone(r.First)
	for _, c := range r.Columns { // some may be optional, and not in the first file
		known = append(known, c.Header)
	}
	for _, s := range list {
		if s.Offset > 0 || s.FileBytes == 0 { // it is said once of a file
			continue
		}
		header, err := headerRecord(r, s)
		if err != nil {
			continue // who has read the records has judged the file
		}
		var more []string
		for _, name := range header {
			if name != "" && !slices.Contains(known, name) {
				more = append(more, name)
			}
		}
		if len(more) > 0 {
			out = append(out, "input file "+s.URL+" has a column "+quoteList(more)+
				", which the first file has not: it is left out")
		}
	}
	return out
}

// columns reports of columns of the reader whether a slice's file has them.
func (s Slice) columns(r *script.FileReader) (func(c *script.InputColumn) bool, error) {
	if r.Parquet {
		f, err := s.source().footer(nil)
		if err != nil {
			return nil, err
		}
		return func(c *script.InputColumn) bool { return !lacks(c, f) }, nil
	}
	header, err := headerRecord(r, s)
	return func(c *script.InputColumn) bool { return hasColumn(header, c) }, err
}
