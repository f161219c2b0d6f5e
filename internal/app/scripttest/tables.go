package scripttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/run/engine"
)

// column describes a column that a given or expected table may have.
type column struct {
	name     string
	stored   string // in the Parquet file; "" the name
	typ      expr.Type
	nullable bool
}

func names(columns []column) []string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.name
	}
	return out
}

// table reads rows in either form, a list of maps or CSV text, and checks
// that they have no fields but the columns.
func (v *value) table(columns []column) ([]row, error) {
	var rows []row
	var err error
	if v.Kind == yaml.SequenceNode {
		rows, err = v.rows()
	} else {
		rows, err = v.csvRows(columns)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		for _, name := range r.names {
			if slices.Contains(names(columns), name) {
				continue
			}
			f := r.at.fault("there is no field %q", name)
			f.Hint = "the fields are " + strings.Join(names(columns), ", ")
			if near := similar.Nearest(name, names(columns)); near != "" {
				f.Hint = fmt.Sprintf("did you mean %q?", near)
			}
			return nil, f
		}
	}
	return rows, nil
}

// csvRows reads a table from CSV text with a header, as input files are read.
// An empty cell is NULL where the column may be, if it is not "" in a column of
// texts, and otherwise an empty text there.
func (v *value) csvRows(columns []column) ([]row, error) {
	text, err := v.text()
	if err != nil {
		return nil, err
	}
	nullable := map[string]bool{}
	types := map[string]expr.Type{}
	for _, c := range columns {
		nullable[c.name], types[c.name] = c.nullable, c.typ
	}
	const separator = ','
	var header []string
	var out []row
	for record, err := range files.Records(context.Background(), strings.NewReader(text), int64(len(text)),
		separator, "") {
		switch {
		case err != nil:
			f := fault.Of(err)
			bad := v.fault("not valid CSV: line %d of it: %s", f.Place.Line, f.Message)
			bad.Hint = f.Hint
			return nil, bad
		case header == nil:
			header = record.Values
			continue
		case len(out) >= rowsMax:
			return nil, v.fault("there are more than %d rows", rowsMax)
		}
		one := row{at: v, cells: map[string]*value{}}
		for i, name := range header {
			n := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: record.Values[i], Line: v.Line, Column: v.Column}
			text := types[name] == expr.String && (record.Quoted[i] || !nullable[name])
			switch {
			case n.Value != "" || text:
			case nullable[name]:
				n.Tag = "!!null"
			default:
				continue // the type's zero value
			}
			one.names, one.cells[name] = append(one.names, name), &value{v.suite, &n}
		}
		out = append(out, one)
	}
	return out, nil
}

// writeParquet makes a file of rows; fields that a row leaves out are NULL
// where they may be, else their type's zero value.
func writeParquet(ctx context.Context, in *engine.Instance, path string, columns []column, rows []row) error {
	file := sqltext.Copy{Query: "FROM given", Path: path, Options: []string{"FORMAT parquet"}}
	cols, stored := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		cols[i] = fmt.Sprintf("CAST(NULL AS %s)", c.typ.SQL())
		if stored[i] = sqltext.Ident(c.name); c.stored != "" {
			stored[i] = sqltext.Ident(c.stored)
		}
		if c.typ == expr.Float {
			file.Floats = append(file.Floats, cmp.Or(c.stored, c.name))
		}
	}
	lines := []string{"SELECT " + strings.Join(cols, ", ") + " WHERE false"}
	for _, r := range rows {
		line := make([]string, len(columns))
		for i, c := range columns {
			sql, err := r.cellSQL(c)
			if err != nil {
				return err
			}
			line[i] = sql
		}
		lines = append(lines, "SELECT "+strings.Join(line, ", "))
	}
	// Chunks keep the parser away from one statement of a hundred thousand branches.
	const chunk = 500
	create := fmt.Sprintf("CREATE OR REPLACE TABLE given AS SELECT * FROM (%s) AS t(%s)", lines[0],
		strings.Join(stored, ", "))
	if err := in.Exec(ctx, create); err != nil {
		return fmt.Errorf("make a table of given rows: %w", err)
	}
	for from := 1; from < len(lines); from += chunk {
		if err := in.Exec(ctx, "INSERT INTO given "+strings.Join(lines[from:min(from+chunk, len(lines))],
			" UNION ALL ")); err != nil {
			return fmt.Errorf("make a table of given rows: %w", err)
		}
	}
	if _, _, err := in.Copy(ctx, file, true); err != nil {
		return fmt.Errorf("write given rows: %w", err)
	}
	return nil
}

func (r row) cellSQL(c column) (string, error) {
	if cell := r.cells[c.name]; cell != nil {
		if cell.Tag == "!!null" && !c.nullable {
			return "", cell.fault("field %q cannot be NULL: it is not declared nullable", c.name)
		}
		return cell.literal(c.typ)
	}
	if c.nullable {
		return "CAST(NULL AS " + c.typ.SQL() + ")", nil
	}
	sql, err := expr.DefaultSQL(c.typ, "", "")
	if err != nil {
		return "", fmt.Errorf("the zero value of %s: %w", c.typ, err)
	}
	return "CAST(" + sql + " AS " + c.typ.SQL() + ")", nil
}
