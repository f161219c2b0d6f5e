package database

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/sqltext"
)

// mysqlKeyChars limits the characters of a text that is part of a key in a table that is made.
const mysqlKeyChars = 255

// mysqlTable holds the options of new tables, whatever the database's defaults: with transactions, and with
// texts that compare by bytes.
const mysqlTable = " ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

// mysqlWriter writes to MySQL and MariaDB.
type mysqlWriter struct{ sqlWriter }

func (c Client) mysqlWriter(ctx context.Context, loc address.Location) (writer, error) {
	s, err := c.mysqlLogin(ctx, loc)
	if err != nil {
		return nil, err
	}
	return &mysqlWriter{sqlWriter{s}}, nil
}

func (w *mysqlWriter) ident(name string) string { return mysqlIdent(name) }
func (w *mysqlWriter) path(name string) string  { return mysqlPath(name) }
func (w *mysqlWriter) traits() traits {
	return traits{name: "MySQL", created: mysqlTable, tablesCommit: true}
}

func (w *mysqlWriter) records() recordsSQL {
	return recordsSQL{
		create: "CREATE TABLE IF NOT EXISTS %s (run varchar(150) NOT NULL, node varchar(400) NOT NULL, batch int NOT " +
			"NULL, attempt bigint NOT NULL, rows_written bigint NOT NULL, " +
			"digest varchar(200) NOT NULL, committed_at timestamp NOT NULL DEFAULT current_timestamp, PRIMARY KEY " +
			"(run, node, batch))" + mysqlTable,
		old:  "committed_at < now() - INTERVAL " + strconv.Itoa(keepDays) + " DAY",
		lock: " FOR UPDATE",
	}
}

// transaction begins one that locks what it looks at to remove it, and the gaps between, if
// rows are replaced: what others append meanwhile comes behind it, and is not removed in part.
func (w *mysqlWriter) transaction(ctx context.Context, mode string) error {
	level := "READ COMMITTED"
	if mode == Replace {
		level = "REPEATABLE READ"
	}
	if err := w.exec(ctx, "SET SESSION TRANSACTION ISOLATION LEVEL "+level); err != nil {
		return err
	}
	// A machine that is gone frees what its session holds.
	if err := w.exec(ctx, "SET SESSION wait_timeout = "+strconv.Itoa(idleSeconds)); err != nil {
		return err
	}
	return w.exec(ctx, "START TRANSACTION READ WRITE")
}

// idleSeconds is the time after which the server ends a transaction without statements.
const idleSeconds = lockSeconds

// aloneSeconds limits the wait for another attempt that writes the same table.
const aloneSeconds = 60

func (w *mysqlWriter) alone(ctx context.Context, name string) error {
	schema, table := mysqlParts(name)
	found, err := w.rows(ctx,
		"SELECT get_lock(concat('thalweg.', sha1(concat(coalesce(nullif(?, ''), database()), '.', ?))), "+
			strconv.Itoa(aloneSeconds)+")", schema, table)
	if err == nil && found[0][0] != "1" {
		err = &fault.Error{Kind: fault.Environment, Retryable: true,
			Message: fmt.Sprintf("table %s is being written by another attempt for more than %d s", name, aloneSeconds),
			Hint:    "let it end; SHOW PROCESSLIST tells whose it is"}
	}
	return err
}

func (w *mysqlWriter) direct(context.Context, string) (bool, error) { return true, nil }

// empty: rows that nobody sees yet may be there; removing them waits for whoever has them.
func (w *mysqlWriter) empty(context.Context, string) (bool, error) { return false, nil }

func (w *mysqlWriter) alike(_ context.Context, _ string, key []string) ([]string, error) {
	return idents(w, key), nil
}

