package roundtrip

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/sqltext"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// round is some tables on their way through all forms.
type round struct {
	t      *testing.T
	dir    string
	db     *sql.DB
	rnd    *rand.Rand
	tables []map[manner]table
	by     map[string][]column    // of directories of partitions, by path
	known  map[*column][][]string // of tables, by their first column
}

// TestChaosRoundTrips takes tables through each form, in and out: what others write Thalweg reads,
// what it writes others read, and itself, without a difference.
func TestChaosRoundTrips(t *testing.T) {
	t.Parallel()
	const seed, most = 31, 200
	tablesInRound := effort.Of(1, 2, 5)
	rounds := effort.Of(1, 1, most/tablesInRound)
	db := openDuckDB(t)
	for n := range rounds {
		r := &round{t: t, dir: t.TempDir(), db: db, rnd: rand.New(rand.NewPCG(seed, uint64(n))),
			by: map[string][]column{}, known: map[*column][][]string{}}
		for range tablesInRound {
			r.tables = append(r.tables, map[manner]table{anything: draw(r.rnd, anything), western: draw(r.rnd, western),
				sheets: draw(r.rnd, sheets), nested: draw(r.rnd, nested)})
		}
		r.do()
		if t.Failed() {
			t.Fatalf("in round %d", n)
		}
		require.NoError(t, os.RemoveAll(r.dir))
	}
}

// openDuckDB opens the engine that reads and writes beside Thalweg.
func openDuckDB(t *testing.T) *sql.DB {
	t.Helper()
	connector, err := duckdb.NewConnector("", nil)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.SetMaxOpenConns(1)
	for _, set := range []string{"SET threads = 1", "SET TimeZone = 'UTC'"} {
		_, err = db.ExecContext(t.Context(), set)
		require.NoError(t, err)
	}
	return db
}

func (r *round) path(n int, parts ...string) string {
	return filepath.Join(append([]string{r.dir, fmt.Sprint(n)}, parts...)...)
}

func (r *round) do() {
	others := os.Getenv("THALWEG_TEST_READERS") != ""
	nodes, jobs := object{}, []object{}
	for n, of := range r.tables {
		require.NoError(r.t, os.MkdirAll(r.path(n, "in"), 0o700))
		for _, how := range []manner{anything, sheets, nested} {
			r.exec(copyTo("FORMAT parquet")(of[how].query(), r.path(n, string(how)+".parquet")))
			nodes[fmt.Sprintf("read_%d_%s", n, how)] = object{"type": "file_table", "w": fmt.Sprintf("t%d_%s", n, how),
				"r": object{"urls": []string{r.path(n, string(how)+".parquet")}, "columns": of[how].columns(typed, "")}}
		}
		for _, in := range inputs() {
			if in.sql == nil {
				if !others {
					continue
				}
				jobs = append(jobs, r.writeJob(n, in))
			} else {
				r.write(n, in)
			}
			r.readNode(nodes, fmt.Sprintf("in_%d_%s", n, in.name), of[in.how], r.path(n, "in", in.name), in.in, in.null,
				in.reader, r.path(n, "got", in.name+".parquet"))
		}
		for _, out := range outputs() {
			r.writeNode(nodes, n, out)
		}
	}
	r.python(jobs)
	r.run(nodes)
	for n, of := range r.tables {
		for _, in := range inputs() {
			if in.sql != nil || others {
				r.compare(of[in.how], "SELECT * FROM read_parquet("+
					sqltext.String(r.path(n, "got", in.name+".parquet"))+")", in.hive == nil, "input "+in.name)
			}
		}
	}
	r.readOutputs(others)
}

