package database

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// postgresWriter writes to PostgreSQL.
type postgresWriter struct{ *postgres }

func (w *postgresWriter) ident(name string) string { return sqltext.Ident(name) }
func (w *postgresWriter) path(name string) string  { return sqltext.Path(name) }
func (w *postgresWriter) traits() traits           { return traits{name: "PostgreSQL", swift: true} }

func (w *postgresWriter) records() recordsSQL {
	return recordsSQL{
		create: "CREATE TABLE IF NOT EXISTS %s (run text NOT NULL, node text NOT NULL, batch integer NOT NULL, " +
			"attempt bigint NOT NULL, rows_written bigint NOT NULL, " +
			"digest text NOT NULL, committed_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, node, batch))",
		old: "committed_at < now() - interval '" + strconv.Itoa(keepDays) + " days'",
	}
}

// transaction begins one that does not hold locks for ever if this machine stands still.
func (w *postgresWriter) transaction(ctx context.Context, _ string) error {
	return w.exec(ctx, "SET idle_in_transaction_session_timeout = '"+strconv.Itoa(idleSeconds)+
		"s'; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
}

func (w *postgresWriter) load(ctx context.Context, table string, columns []TargetColumn, path string) (int64, error) {
	if err := checkLimits(path, columns); err != nil {
		return 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, &fault.Error{Kind: fault.Environment, Message: "read the rows to write", Err: err}
	}
	defer f.Close()
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = w.ident(c.Name)
	}
	tag, err := w.conn.CopyFrom(ctx, f, "COPY "+table+" ("+strings.Join(names, ", ")+") FROM STDIN (FORMAT csv)")
	if err != nil {
		return 0, postgresFault(err)
	}
	return tag.RowsAffected(), nil
}

func (w *postgresWriter) count(ctx context.Context, sql string) (n int64, err error) {
	results, err := w.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return 0, postgresFault(err)
	}
	for _, r := range results {
		n += r.CommandTag.RowsAffected()
	}
	return n, nil
}

func (w *postgresWriter) typeOf(c TargetColumn, _ bool) string {
	switch c.Type {
	case "string":
		return "text"
	case "int":
		return "bigint"
	case "float":
		return "double precision"
	case "bool":
		return "boolean"
	case "datetime":
		return "timestamp(3) without time zone"
	case "decimal2":
		return "numeric(18,2)"
	case "date":
		return "date"
	case "timestamptz":
		return "timestamp with time zone"
	}
	if strings.HasPrefix(c.Type, "decimal(") {
		return "numeric" + strings.TrimPrefix(c.Type, "decimal")
	}
	return ""
}

// rewritesTexts are types that take some texts and give others back: 007 is 7 in a number,
// yes is true, and blanks are added or lost.
var rewritesTexts = []string{"character", "smallint", "integer", "bigint", "oid", "numeric", "real", "double precision",
	"money", "boolean", "date", "interval", "bit", "bit varying", "bytea", "name", `"char"`}

func (w *postgresWriter) fits(c TargetColumn, kind string) bool {
	if w.typeOf(c, false) == kind {
		return true
	}
	base, mod, _ := strings.Cut(kind, "(")
	switch c.Type {
	case "string": // what the server cannot take as such it refuses
		return !slices.Contains(rewritesTexts, base) && !strings.HasPrefix(base, "time")
	case "int":
		return kind == "integer" || kind == "smallint" || kind == "numeric" || base == "numeric" &&
			!strings.Contains(mod, "-")
	case "datetime":
		precision, rest, some := strings.Cut(mod, ")")
		if some {
			base += rest
		}
		return (base == "timestamp without time zone" || base == "timestamp with time zone" || base == "timestamp") &&
			(!some || precision >= "3")
	case "timestamptz":
		return kind == "timestamp without time zone" || kind == "timestamp(6) with time zone" ||
			kind == "timestamp(6) without time zone"
	}
	_, scale, ok := decimalOf(c.Type)
	if !ok || base != "numeric" {
		return false
	}
	_, there, ok := decimalOf("decimal(" + mod)
	return !ok || there >= scale // more digits in front are refused by the server
}

// decimalOf takes a decimal type apart.
func decimalOf(name string) (precision, scale int, ok bool) {
	if name == "decimal2" {
		return 18, 2, true
	}
	inner, ok := strings.CutPrefix(name, "decimal(")
	a, b, both := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
	precision, err1 := strconv.Atoi(strings.TrimSpace(a))
	scale, err2 := strconv.Atoi(strings.TrimSpace(b))
	return precision, scale, ok && both && err1 == nil && err2 == nil
}