// limit: beyond it blanks at the end are cut off, and a text of digits is a place in an enum.
func (w *mysqlWriter) limit(kind string) *limit {
	base, _, _ := strings.Cut(kind, "(")
	switch base {
	case "tinytext":
		return &limit{kind: kind, bytes: 1<<8 - 1}
	case "text":
		return &limit{kind: kind, bytes: 1<<16 - 1}
	case "mediumtext":
		return &limit{kind: kind, bytes: 1<<24 - 1}
	case "enum":
		return &limit{kind: kind, words: enumWords(kind)}
	}
	return charLimit(kind, "varchar")
}

// enumWords are the values of the type of an enum, in which a quote is written twice.
func enumWords(kind string) []string {
	words := []string{}
	list := strings.TrimSuffix(strings.TrimPrefix(kind, "enum("), ")")
	for _, t := range sqltext.Tokens(list) {
		if word := list[t.Start:t.End]; len(word) > 1 && word[0] == '\'' {
			// what else a server says of the type is no value
			words = append(words, strings.ReplaceAll(word[1:len(word)-1], "''", "'"))
		}
	}
	return words
}

func (w *mysqlWriter) typeOf(c TargetColumn, key bool) string {
	switch c.Type {
	case "string":
		if key {
			return "varchar(" + strconv.Itoa(mysqlKeyChars) + ") COLLATE utf8mb4_bin"
		}
		return "longtext"
	case "int":
		return "bigint"
	case "float":
		return "double"
	case "bool":
		return "tinyint(1)"
	case "datetime":
		return "datetime(3)"
	case "timestamptz": // as it is in UTC
		return "datetime(6)"
	case "decimal2":
		return "decimal(18,2)"
	case "date":
		return "date"
	}
	if strings.HasPrefix(c.Type, "decimal(") {
		return c.Type
	}
	return ""
}

func (w *mysqlWriter) fits(c TargetColumn, kind string) bool {
	base, _, _ := strings.Cut(kind, "(")
	base, _, _ = strings.Cut(base, " ")
	switch c.Type {
	case "string": // what does not fit is refused by the server, whose mode is strict
		return slices.Contains([]string{"varchar", "text", "mediumtext", "longtext", "tinytext", "json",
			"enum", "uuid"},
			base)
	case "int":
		return slices.Contains([]string{"bigint", "int", "mediumint", "smallint", "tinyint"}, base) || base == "decimal"
	case "bool":
		return strings.HasSuffix(base, "int")
	case "float":
		return base == "double" && !strings.Contains(kind, "(") // double(5,2) rounds
	case "datetime": // the server refuses those that are outside of a timestamp's years
		precision := strings.TrimPrefix(strings.TrimPrefix(kind, "datetime"), "timestamp")
		return slices.Contains([]string{"(3)", "(4)", "(5)", "(6)"}, precision)
	case "timestamptz":
		return kind == "datetime(6)" || kind == "timestamp(6)"
	case "date":
		return base == "date"
	}
	_, scale, ok := decimalOf(c.Type)
	_, there, have := decimalOf(kind)
	return ok && have && there >= scale
}

func (w *mysqlWriter) table(ctx context.Context, name string) ([]tableColumn, error) {
	schema, table := mysqlParts(name)
	found, err := w.rows(ctx,
		`SELECT column_name, column_type, is_nullable = 'NO' AND column_default IS NULL
			AND extra NOT LIKE '%auto_increment%' AND extra NOT LIKE '%GENERATED%',
			extra LIKE '%auto_increment%' OR is_nullable = 'NO' AND column_type LIKE 'timestamp%'
		FROM information_schema.columns WHERE table_schema = coalesce(nullif(?, ''), database()) AND table_name = ?
		ORDER BY ordinal_position`, schema, table)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	engine, err := w.rows(ctx,
		"SELECT t.engine, t.table_type, coalesce(e.transactions, 'NO') FROM information_schema.tables AS t LEFT JOIN "+
			"information_schema.engines AS e ON e.engine = t.engine WHERE t.table_schema = coalesce(nullif(?, ''), "+
			"database()) AND t.table_name = ?", schema, table)
	if err != nil {
		return nil, err
	}
	if len(engine) == 1 && engine[0][1] == "VIEW" {
		return nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("%s is a view, of which it is not known how its rows are kept", name),
			Hint:    "name the table that it shows"}
	}
	if len(engine) == 1 && engine[0][2] != "YES" { // BLACKHOLE counts rows that it does not keep
		return nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("table %s is kept by %q, which has no transactions: rows could be there in part", name,
				engine[0][0]),
			Hint: "ALTER TABLE " + name + " ENGINE = InnoDB"}
	}
	out := make([]tableColumn, len(found))
	for i, r := range found {
		out[i] = tableColumn{name: r[0], kind: r[1], required: r[2] == "1", made: r[3] == "1"}
	}
	return out, nil
}

