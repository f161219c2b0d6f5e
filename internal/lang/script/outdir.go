package script

import (
	"strconv"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// targetBytesMin is the smallest file that a script may ask for: less is a mistake of units.
const targetBytesMin = 1 << 10

// DirManifest is the name of the manifest in a directory of output files.
const DirManifest = "_manifest.json"

// Dir reports whether the output is a directory of files, which replaces what an
// earlier run left there as a whole.
func (w *FileWriter) Dir() bool { return len(w.PartitionBy) > 0 || w.TargetBytes > 0 }

// InFiles lists the columns that are in the files: those that directories are named by are not.
func (w *FileWriter) InFiles() []*OutputColumn {
	var out []*OutputColumn
	for _, c := range w.Columns {
		if !w.partitions(c) {
			out = append(out, c)
		}
	}
	return out
}

func (w *FileWriter) partitions(c *OutputColumn) bool {
	for _, p := range w.PartitionBy {
		if p == c {
			return true
		}
	}
	return false
}

// outputDir reads what makes the output a directory of files.
func (l *loader) outputDir(o *object, w *FileWriter) {
	l.partitionBy(o, w)
	if v := o.text("target_size"); v != nil {
		bytes, ok := byteSize(v.Text)
		switch {
		case !ok:
			l.ErrorAt(v, o.keyPath("target_size"), "target_size cannot be %s", document.Quote(v.Text)).Hint =
				"write a size with its unit: 256MB, 1GB, 64MiB"
		case bytes < targetBytesMin:
			l.ErrorAt(v, o.keyPath("target_size"), "target_size is %s, which is less than %d bytes", v.Text,
				targetBytesMin).Hint = "write a size with its unit: 256MB, 1GB, 64MiB"
		default:
			w.TargetBytes = bytes
		}
	}
	if !w.Dir() {
		return
	}
	key := "partition_by"
	if len(w.PartitionBy) == 0 {
		key = "target_size"
	}
	url := o.get("url_template")
	switch {
	case url == nil:
	case w.PerBatch():
		l.ErrorAt(url, o.keyPath("url_template"),
			"with %s the output is a directory, whose files are numbered: it has no {batch_idx}",
			key).Hint = "leave {batch_idx} out of the name"
	case address.Remote(w.URL):
		l.ErrorAt(url, o.keyPath("url_template"),
			"with %s the output is a directory, which only this machine's file systems replace as a whole", key).Hint =
			"write it to a local path, or leave " + key + " out"
	}
	if v := o.get("manifest"); v != nil && !w.Manifest {
		l.ErrorAt(v, o.keyPath("manifest"), "a directory of files always has a manifest, %s",
			DirManifest).Hint = "leave manifest out"
	}
	w.Manifest = true
}

// partitionBy reads the columns that directories are named by.
func (l *loader) partitionBy(o *object, w *FileWriter) {
	seen := map[*OutputColumn]bool{}
	for _, name := range o.names("partition_by") {
		at := o.keyPath("partition_by")
		c := w.column(name.name)
		switch {
		case c == nil:
			l.ErrorAt(name.at, at, "the file has no column called %s", document.Quote(name.name)).Hint =
				document.DidYouMean(name.name, w.columnNames())
			continue
		case seen[c]:
			l.ErrorAt(name.at, at, "column %s is there twice", name.name)
			continue
		case !l.isKey(name.at, at, name.name, c.Type):
			continue
		case c.Type == expr.Float:
			l.ErrorAt(name.at, at, "column %s is a float, which no directory can be named by exactly",
				name.name).Hint = "partition by a text, a whole number, a decimal or a time made of it"
			continue
		}
		seen[c] = true
		w.PartitionBy = append(w.PartitionBy, c)
	}
	if n := len(w.PartitionBy); n > 0 && n == len(w.Columns) {
		l.ErrorAt(o.get("partition_by"), o.keyPath("partition_by"),
			"all columns are in partition_by: nothing is left for the files").Hint = "leave one of them out"
	}
}

// column finds a column by its name, else by what readers of the file call it.
func (w *FileWriter) column(name string) *OutputColumn {
	for _, c := range w.Columns {
		if c.Name == name {
			return c
		}
	}
	for _, c := range w.Columns {
		if w.Shown(c) == name {
			return c
		}
	}
	return nil
}

// Shown returns the name of a column for readers of the file.
func (w *FileWriter) Shown(c *OutputColumn) string {
	if w.Parquet {
		return c.Parquet
	}
	return c.Header
}

func (w *FileWriter) columnNames() (out []string) {
	for _, c := range w.Columns {
		if !strings.HasPrefix(c.Name, "#") {
			out = append(out, c.Name)
		}
	}
	return out
}

// sizeUnits are binary, as people mean them here.
var sizeUnits = map[string]int64{"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "KIB": 1 << 10,
	"MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}

// byteSize reads a size with its unit.
func byteSize(text string) (int64, bool) {
	const most = 1 << 60
	text = strings.TrimSpace(text)
	digits := len(text) - len(strings.TrimLeft(text, "0123456789."))
	n, err := strconv.ParseFloat(text[:digits], 64)
	unit, ok := sizeUnits[strings.ToUpper(strings.TrimSpace(text[digits:]))]
	if err != nil || !ok || n*float64(unit) > most {
		return 0, false
	}
	return int64(n * float64(unit)), true
}