// readOutputs reads what Thalweg has written: DuckDB, others, Thalweg.
func (r *round) readOutputs(others bool) {
	nodes, jobs := object{}, []object{}
	for n, of := range r.tables {
		for _, out := range outputs() {
			t, path := of[out.how], r.path(n, "out", out.name)
			seen := t
			if strings.Contains(out.name, "json") {
				seen = t.doubles()
			}
			if len(r.files(path)) == 0 {
				require.Empty(r.t, t.Rows, "partitions of no rows are no files")
				continue
			}
			if query := r.duck(seen, path, out); query != "" {
				r.compare(seen, query, !out.hive, "output "+out.name+" by DuckDB")
			}
			jobs = append(jobs, r.readJobs(n, out)...)
			if !out.unread {
				r.readNode(nodes, fmt.Sprintf("out_%d_%s", n, out.name), t, path, out.in, "", out.reader,
					r.again(n, out))
			}
		}
	}
	if others {
		r.python(jobs)
	}
	r.run(nodes)
	for n, of := range r.tables {
		for _, out := range outputs() {
			if !out.unread && len(r.files(r.path(n, "out", out.name))) > 0 {
				r.compare(of[out.how], "SELECT * FROM read_parquet("+sqltext.String(r.again(n, out))+")", !out.hive,
					"output "+out.name+" by Thalweg")
			}
		}
	}
}

// again returns the path at which Thalweg writes the rows that it has read of an output.
func (r *round) again(n int, out output) string {
	return r.path(n, "again", strings.NewReplacer("{", "", "}", "").Replace(out.name)+".parquet")
}

func (r *round) exec(statement string) {
	r.t.Helper()
	_, err := r.db.ExecContext(r.t.Context(), statement)
	require.NoError(r.t, err)
}

// write has DuckDB write a table.
func (r *round) write(n int, in input) {
	t, path := r.tables[n][in.how], r.path(n, "in", in.name)
	query := t.query()
	if in.view != nil {
		query = in.view(t)
	}
	r.exec(in.sql(query, path))
	if in.pack != nil {
		require.NoError(r.t, in.pack(path), in.name)
	}
}

func (r *round) writeJob(n int, in input) object {
	path := r.path(n, "in", in.name)
	if in.hive != nil {
		if t := r.tables[n][in.how]; len(t.Rows) > 0 {
			r.by[path] = in.hive(r.rnd, t)
		} else {
			r.by[path] = nil
		}
	}
	return object{"do": "write", "form": in.name, "path": path, "table": key(n, in.how), "by": r.by[path]}
}

func key(n int, how manner) string { return fmt.Sprintf("%d %s", n, how) }

// readNode are nodes that read a file and write what they have read as Parquet.
func (r *round) readNode(nodes object, name string, t table, path string, in layouts, null string, reader object,
	to string) {
	name = strings.NewReplacer(".", "_", "-", "_", "{", "", "}", "").Replace(name)
	columns, urls := t.columns(in, null), path
	if by, ok := r.by[path]; ok {
		for _, c := range by {
			delete(columns, c.Name)
		}
		end := filepath.Ext(path)
		if end == ".hive" {
			end = ".parquet"
		}
		urls = hivePath(path, by, end)
	} else if info, err := os.Stat(path); err == nil && info.IsDir() {
		urls = path + "/part-*" + filepath.Ext(path)
	}
	read := object{"urls": []string{strings.ReplaceAll(urls, "{batch_idx}", "*")}, "columns": columns}
	for k, v := range reader {
		read[k] = v
	}
	nodes["r_"+name] = object{"type": "file_table", "r": read, "w": name}
	nodes["w_"+name] = object{"type": "table_file", "r": name, "w": object{"url_template": to, "columns": t.names()}}
}

// writeNode is a node that writes a table in a form.
func (r *round) writeNode(nodes object, n int, out output) {
	t, path := r.tables[n][out.how], r.path(n, "out", out.name)
	w := object{"url_template": path, "columns": t.names()}
	for k, v := range out.writer {
		w[k] = v
	}
	if out.hive {
		by := partition(r.rnd, t)
		var names []string
		for _, c := range by {
			names = append(names, c.Name)
		}
		if r.by[path] = by; len(by) > 0 {
			w["partition_by"] = names
		} else {
			w["target_size"] = "1KB"
		}
	}
	name := strings.NewReplacer(".", "_", "{", "", "}", "").Replace(fmt.Sprintf("o_%d_%s", n, out.name))
	nodes[name] = object{"type": "table_file", "w": w,
		"r": object{"table": fmt.Sprintf("t%d_%s", n, out.how), "expected_batches_total": max(out.batches, 1)}}
}

