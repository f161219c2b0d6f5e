package conformance

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2" // the driver duckdb
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/action"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/state"
	"thalweg/internal/test/partstest"
)

// A case gets little, so that several run side by side.
const (
	caseMemoryBytes = 512 << 20
	caseCores       = 2
)

// bench is the directory in which a case runs, and what came of it.
type bench struct {
	t        *testing.T
	dir      string // holds the inputs and takes the outputs
	home     *instance.Instance
	inputs   map[string]string
	failures []string
	warnings string
	last     state.RunKey
	fused    bool // with --ephemeral
}

// newBench writes the inputs of a case to a directory of its own.
func newBench(t *testing.T, c *testCase) *bench {
	t.Helper()
	root, err := os.MkdirTemp("", "conform")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	b := &bench{t: t, dir: filepath.Join(root, "case"), inputs: map[string]string{}}
	for _, f := range c.archive.Files {
		if c.isInput(f.Name) {
			b.write(f.Name, string(f.Data))
		}
	}
	require.NoError(t, os.MkdirAll(b.dir, 0o755))
	if c.rowCSV != "" {
		b.write("row.csv", c.rowCSV)
	}
	if text := c.files[fileInputSQL]; text != "" {
		db := b.open()
		_, err := db.Exec(strings.ReplaceAll(text, dirMark, b.dir))
		require.NoError(t, err, fileInputSQL)
		require.NoError(t, db.Close())
	}
	for name := range b.leftFiles() {
		b.inputs[name] = ""
	}
	b.home, err = instance.Open(context.Background(), filepath.Join(root, "state"), true)
	require.NoError(t, err)
	if len(filepath.Base(c.file))%2 == 0 { // half of the cases, always the same
		require.NoError(t, b.home.Parts.Close())
		b.home.Parts, err = cache.New(&partstest.Memory{}, filepath.Join(root, "copies"), copiesBytesMax)
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, b.home.Close()) })
	return b
}

// copiesBytesMax is room for few parts, where they are in a store without paths.
const copiesBytesMax = 64 << 10

// write puts a file into the directory; $DIR becomes its path.
func (b *bench) write(name, text string) {
	b.t.Helper()
	data := []byte(strings.ReplaceAll(text, dirMark, b.dir))
	if plain, ok := strings.CutSuffix(name, encodedSuffix); ok {
		var err error
		data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		require.NoError(b.t, err, name)
		name = plain
	}
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	require.NoError(b.t, writeFile(path, data))
	b.inputs[name] = ""
}

// open opens a DuckDB for which relative names are in the case's directory.
func (b *bench) open() *sql.DB {
	b.t.Helper()
	db, err := sql.Open("duckdb", "?threads=1&memory_limit=256MB")
	require.NoError(b.t, err)
	db.SetMaxOpenConns(1)
	_, err = db.Exec("SET file_search_path = '" + b.dir + "'; SET VARIABLE dir = '" + b.dir + "'; SET TimeZone = 'UTC'")
	require.NoError(b.t, err)
	return db
}

// execute does what the case's file runs says.
func (b *bench) execute(c *testCase) {
	b.t.Helper()
	for i, s := range c.runs {
		if s.copyFrom != "" {
			data, err := os.ReadFile(filepath.Join(b.dir, s.copyFrom))
			require.NoError(b.t, err)
			require.NoError(b.t, os.WriteFile(filepath.Join(b.dir, s.copyTo), data, 0o644))
			continue
		}
		text := b.run(s)
		if text != "" && len(c.runs) > 1 {
			text = fmt.Sprintf("line %d of runs: %s", i+1, text)
		}
		if text != "" {
			b.failures = append(b.failures, text)
		}
	}
}

// run runs a script and gives its failure as people see it, "" for none.
func (b *bench) run(s step) string {
	b.t.Helper()
	if s.approve != "" {
		_, err := control.Decide(context.Background(), b.home, control.DecisionRequest{Run: b.last, Gate: s.approve,
			Approve: true,
			Process: runtime.Process{Caller: caller.OfProcess(caller.CLI, s.role)}, Answers: s.answers})
		return b.refused(err)
	}
	opts := runner.Options{ScriptPath: filepath.Join(b.dir, s.script),
		Workspace: instance.DefaultWorkspace, Start: s.start, From: s.from, Lenient: s.lenient,
		Process: runtime.Process{MemoryBytes: caseMemoryBytes, Cores: caseCores,
			Interpreter: "python3", Logger: quiet},
		Ephemeral: b.fused, Reuse: s.reuse}
	if s.resume {
		opts.Resume, opts.Pinned, opts.ResumeRun = true, true, b.last.Run
	}
	if s.params != "" {
		opts.ParamsPath = filepath.Join(b.dir, s.params)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	status := state.Complete
	if s.stop != "" {
		status = state.Stopped
		opts.Observe = func(e job.Event) {
			if e.Node == s.stop {
				cancel()
			}
		}
	}
	if s.waits {
		status = state.Waiting
	}
	opts.Started = func(s runner.Started) { b.warnings = b.plain(s.Warnings.Render()) }
	sum, err := runner.Run(ctx, b.home, opts)
	b.last = sum.Key
	switch {
	case err != nil:
		return b.refused(err)
	case sum.Failure != nil:
		return b.plain(renderFailure(*sum.Failure))
	}
	require.Equal(b.t, status, sum.Status)
	return ""
}

// refused writes what the command line prints about an error, "" for none.
func (b *bench) refused(err error) string {
	var invalid *sources.InvalidScriptError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return b.plain(invalid.Diagnostics.Render())
	}
	f := fault.Of(err)
	return b.plain(renderFailure(state.Failure{Place: fault.Place{Field: f.Place.Field, Value: f.Place.Value,
		Expr: f.Place.Expr}, Message: err.Error(), Hint: f.Hint, Detail: f.Detail}))
}

