package script

import (
	"slices"

	"thalweg/internal/base/document"
)

// Values lists the columns of an index that are not its key: what a row is found to have.
func (w *FileWriter) Values() []*OutputColumn {
	return slices.DeleteFunc(slices.Clone(w.Columns), func(c *OutputColumn) bool { return slices.Contains(w.Index, c) })
}

// indexOutput reads by which columns the rows of an index are found.
func (l *loader) indexOutput(o, index *object, w *FileWriter) {
	for _, key := range []string{"target_size", "partition_by"} {
		if v := o.get(key); v != nil {
			l.ErrorAt(v, o.keyPath(key), "an index is one file: it is not cut into others").Hint = "leave " + key +
				" out; with {batch_idx} in its name each batch writes an index of its own"
		}
	}
	switch {
	case len(w.Columns) == 0: // which was said
		return
	case !o.has("index"):
		o.missing("index", "name the columns that a row is found by: index: {key: [id]}")
		return
	case !index.has("key"):
		if index != nil {
			index.missing("key", "name the columns that a row is found by: key: [id]")
		}
		return
	}
	for _, name := range index.names("key") {
		at := index.keyPath("key")
		c := w.column(name.name)
		switch {
		case c == nil:
			l.ErrorAt(name.at, at, "the file has no column called %s", document.Quote(name.name)).Hint =
				document.DidYouMean(name.name, w.columnNames())
		case slices.Contains(w.Index, c):
			l.ErrorAt(name.at, at, "column %s is there twice", name.name)
		default:
			w.Index = append(w.Index, c)
		}
	}
	if len(w.Index) == len(w.Columns) {
		l.ErrorAt(index.get("key"), index.keyPath("key"), "all columns are in the key: a row has no value").Hint =
			"add a column, true or 1 where only the key counts"
	}
}