func (w *postgresWriter) table(ctx context.Context, name string) ([]tableColumn, error) {
	found, err := w.rows(ctx,
		`SELECT a.attname, CASE WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)
			ELSE format_type(a.atttypid, a.atttypmod) END,
			(a.attnotnull AND NOT a.atthasdef AND a.attidentity = '')::text
		FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
		WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, w.path(name))
	out := make([]tableColumn, len(found))
	for i, r := range found {
		out[i] = tableColumn{name: r[0], kind: r[1], required: r[2] == "true"}
	}
	return out, err
}

func (w *postgresWriter) unique(ctx context.Context, table string, key []string) (bool, error) {
	found, err := w.rows(ctx,
		`SELECT i.indexrelid::text, a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
			AND a.attnum = ANY (i.indkey)
		WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
		AND i.indexprs IS NULL AND i.indnkeyatts = i.indnatts`, w.path(table))
	return someIndexOf(found, key), err
}

func (w *postgresWriter) limit(kind string) *limit { return charLimit(kind, "character varying") }

// alone: locks of the transaction see to that.
func (w *postgresWriter) alone(context.Context, string) error { return nil }

// direct: COPY knows no views.
func (w *postgresWriter) direct(ctx context.Context, table string) (bool, error) {
	view, err := w.rows(ctx, "SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND relkind = 'v'", w.path(table))
	return len(view) == 0, err
}

// empty looks again behind a lock: another attempt may have rows there that nobody sees yet.
func (w *postgresWriter) empty(ctx context.Context, table string) (bool, error) {
	some := "SELECT 1 FROM " + w.path(table) + " LIMIT 1"
	found, err := w.rows(ctx, some)
	if err != nil || len(found) > 0 {
		return false, err
	}
	if table, err := w.direct(ctx, table); err != nil || !table {
		return false, err
	}
	if err := w.exec(ctx, "LOCK TABLE "+w.path(table)+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return false, err
	}
	found, err = w.rows(ctx, some)
	return len(found) == 0, err
}

func (w *postgresWriter) alike(_ context.Context, _ string, key []string) ([]string, error) {
	return idents(w, key), nil
}

// clear removes rows one by one where the table cannot be emptied at once: others refer to
// it, it is a view, or the user may not.
func (w *postgresWriter) clear(ctx context.Context, table string) error {
	got, err := w.rows(ctx,
		`SELECT (c.relkind = 'v')::text, has_table_privilege(c.oid, 'TRUNCATE')::text, (f.conrelid IS NOT NULL)::text,
			coalesce(f.conrelid::regclass::text, ''), coalesce(f.confdeltype NOT IN ('a', 'r'), false)::text
		FROM pg_class c LEFT JOIN pg_constraint f ON f.confrelid = c.oid AND f.contype = 'f' AND f.conrelid <> c.oid
		WHERE c.oid = to_regclass($1) ORDER BY 5 DESC LIMIT 1`, w.path(table))
	if err != nil {
		return err
	}
	view, allowed, referred, other, cascades := got[0][0] == "true", got[0][1] == "true",
		got[0][2] == "true", got[0][3], got[0][4] == "true"
	switch {
	case cascades:
		return cascadeFault(table, other)
	case !view && allowed && !referred:
		return w.exec(ctx, "TRUNCATE "+w.path(table))
	case !view:
		if err := w.exec(ctx, "LOCK TABLE "+w.path(table)+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
	}
	if err := keptFault(w.exec(ctx, "DELETE FROM "+w.path(table))); err != nil {
		return err
	}
	return emptied(ctx, w, table)
}

// merge: a trigger may leave an update out because nothing would change, which loses nothing.
func (w *postgresWriter) merge(ctx context.Context, from string, t Target, rows int64) (int64, error) {
	n, err := w.count(ctx, onConflict(w, "INSERT", from, t))
	if err != nil || n == rows {
		return n, err
	}
	// not all types can be compared
	return merged(ctx, w, from, t,
		func(a, b string) string { return a + "::text IS NOT DISTINCT FROM " + b + "::text" })
}

// onConflict is an INSERT by key, as PostgreSQL and SQLite have it.
func onConflict(w writer, insert, from string, t Target) string {
	var names, keys, sets []string
	for _, c := range t.Columns {
		name := w.ident(c.Name)
		names = append(names, name)
		if slices.Contains(t.Key, c.Name) {
			keys = append(keys, name)
		} else {
			sets = append(sets, name+" = excluded."+name)
		}
	}
	do := "NOTHING"
	if len(sets) > 0 {
		do = "UPDATE SET " + strings.Join(sets, ", ")
	}
	list := strings.Join(names, ", ")
	return insert + " INTO " + w.path(t.Table) + " (" + list + ") SELECT " + list + " FROM " + from +
		" WHERE true ORDER BY " + strings.Join(keys, ", ") +
		" ON CONFLICT (" + strings.Join(keys, ", ") + ") DO " + do
}
