package infer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/engine"
	"thalweg/internal/expr"
	"thalweg/internal/fault"
	"thalweg/internal/sqltext"
)

// parquet takes the types from the file's schema and counts its NULLs.
func (p *Proposal) parquet(ctx context.Context, o Options) (err error) {
	path, err := filepath.Abs(p.Path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return openFault(p.Path, err)
	}
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: o.MemoryBytes, Threads: o.Threads, SpillDir: filepath.Join(o.WorkDir, "spill"), Paths: []string{path}})
	if err != nil {
		return err
	}
	defer closing(in, &err)
	source := fmt.Sprintf("read_parquet(%s, hive_partitioning = false)", sqltext.String(sqltext.Glob(path)))
	types, err := p.schema(ctx, in, source)
	if err != nil {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Path}, Message: "the file is not readable as Parquet", Err: err}
	}
	if len(p.Columns) > ColumnsMax {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Path}, Message: fmt.Sprintf("the file has %d columns; the limit is %d", len(p.Columns), ColumnsMax)}
	}
	p.nameColumns()
	return p.parquetFacts(ctx, in, source, types)
}

// schema lists the columns and their types as the engine names them.
func (p *Proposal) schema(ctx context.Context, in *engine.Instance, source string) (types []string, err error) {
	rows, err := in.Query(ctx, "SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM "+source+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name, typ string
		if err := rows.Scan(&name, &typ); err != nil {
			return nil, err
		}
		p.Columns = append(p.Columns, Column{Source: name, Index: len(p.Columns)})
		types = append(types, typ)
	}
	return types, rows.Err()
}

func (p *Proposal) parquetFacts(ctx context.Context, in *engine.Instance, source string, types []string) error {
	const perColumn = 3
	cols := []string{"count(*)"}
	for i, c := range p.Columns {
		p.Columns[i].Type = typeOf(types[i])
		name := sqltext.Ident(c.Source)
		if p.Columns[i].Type == expr.Invalid {
			cols = append(cols, "0", "''", "''")
			continue
		}
		text := "CAST(%s(" + name + ") AS VARCHAR)"
		cols = append(cols, "count("+name+")", fmt.Sprintf("left("+text+", %d)", "min", exampleChars), fmt.Sprintf("left("+text+", %d)", "max", exampleChars))
	}
	cells, err := readRow(ctx, in, "SELECT "+strings.Join(cols, ", ")+" FROM "+source, len(cols))
	if err != nil {
		return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.Path}, Message: "cannot read the file's values", Err: err}
	}
	p.Rows = number(cells[0])
	for i := range p.Columns {
		c := &p.Columns[i]
		own := cells[1+perColumn*i:]
		if c.Type == expr.Invalid {
			c.Evidence = types[i] + " in the file cannot be read"
			continue
		}
		c.describe(types[i], p.Rows, p.Rows-number(own[0]), own[1].String, own[2].String)
	}
	return nil
}

func (c *Column) describe(typ string, rows, nulls int64, least, most string) {
	c.Evidence = typ
	switch {
	case rows == nulls:
		c.Evidence += ", no values"
	case c.Type == expr.String:
		c.Evidence += fmt.Sprintf(", %s … %s", quoted(least), quoted(most))
	default:
		c.Evidence += fmt.Sprintf(", %s … %s", shown(c.Type, least), shown(c.Type, most))
	}
	if nulls > 0 {
		c.Nullable = true
		c.Evidence += fmt.Sprintf("; %s NULL", grouped(nulls))
	}
	if c.Type == expr.Decimal && scaleOf(typ) > 2 {
		c.Evidence += "; stored with 2 digits after the point"
	}
}

// typeOf maps a type of the engine to one of a script; Invalid if there is none.
func typeOf(typ string) expr.Type {
	switch typ {
	case "VARCHAR":
		return expr.String
	case "BOOLEAN":
		return expr.Bool
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER":
		return expr.Int
	case "FLOAT", "DOUBLE":
		return expr.Float
	case "DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE":
		return expr.DateTime
	}
	if strings.HasPrefix(typ, "DECIMAL(") {
		return expr.Decimal
	}
	return expr.Invalid
}

func scaleOf(typ string) int {
	var precision, scale int
	if _, err := fmt.Sscanf(typ, "DECIMAL(%d,%d)", &precision, &scale); err != nil {
		return 0
	}
	return scale
}
