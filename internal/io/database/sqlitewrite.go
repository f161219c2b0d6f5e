package database

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/sqltext"
)

// sqliteWriter writes to a file of SQLite, which is made if it is not there.
type sqliteWriter struct {
	sqlWriter
	insert string // how an INSERT into the table begins
	view   string // the table's name, quoted, if it is a view
}

func (c Client) sqliteWriter(ctx context.Context, loc address.Location) (writer, error) {
	if err := homeless(c.sqliteFile(loc)); err != nil {
		return nil, err
	}
	s, err := openSQLite(ctx, c.sqliteFile(loc), "rwc")
	if err != nil {
		return nil, err
	}
	if _, err := s.conn.ExecContext(ctx, "PRAGMA foreign_keys = ON"); err != nil {
		s.Close()
		return nil, sqliteFault(err)
	}
	return &sqliteWriter{sqlWriter: sqlWriter{s}}, nil
}

func (w *sqliteWriter) ident(name string) string { return sqltext.Ident(name) }
func (w *sqliteWriter) path(name string) string  { return sqltext.Path(name) }
func (w *sqliteWriter) traits() traits           { return traits{name: "SQLite"} }

func (w *sqliteWriter) records() recordsSQL {
	return recordsSQL{
		create: "CREATE TABLE IF NOT EXISTS %s (run TEXT NOT NULL, node TEXT NOT NULL, batch INTEGER NOT NULL, " +
			"attempt INTEGER NOT NULL, rows_written INTEGER NOT NULL, " +
			"digest TEXT NOT NULL, committed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (run, " +
			"node, batch))", old: "committed_at < datetime('now', '-" + strconv.Itoa(keepDays) + " days')",
	}
}

// transaction begins one that is the only one to write from its beginning on.
// Whether rows that are referred to are there is looked at when it ends.
func (w *sqliteWriter) transaction(ctx context.Context, _ string) error {
	return w.exec(ctx, "BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON")
}

// What follows needs no care where a transaction is the only one that writes.

func (w *sqliteWriter) alone(context.Context, string) error         { return nil }
func (w *sqliteWriter) empty(context.Context, string) (bool, error) { return false, nil }

func (w *sqliteWriter) direct(ctx context.Context, name string) (bool, error) {
	return true, w.declared(ctx, name)
}

// declared finds out how rows have to be put into a table. Its constraints may say that
// rows are left out, removed or changed that they do not let in: OR ABORT goes before that.
// Tables without such ones need it not, and it would go before what triggers say, too.
func (w *sqliteWriter) declared(ctx context.Context, name string) error {
	schema, table := sqlitePath(name)
	found, err := w.rows(ctx, "SELECT type, sql FROM "+w.ident(schema)+
		".sqlite_schema WHERE type IN ('table', 'view') AND lower(name) = lower(?)", table)
	if err != nil || len(found) == 0 {
		return err
	}
	if found[0][0] == "view" {
		w.view = w.path(name)
	}
	if strings.Contains(strings.ToUpper(found[0][1]), "CONFLICT") {
		w.insert = "INSERT OR ABORT"
	}
	return nil
}

// limit: columns have none.
func (w *sqliteWriter) limit(string) *limit { return nil }

// alike: the copy of the rows has not the columns' collations.
func (w *sqliteWriter) alike(ctx context.Context, name string, key []string) ([]string, error) {
	schema, table := sqlitePath(name)
	found, err := w.rows(ctx,
		`SELECT DISTINCT x.name, x.coll FROM pragma_index_list(?, ?) AS l, pragma_index_xinfo(l.name, ?) AS x
			WHERE l."unique" AND x."key"`, table, schema, schema)
	out := idents(w, key)
	for i, k := range key {
		for _, r := range found {
			if r[0] == k && r[1] != "BINARY" {
				out[i] += " COLLATE " + w.ident(r[1])
			}
		}
	}
	return out, err
}

// typeOf: SQLite makes floating point of numbers unless a type's name has TEXT in it.
// INTEGER as the only key would be the row's number, which is made up where NULL comes.
func (w *sqliteWriter) typeOf(c TargetColumn, key bool) string {
	switch c.Type {
	case "string", "datetime", "date", "timestamptz":
		return "TEXT"
	case "int":
		if key {
			return "BIGINT"
		}
		return "INTEGER"
	case "float":
		return "REAL"
	case "bool":
		return "BOOLEAN"
	case "decimal2":
		return "DECIMAL_TEXT(18,2)"
	}
	if strings.HasPrefix(c.Type, "decimal(") {
		return "DECIMAL_TEXT" + strings.TrimPrefix(c.Type, "decimal")
	}
	return ""
}

