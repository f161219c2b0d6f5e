package outfile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

const (
	// nullPartition stands for NULL, as in Hive.
	nullPartition = "__HIVE_DEFAULT_PARTITION__"
	// nameBytesMax is all that the name of a directory may have.
	nameBytesMax = 255
	// encoded are the characters that are written as % and two digits, beside those below a blank: Hive's list.
	encoded = "\"#%'*/:=?\\\x7f{[]^"
)

// partitions writes the files of each partition.
func (d *dirWriter) partitions(ctx context.Context) error {
	keys := d.keys()
	texts, err := partitionTexts(d.o.Writer, keys)
	if err != nil {
		return err
	}
	found, err := d.db.Texts(ctx,
		fmt.Sprintf("SELECT %s, CAST(__first AS VARCHAR), CAST(__last AS VARCHAR) FROM (SELECT %[2]s, "+
			"min(file_row_number) AS __first, max(file_row_number) AS __last FROM %[3]s GROUP BY %[2]s) ORDER BY "+
			"__first LIMIT %[4]d", strings.Join(texts, ", "), strings.Join(keys, ", "), d.read(), filesMax+1))
	if err != nil {
		return fmt.Errorf("find the partitions: %w", err)
	}
	if len(found) > filesMax {
		return d.refuse("the output would have more than %d partitions", "partition it by fewer or coarser values",
			filesMax)
	}
	for _, row := range found {
		rows, err := numbers(row[len(keys):])
		if err != nil {
			return err
		}
		dir, err := d.partition(row[:len(keys)])
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(d.o.Path, filepath.FromSlash(dir)), dirMode); err != nil {
			return writeFault(err)
		}
		if err := d.spans(ctx, dir, rows[0], rows[1]+1); err != nil {
			return err
		}
	}
	return nil
}

// partitionTexts are the texts of the columns that directories are named by, of which there are expressions.
func partitionTexts(w *script.FileWriter, columns []string) ([]string, error) {
	texts := make([]string, len(columns))
	for i, column := range columns {
		var err error
		if texts[i], err = partitionText(w.PartitionBy[i].Type, column); err != nil {
			return nil, fmt.Errorf("name the partitions: %w", err)
		}
	}
	return texts, nil
}

// PartitionsSQL selects the directories of a writer's rows as Directory reads them: the texts of the
// columns that they are named by, and the number of each directory's first row.
func PartitionsSQL(w *script.FileWriter, rows, number string) (string, error) {
	var keys []string
	for _, c := range w.PartitionBy {
		keys = append(keys, sqltext.Ident(c.Name))
	}
	texts, err := partitionTexts(w, keys)
	if err != nil {
		return "", err
	}
	list := strings.Join(keys, ", ")
	return fmt.Sprintf("SELECT %s, __first FROM (SELECT %s, min(%s) AS __first FROM %s GROUP BY %s) ORDER BY __first",
		strings.Join(texts, ", "), list, number, rows, list), nil
}

// Directory is the directory of a partition's files, with a / behind it, seen from that of all.
func Directory(w *script.FileWriter, values []*string) (string, error) {
	d := dirWriter{o: Output{Writer: w}}
	return d.partition(values)
}

// partitionText is the text of a value in the name of a directory, by which a column of names is read as it was.
func partitionText(t expr.Type, value string) (string, error) {
	switch t {
	case expr.Instant: // with its zone
		return expr.PrintSQL(t, "", value)
	case expr.DateTime:
		return expr.ISOTextSQL(t, " ", value)
	}
	return "CAST(" + value + " AS VARCHAR)", nil
}

// partition is the directory of some values.
func (d *dirWriter) partition(values []*string) (dir string, err error) {
	var b strings.Builder
	for i, c := range d.o.Writer.PartitionBy {
		name, value := d.o.Writer.Shown(c), nullPartition
		if v := values[i]; v != nil {
			value = encode(*v)
			switch {
			case *v == "":
				return "",
					d.refuse("column %s has an empty text in a row, which no directory can be named by: some readers "+
						"would take it for NULL",
						"leave such rows out with having, or make another text of it", name)
			case *v == nullPartition:
				return "", d.refuse("column %s has the text %s in a row, which means NULL in the name of a directory",
					"leave such rows out with having, or make another text of it", name, nullPartition)
			}
		}
		part := encode(name) + "=" + value
		if len(part) > nameBytesMax {
			return "", d.refuse("column %s has a text in a row that is too long to name a directory by: %.60s…",
				"partition by something shorter", name, value)
		}
		b.WriteString(part + "/")
	}
	return b.String(), nil
}

// encode writes a text as Hive, Spark and DuckDB read it in the name of a directory.
func encode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || strings.IndexByte(encoded, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
