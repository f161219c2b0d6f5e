package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/format"
	"thalweg/internal/io/files"
	"thalweg/internal/store/state"
)

// coversMax is how many files and parts of a batch's slice are named.
const coversMax = 3

// CoversOf says what a batch's slice is, without values of the data: rows of files, of parts of a table, or a bucket
// of keys. "": its work is not known.
func CoversOf(spec state.BatchSpec) string {
	var w Work
	if len(spec.Work) == 0 || w.Decode(spec) != nil { // what cannot be read is not shown
		return ""
	}
	return w.covers()
}

func (w *Work) covers() string {
	var out []string
	switch {
	case w.Manifest:
		return "the manifest of the files"
	case w.BadCaps:
		return "counts of bad rows"
	case w.Ranged:
		out = append(out, rowsText(w.FromRow, w.ToRow))
	}
	for _, s := range slices.Concat(append([][]files.Slice{w.Files}, w.Scans...)...) {
		out = append(out, fileText(s))
	}
	for _, s := range w.Parts {
		text := fmt.Sprintf("part %d", s.Part)
		if s.To > 0 {
			text = rowsText(s.From, s.To) + " of " + text
		}
		out = append(out, text)
	}
	if more := len(out) - coversMax; more > 0 {
		out = append(out[:coversMax], format.Counted(int64(more), "other", "others"))
	}
	if w.Range != nil {
		out = append(out, "a range of keys")
	}
	if w.Buckets > 1 {
		out = append(out, fmt.Sprintf("bucket %d of %d", w.Bucket, w.Buckets))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Inner)) {
		out = append(out, fmt.Sprintf("%s of %s", w.Inner[name].covers(), name))
	}
	if len(out) == 0 {
		out = []string{"all rows"}
	}
	if w.Check {
		out = append([]string{"checks"}, out...)
	}
	return strings.Join(out, ", ")
}

// rowsText names rows as people count them, from 1 on. to is exclusive.
func rowsText(from, to int64) string {
	return fmt.Sprintf("rows %s to %s", format.Count(from+1), format.Count(to))
}

func fileText(s files.Slice) string {
	switch {
	case s.Rows > 0:
		return rowsText(s.FirstRow, s.FirstRow+s.Rows) + " of " + s.URL
	case s.Length > 0 && s.Length < s.FileBytes:
		return fmt.Sprintf("%s of %s from line %s on", format.Size(s.Length), s.URL, format.Count(s.FirstLine))
	}
	return s.URL
}