// renderFailure writes what the command line prints about a failure.
func renderFailure(f state.Failure) string {
	var w strings.Builder
	if whose := f.Whose(); whose != "" {
		fmt.Fprintf(&w, "%s: ", whose)
	}
	if where := f.Place.String(); where != "" {
		fmt.Fprintf(&w, "%s: ", where)
	}
	fmt.Fprintf(&w, "%s\n", f.Message)
	for _, part := range []struct{ name, text string }{{"field", f.Place.Field}, {"value", f.Place.Value},
		{"expression", f.Place.Expr}} {
		if part.text != "" {
			fmt.Fprintf(&w, "  %s: %s\n", part.name, part.text)
		}
	}
	if f.Detail != "" {
		for _, line := range strings.Split(strings.TrimRight(f.Detail, "\n"), "\n") {
			fmt.Fprintf(&w, "  | %s\n", line)
		}
	}
	if f.Hint != "" {
		fmt.Fprintf(&w, "  hint: %s\n", f.Hint)
	}
	return w.String()
}

// plain takes out of a text what changes from one run to the next.
func (b *bench) plain(text string) string {
	return action.Render(strings.ReplaceAll(text, b.dir, dirMark), typed{})
}

// leftFiles reads what is in the directory beside the inputs.
func (b *bench) leftFiles() map[string]string {
	b.t.Helper()
	out := map[string]string{}
	require.NoError(b.t, filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(b.dir, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if _, input := b.inputs[name]; input {
			return nil
		}
		data, err := os.ReadFile(path)
		out[name] = string(data)
		return err
	}))
	return out
}

// tables answers the queries over the tables.
func (b *bench) tables(queries string) string {
	b.t.Helper()
	var w bytes.Buffer
	for i, q := range splitQueries(queries) {
		res, err := inspect.Query(context.Background(), b.home,
			inspect.QueryOptions{Workspace: instance.DefaultWorkspace, SQL: q,
				Process: runtime.Process{MemoryBytes: caseMemoryBytes}})
		require.NoError(b.t, err, "%s\nwhat failed before: %s", q, b.failures)
		writeRows(b.t, &w, i, res.Columns, res.Rows)
	}
	return w.String()
}

// queryFiles answers the queries over the files of the directory.
func (b *bench) queryFiles(queries string) string {
	b.t.Helper()
	db := b.open()
	defer db.Close()
	var w bytes.Buffer
	for i, q := range splitQueries(strings.ReplaceAll(queries, dirMark, b.dir)) {
		rows, err := db.Query(q)
		require.NoError(b.t, err, q)
		columns, err := rows.Columns()
		require.NoError(b.t, err)
		var all [][]any
		for rows.Next() {
			row, ptrs := make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				ptrs[i] = &row[i]
			}
			require.NoError(b.t, rows.Scan(ptrs...))
			all = append(all, row)
		}
		require.NoError(b.t, errors.Join(rows.Err(), rows.Close()))
		writeRows(b.t, &w, i, columns, all)
	}
	return w.String()
}

// splitQueries cuts a file into queries, each ended by a semicolon at the end of a line.
func splitQueries(text string) []string {
	var out []string
	for _, q := range strings.Split(text+"\n", ";\n") {
		if q = strings.TrimSpace(q); q != "" {
			out = append(out, q)
		}
	}
	return out
}

// writeRows writes an answer as CSV, an empty line before each but the first.
func writeRows(t *testing.T, w *bytes.Buffer, i int, columns []string, rows [][]any) {
	t.Helper()
	if i > 0 {
		w.WriteByte('\n')
	}
	out := csv.NewWriter(w)
	require.NoError(t, out.Write(columns))
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = cellText(v)
		}
		require.NoError(t, out.Write(cells))
	}
	out.Flush()
	require.NoError(t, out.Error())
}

// writeFile writes a file and makes its directory.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}