func mysqlParts(name string) (schema, table string) {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return schema, table
	}
	return "", name
}

func (w *mysqlWriter) unique(ctx context.Context, name string, key []string) (bool, error) {
	schema, table := mysqlParts(name)
	// A part of a column, or an expression, is no column: it gives a name that none has.
	found, err := w.rows(ctx,
		`SELECT index_name, CASE WHEN sub_part IS NULL THEN column_name END FROM information_schema.statistics
		WHERE table_schema = coalesce(nullif(?, ''), database()) AND table_name = ? AND non_unique = 0`, schema, table)
	return someIndexOf(found, key), err
}

func (w *mysqlWriter) load(ctx context.Context, table string, columns []TargetColumn, path string) (int64, error) {
	defer w.watch(ctx)()
	in := &inserter{conn: w.conn, table: table, columns: columns, fault: w.fault, noNaN: true, noInf: true,
		instant: mysqlInstant}
	for _, c := range columns {
		in.names = append(in.names, w.ident(c.Name))
	}
	return in.load(ctx, path)
}

func (w *mysqlWriter) clear(ctx context.Context, table string) error {
	schema, name := mysqlParts(table)
	found, err := w.rows(ctx, `SELECT table_name FROM information_schema.referential_constraints
		WHERE unique_constraint_schema = coalesce(nullif(?, ''), database()) AND referenced_table_name = ?
		AND table_name <> referenced_table_name AND delete_rule NOT IN ('RESTRICT', 'NO ACTION') LIMIT 1`, schema, name)
	if err == nil && len(found) > 0 {
		err = cascadeFault(table, found[0][0])
	}
	if err != nil {
		return err
	}
	return keptFault(w.exec(ctx, "DELETE FROM "+w.path(table)))
}

// merge changes the rows that are there and adds the others. ON DUPLICATE KEY would go by
// any unique index of the table, not only by the key.
func (w *mysqlWriter) merge(ctx context.Context, from string, t Target, _ int64) (int64, error) {
	var names, values, sets, on []string
	for _, c := range t.Columns {
		name := w.ident(c.Name)
		names, values = append(names, name), append(values, "s."+name)
		if slices.Contains(t.Key, c.Name) {
			on = append(on, "t."+name+" = s."+name)
		} else {
			sets = append(sets, "t."+name+" = s."+name)
		}
	}
	table, match := w.path(t.Table), strings.Join(on, " AND ")
	var there int64
	if len(sets) > 0 {
		n, err := w.count(ctx, "UPDATE "+table+" AS t JOIN "+from+" AS s ON "+match+" SET "+strings.Join(sets, ", "))
		if err != nil {
			return 0, err
		}
		there = n
	}
	n, err := w.count(ctx, "INSERT INTO "+table+" ("+strings.Join(names, ", ")+") SELECT "+strings.Join(values, ", ")+
		" FROM "+from+" AS s LEFT JOIN "+table+" AS t ON "+match+
		" WHERE t."+w.ident(t.Key[0])+" IS NULL")
	if err != nil || len(sets) > 0 {
		return there + n, err
	}
	return merged(ctx, w, from, t, nil)
}