// run runs a script of nodes.
func (r *round) run(nodes object) {
	r.t.Helper()
	raw, err := json.Marshal(object{"nodes": nodes})
	require.NoError(r.t, err)
	name := filepath.Join(r.dir, "script.json")
	require.NoError(r.t, os.WriteFile(name, raw, 0o600))
	home, err := instance.Open(r.t.Context(), filepath.Join(r.dir, "state"), true)
	require.NoError(r.t, err)
	sum, err := runner.Run(r.t.Context(), home, runner.Options{ScriptPath: name, Workspace: instance.DefaultWorkspace,
		Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 2}})
	require.NoError(r.t, home.Close())
	require.NoError(r.t, err)
	require.Equal(r.t, state.Complete, sum.Status, "%+v", sum.Failure)
}

// files lists what is below a path, but for manifests, in the order of the names.
func (r *round) files(path string) (out []string) {
	r.t.Helper()
	if found, err := filepath.Glob(strings.ReplaceAll(path, "{batch_idx}", "*")); err == nil &&
		strings.Contains(path, "{") {
		return found
	}
	require.NoError(r.t, filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "_manifest.json" {
			out = append(out, at)
		}
		return err
	}))
	return out
}

// duck returns DuckDB's table function for an output; "" if DuckDB cannot read it.
func (r *round) duck(t table, path string, out output) string {
	found := r.files(path)
	var types, options []string
	by, hive := r.by[path]
	for _, c := range t.Columns {
		if !hive || !slices.Contains(by, c) {
			types = append(types, sqltext.String(c.Name)+": "+sqltext.String(c.sql()))
		}
	}
	if hive && len(by) > 0 {
		var of []string
		for _, c := range by {
			of = append(of, sqltext.String(c.Name)+": "+sqltext.String(c.sql()))
		}
		options = []string{"hive_partitioning = true", "hive_types = {" + strings.Join(of, ", ") + "}"}
	}
	columns := "columns = {" + strings.Join(types, ", ") + "}"
	list := sqltext.Strings(found)
	switch {
	case strings.Contains(out.name, "xlsx"):
		return ""
	case strings.Contains(out.name, "json"):
		options = append(options, "format = 'newline_delimited'", columns, "maximum_object_size = 100000000")
		return "SELECT * FROM read_json(" + list + ", " + strings.Join(options, ", ") + ")"
	case strings.Contains(out.name, "parquet"):
		if len(options) == 0 {
			options = []string{"hive_partitioning = false"}
		}
		return "SELECT * FROM read_parquet(" + list + ", " + strings.Join(options, ", ") + ")"
	}
	options = append(options, "auto_detect = false", "strict_mode = true", "header = true",
		"delim = "+sqltext.String(separator(out)), `quote = '"'`, `escape = '"'`,
		"nullstr = ''", "allow_quoted_nulls = false", "max_line_size = 10000000", "parallel = false", columns)
	if !hive {
		options = append(options, "hive_partitioning = false")
	}
	return "SELECT * FROM read_csv(" + list + ", " + strings.Join(options, ", ") + ")"
}

func separator(out output) string {
	if strings.HasSuffix(out.name, ".tsv") {
		return "\t"
	}
	if of, ok := out.reader["csv"].(object)["separator"].(string); ok {
		return of
	}
	return ","
}

// readJobs returns the jobs by which other programs read an output.
func (r *round) readJobs(n int, out output) []object {
	path := r.path(n, "out", out.name)
	found := r.files(path)
	job := object{"do": "read", "table": key(n, out.how), "paths": found, "compression": nil}
	for end, is := range map[string]string{".gz": "gzip", ".zst": "zstd"} {
		if strings.HasSuffix(out.name, end) {
			job["compression"] = is
		}
	}
	switch by := r.by[path]; {
	case strings.Contains(out.name, "xlsx"):
		job["kind"] = "xlsx"
	case strings.Contains(out.name, "json"):
		job["kind"] = "json"
	case strings.Contains(out.name, "parquet"):
		job["kind"] = "parquet"
		if len(by) > 0 {
			job["by"], job["paths"] = by, []string{path}
		}
	case len(by) > 0:
		return nil // of CSV the columns that are in names are DuckDB's to read
	default:
		job["kind"], job["separator"] = "csv", separator(out)
	}
	return []object{job}
}

