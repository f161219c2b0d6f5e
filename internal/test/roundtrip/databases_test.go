package roundtrip

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/test/effort"
)

// client is a database with its own client.
type client struct {
	name    string
	at      string   // address for Thalweg
	command []string // reads SQL, and writes a line a row
	in      layouts
	types   map[string]string // by kind; numbers of a decimal stand behind it
	text    string            // a text of bytes in hexadecimal
	shown   map[string]string // by kind: the text of a column; "": that of all others
	ident   func(string) string
}

// clients are those that are here.
func clients(t *testing.T) (out []client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.db")
	if _, err := exec.LookPath("sqlite3"); err == nil {
		out = append(out, client{name: "SQLite", at: "sqlite://" + file, command: []string{"sqlite3", "-batch", "-bail",
			file}, in: ours,
			types: map[string]string{"string": "TEXT", "int": "INTEGER", "float": "REAL",
				"bool": "BOOLEAN", "date": "TEXT",
				"datetime": "TEXT", "timestamptz": "TEXT", "decimal": "DECIMAL_TEXT"},
			text: "CAST(x'%s' AS TEXT)", shown: map[string]string{"": "%s", "float": "ieee754_to_blob(%s)"},
			ident: sqltext.Ident})
	}
	if at := os.Getenv("THALWEG_TEST_POSTGRES"); at != "" {
		out = append(out, client{name: "PostgreSQL", at: at,
			command: []string{"psql", "-qAtX", "-v", "ON_ERROR_STOP=1", at}, in: typed,
			types: map[string]string{"string": "text", "int": "bigint", "float": "double precision", "bool": "boolean",
				"date": "date", "datetime": "timestamp(3)", "timestamptz": "timestamptz", "decimal": "numeric"},
			text:  `convert_from('\x%s', 'UTF8')`,
			shown: map[string]string{"": "encode(convert_to(%s::text, 'UTF8'), 'hex')"}, ident: sqltext.Ident})
	}
	if at := os.Getenv("THALWEG_TEST_MYSQL"); at != "" {
		u, err := url.Parse(at)
		require.NoError(t, err)
		out = append(out, client{name: "MariaDB", at: at, in: typed,
			command: []string{"mariadb", "-NB", "-h", u.Hostname(), "-P", u.Port(), "-u", u.User.Username(),
				"--default-character-set=utf8mb4", strings.Trim(u.Path, "/")},
			types: map[string]string{"string": "longtext", "int": "bigint", "float": "double", "bool": "tinyint(1)",
				"date": "date", "datetime": "datetime(3)", "timestamptz": "datetime(6)", "decimal": "decimal"},
			text: "convert(x'%s' USING utf8mb4)", shown: map[string]string{"": "hex(convert(%s USING utf8mb4))"},
			ident: func(name string) string { return "`" + name + "`" }})
	}
	return out
}

// run has the client do something, and gives the lines that it writes.
func (c client) run(t *testing.T, statements string) []string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), c.command[0], c.command[1:]...)
	cmd.Env = append(os.Environ(), "PGTZ=UTC", "PGCLIENTENCODING=UTF8")
	cmd.Stdin = strings.NewReader(statements)
	var said, wrong strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &wrong
	require.NoError(t, cmd.Run(), wrong.String())
	return strings.FieldsFunc(said.String(), func(r rune) bool { return r == '\n' })
}

// make has the client make a table, and put its rows in.
func (c client) make(t *testing.T, name string, of table) {
	t.Helper()
	var columns []string
	for _, col := range of.Columns {
		kind := c.types[col.Kind]
		if col.Kind == "decimal" {
			kind += fmt.Sprintf("(%d,%d)", col.P, col.Scale)
		}
		if c.name == "MariaDB" {
			kind += " NULL"
		}
		columns = append(columns, c.ident(col.Name)+" "+kind)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (%s)%s;\n", name, strings.Join(columns, ", "),
		map[string]string{"MariaDB": " CHARACTER SET utf8mb4"}[c.name])
	for _, row := range of.Rows {
		values := make([]string, len(row))
		for i, cell := range row {
			values[i] = c.literal(of.Columns[i], cell)
		}
		fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", name, strings.Join(values, ", "))
	}
	c.run(t, b.String())
}

func (c client) literal(col column, cell *string) string {
	switch {
	case cell == nil:
		return "NULL"
	case col.Kind == "string":
		return fmt.Sprintf(c.text, hex.EncodeToString([]byte(*cell)))
	case col.Kind == "bool" && c.name != "PostgreSQL":
		return map[string]string{"true": "1", "false": "0"}[*cell]
	case col.Kind == "timestamptz" && c.name == "MariaDB":
		return "'" + strings.TrimSuffix(*cell, "+00") + "'"
	case col.Kind == "timestamptz" && c.name == "SQLite":
		return "'" + strings.Replace(strings.TrimSuffix(*cell, "+00"), " ", "T", 1) + "Z'"
	case col.Kind == "int" || col.Kind == "float":
		return *cell
	}
	return "'" + *cell + "'"
}