// fits goes by the affinity that a declared type gives a column: it says what becomes of texts.
func (w *sqliteWriter) fits(c TargetColumn, kind string) bool {
	switch have := affinity(kind); c.Type {
	case "int", "bool":
		return have == "INTEGER" || have == "NUMERIC" || have == "BLOB"
	case "float":
		return have == "REAL" || have == "BLOB"
	case "date", "datetime", "timestamptz":
		// of DATE or TIMESTAMP SQLite knows no more than that numbers become some, which no time looks like
		kind = strings.ToUpper(kind)
		return have == "TEXT" || have == "BLOB" || have == "NUMERIC" &&
			(strings.Contains(kind, "DATE") || strings.Contains(kind, "TIME"))
	default:
		return have == "TEXT" || have == "BLOB"
	}
}

func affinity(kind string) string {
	kind = strings.ToUpper(kind)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(kind, word) })
	}
	switch {
	case has("INT"):
		return "INTEGER"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case kind == "" || has("BLOB"):
		return "BLOB" // values stay what they are
	case has("REAL", "FLOA", "DOUB"):
		return "REAL"
	}
	return "NUMERIC"
}

func (w *sqliteWriter) table(ctx context.Context, name string) ([]tableColumn, error) {
	schema, table := sqlitePath(name)
	found, err := w.rows(ctx,
		`SELECT name, type, "notnull" AND dflt_value IS NULL AND NOT (pk AND upper(type) = 'INTEGER'),
			pk AND upper(type) = 'INTEGER' FROM pragma_table_info(?, ?)`, table, schema)
	out := make([]tableColumn, len(found))
	for i, r := range found {
		out[i] = tableColumn{name: r[0], kind: r[1], required: r[2] == "1", made: r[3] == "1"}
	}
	return out, err
}

func sqlitePath(name string) (schema, table string) {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return schema, table
	}
	return "main", name
}

func (w *sqliteWriter) unique(ctx context.Context, name string, key []string) (bool, error) {
	schema, table := sqlitePath(name)
	found, err := w.rows(ctx, `SELECT '', name FROM pragma_table_info(?, ?) WHERE pk > 0
		UNION ALL SELECT l.name, i.name FROM pragma_index_list(?, ?) AS l, pragma_index_info(l.name, ?) AS i
		WHERE l."unique" AND NOT l.partial`,
		table, schema, table, schema, schema)
	return someIndexOf(found, key), err
}

func (w *sqliteWriter) load(ctx context.Context, table string, columns []TargetColumn, path string) (n int64,
	err error) {
	// it keeps NaN as NULL
	in := &inserter{conn: w.conn, insert: w.insert, table: table, columns: columns, fault: w.fault, noNaN: true,
		instant: sqliteInstant}
	for _, c := range columns {
		in.names = append(in.names, w.ident(c.Name))
	}
	if w.view == "" {
		return in.load(ctx, path)
	}
	// What a view's triggers do with its rows is not counted.
	before, err := w.size(ctx, w.view)
	if err == nil {
		_, err = in.load(ctx, path)
	}
	if err != nil {
		return 0, err
	}
	after, err := w.size(ctx, w.view)
	return after - before, err
}

func (w *sqliteWriter) size(ctx context.Context, table string) (int64, error) {
	found, err := w.rows(ctx, "SELECT count(*) FROM "+table)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(found[0][0], 10, 64)
}

func (w *sqliteWriter) clear(ctx context.Context, table string) error {
	schema, name := sqlitePath(table)
	found, err := w.rows(ctx, `SELECT m.name FROM `+w.ident(schema)+
		`.sqlite_schema AS m, pragma_foreign_key_list(m.name, ?) AS f
		WHERE m.type = 'table' AND lower(f."table") = lower(?) AND lower(m.name) <> lower(?)
		AND f.on_delete NOT IN ('NO ACTION', 'RESTRICT') LIMIT 1`, schema, name, name)
	if err == nil && len(found) > 0 {
		err = cascadeFault(table, found[0][0])
	}
	if err != nil {
		return err
	}
	if err := keptFault(w.exec(ctx, "DELETE FROM "+w.path(table))); err != nil {
		return err
	}
	return emptied(ctx, w, table)
}

func (w *sqliteWriter) merge(ctx context.Context, from string, t Target, rows int64) (int64, error) {
	if err := w.declared(ctx, t.Table); err != nil {
		return 0, err
	}
	n, err := w.count(ctx, onConflict(w, cmp.Or(w.insert, "INSERT"), from, t))
	if err != nil || n == rows {
		return n, err
	}
	return merged(ctx, w, from, t, func(a, b string) string { return a + " IS " + b + " COLLATE BINARY" })
}