// python has the others do their jobs.
func (r *round) python(jobs []object) {
	r.t.Helper()
	if len(jobs) == 0 {
		return
	}
	tables := map[string]table{}
	for n, of := range r.tables {
		for how, t := range of {
			tables[key(n, how)] = t
		}
	}
	raw, err := json.Marshal(object{"jobs": jobs, "tables": tables, "seed": r.rnd.IntN(1 << 30)})
	require.NoError(r.t, err)
	todo := filepath.Join(r.dir, "jobs.json")
	require.NoError(r.t, os.WriteFile(todo, raw, 0o600))
	said, err := exec.CommandContext(r.t.Context(), os.Getenv("THALWEG_TEST_READERS"), "testdata/readers.py",
		todo).CombinedOutput()
	require.NoError(r.t, err, string(said))
	if len(said) > 0 {
		r.t.Errorf("others read other rows:\n%s", said)
	}
}

// compare holds what a query gives against a table.
func (r *round) compare(t table, query string, ordered bool, what string) {
	r.t.Helper()
	want := slices.Clone(r.want(t))
	got, err := r.rows(t, query)
	if err != nil {
		r.t.Errorf("%s: %v", what, err)
		return
	}
	if !ordered {
		slices.SortFunc(want, slices.Compare)
		slices.SortFunc(got, slices.Compare)
	}
	if len(want) != len(got) {
		r.t.Errorf("%s: %d rows, not %d", what, len(got), len(want))
		return
	}
	for n := range want {
		for i, c := range t.Columns {
			if want[n][i] != got[n][i] {
				r.t.Errorf("%s: row %d, column %s of type %s: %q, not %q", what, n, c.Name, c.typ(),
					got[n][i], want[n][i])
				return
			}
		}
	}
}

// want are a table's rows as DuckDB has them.
func (r *round) want(t table) [][]string {
	r.t.Helper()
	at := &t.Columns[0]
	if r.known[at] == nil {
		rows, err := r.rows(t, t.query())
		require.NoError(r.t, err)
		r.known[at] = rows
	}
	return r.known[at]
}

// rows returns the rows of a query, as texts that are equal where the values are.
func (r *round) rows(t table, query string) (out [][]string, err error) {
	cells := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = sqltext.Ident(c.Name)
		switch c.Kind {
		case "datetime", "timestamptz":
			cells[i] = "epoch_us(CAST(" + cells[i] + " AS " + c.sql() + "))"
		case "decimal":
			cells[i] = "CAST(" + cells[i] + " AS " + c.sql() + ")"
		}
		cells[i] = "coalesce('=' || CAST(" + cells[i] + " AS VARCHAR), 'NULL')"
	}
	rows, err := r.db.QueryContext(r.t.Context(), "SELECT "+strings.Join(cells, ", ")+" FROM ("+query+")")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		row, into := make([]string, len(cells)), make([]any, len(cells))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rows.Err()
}

// squeezed packs a file when something was done to it.
func squeezed(first func(path string) error) func(path string) error {
	return func(path string) error {
		if err := first(path); err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write(text); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		return os.WriteFile(path, out.Bytes(), 0o600)
	}
}

// encode gives a file of UTF-8 another encoding.
func encode(name string) func(path string) error {
	encodings := map[string]encoding.Encoding{"latin-1": charmap.ISO8859_1, "windows-1252": charmap.Windows1252,
		"utf-16": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf-16be": unicode.UTF16(unicode.BigEndian,
			unicode.IgnoreBOM)}
	return func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if text, err = encodings[name].NewEncoder().Bytes(text); err != nil {
			return err
		}
		return os.WriteFile(path, text, 0o600)
	}
}