// rows are those of a table as the client reads them.
func (c client) rows(t *testing.T, name string, of table) table {
	t.Helper()
	var cells []string
	for _, col := range of.Columns {
		shown := c.shown[col.Kind]
		if shown == "" {
			shown = c.shown[""]
		}
		value := fmt.Sprintf(shown, c.ident(col.Name))
		if c.name == "SQLite" {
			value = "hex(nullif(" + value + ", ''))"
			value = "CASE WHEN " + c.ident(col.Name) + " IS NULL THEN 'NULL' ELSE '=' || " + value + " END"
		} else {
			value = "coalesce(concat('=', " + value + "), 'NULL')"
			if c.name == "PostgreSQL" { // where concat passes over NULL
				value = "CASE WHEN " + c.ident(col.Name) + " IS NULL THEN 'NULL' ELSE " + value + " END"
			}
		}
		cells = append(cells, value)
	}
	sep := map[bool]string{true: "concat_ws(' ', " + strings.Join(cells, ", ") + ")",
		false: strings.Join(cells, " || ' ' || ")}[c.name != "SQLite"]
	out := table{Columns: of.Columns, Rows: [][]*string{}}
	for _, line := range c.run(t, "SELECT "+sep+" FROM "+name+" ORDER BY "+c.ident("id")+";\n") {
		var row []*string
		for _, cell := range strings.Split(line, " ") {
			text, some := strings.CutPrefix(cell, "=")
			if !some {
				row = append(row, nil)
				continue
			}
			raw, err := hex.DecodeString(text)
			require.NoError(t, err, line)
			value := string(raw)
			if c.name == "SQLite" && of.Columns[len(row)].Kind == "float" { // whose texts have 15 digits
				value = strconv.FormatFloat(math.Float64frombits(binary.BigEndian.Uint64(raw)), 'g', -1, 64)
			}
			row = append(row, &value)
		}
		require.Len(t, row, len(of.Columns), line)
		out.Rows = append(out.Rows, row)
	}
	return out
}

// TestChaosDatabases takes tables through each database that is here: what its own client puts in
// Thalweg reads, and what Thalweg puts in the client reads, and Thalweg.
func TestChaosDatabases(t *testing.T) {
	t.Parallel()
	const seed, most = 37, 200
	tablesInRound := effort.Of(2, 3, 5)
	rounds := effort.Of(1, 1, most/tablesInRound)
	db := openDuckDB(t)
	known := clients(t)
	for n := range rounds {
		r := &round{t: t, dir: t.TempDir(), db: db, rnd: rand.New(rand.NewPCG(seed, uint64(n))),
			by: map[string][]column{}, known: map[*column][][]string{}}
		for range tablesInRound {
			r.tables = append(r.tables, map[manner]table{anything: draw(r.rnd, anything)})
		}
		r.through(known, fmt.Sprintf("t%d_%d", os.Getpid(), n))
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
		require.NoError(t, os.RemoveAll(r.dir))
	}
}

// through takes the tables of a round through databases.
func (r *round) through(clients []client, name string) {
	r.t.Helper()
	nodes, again := object{}, object{}
	for n, of := range r.tables {
		t := of[anything]
		source := r.path(n, "any.parquet")
		require.NoError(r.t, os.MkdirAll(filepath.Dir(source), 0o700))
		r.exec(copyTo("FORMAT parquet")(t.query(), source))
		nodes[fmt.Sprintf("read_%d", n)] = object{"type": "file_table", "w": fmt.Sprintf("t%d", n),
			"r": object{"urls": []string{source}, "columns": t.columns(typed, "")}}
		for _, c := range clients {
			in, out := fmt.Sprintf("%s_%d_in", name, n), fmt.Sprintf("%s_%d_out", name, n)
			c.make(r.t, in, t)
			r.t.Cleanup(func() { c.run(r.t, "DROP TABLE IF EXISTS "+in+"; DROP TABLE IF EXISTS "+out+";") })
			r.readTable(nodes, c, in, t, r.path(n, c.name+"_in.parquet"))
			nodes[fmt.Sprintf("out_%d_%s", n, c.name)] = object{"type": "table_file", "r": fmt.Sprintf("t%d", n),
				"w": object{"url_template": c.at, "table": out, "mode": "replace", "columns": t.names()}}
			r.readTable(again, c, out, t, r.path(n, c.name+"_again.parquet"))
		}
	}
	r.run(nodes)
	r.run(again)
	for n, of := range r.tables {
		t := of[anything]
		for _, c := range clients {
			parquet := func(name string) string {
				return "SELECT * FROM read_parquet(" + sqltext.String(r.path(n, c.name+name)) + ")"
			}
			r.compare(t, parquet("_in.parquet"), false, c.name+": put in by its client, read by Thalweg")
			r.compare(t, parquet("_again.parquet"), false, c.name+": put in and read by Thalweg")
			r.compare(t, c.rows(r.t, fmt.Sprintf("%s_%d_out", name, n), t).query(), false,
				c.name+": put in by Thalweg, read by its client")
		}
	}
}

// readTable are nodes that read a table of a database, and write what they have read as Parquet.
func (r *round) readTable(nodes object, c client, name string, t table, to string) {
	nodes["r_"+c.name+name] = object{"type": "file_table", "w": c.name + name,
		"r": object{"urls": []string{c.at}, "table": name, "types": t.columns(c.in, "")}}
	nodes["w_"+c.name+name] = object{"type": "table_file", "r": c.name + name,
		"w": object{"url_template": to, "columns": t.names()}}
}
