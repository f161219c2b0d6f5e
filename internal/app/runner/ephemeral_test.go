package runner_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Inputs of scripts that are run with stored and with ephemeral tables. In
// zeros.csv record 3 has n = 0, in bad.csv it has no number.
const (
	zerosCSV  = "id,n,txt\n1,5,a\n2,4,b\n3,0,c\n4,2,d\n5,1,e\n"
	badCSV    = "id,n,txt\n1,5,a\n2,4,b\n3,x,c\n4,2,d\n5,1,e\n"
	secondCSV = "key,v\n5,50\n3,30\n3,31\n1,10\n"
)

// loadOf is a node that loads one of them.
func loadOf(file, fields string) string {
	return fmt.Sprintf(`
  load: {type: file_table, r: {urls: [%s.csv], types: {id: int, n: int}}, w: {name: t, %s}}`, file, fields)
}

const (
	plainFields = "fields: [r.id, r.n, r.txt]"
	writeN      = `
  write: {type: table_file, r: t, w: {url_template: out.csv, columns: [r.id, r.n]}}`
	writeU = `
  write: {type: table_file, r: u, w: {url_template: out.csv, columns: [r.*]}}`
	second = `
  second: {type: file_table, r: {urls: [second.csv], types: {key: int, v: int}}, w: {name: s, fields: [r.key, r.v]}}`
)

// TestEphemeralFailsAsStored runs scripts with and without storing what need
// not be stored: they write the same, or fail for the same row.
func TestEphemeralFailsAsStored(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	tests := map[string]struct {
		nodes string
		fused int    // ephemeral nodes
		want  string // in the failure of either; "": the files are equal
		place string // of the failure of the ephemeral one
	}{
		"a load and a file": {loadOf("zeros", plainFields) + writeN, 1, "", ""},
		"a value is bad":    {loadOf("bad", plainFields) + writeN, 1, `"x"`, "bad.csv:4:3: node load: column n"},
		"nobody reads it": {loadOf("bad", plainFields) + strings.Replace(writeN, ", r.n", "", 1), 1, `"x"`,
			"bad.csv:4:3: node load: column n"},
		"its row is left out": {loadOf("bad", plainFields) + strings.Replace(writeN, "columns: [r.id, r.n]",
			"having: w.id < 3, columns: [r.id]", 1), 1, `"x"`, "bad.csv:4:3: node load: column n"},
		"only the first are wanted": {loadOf("bad", plainFields) + strings.Replace(writeN, "columns: [r.id, r.n]",
			"top: {limit: 1, order: id}, columns: [r.id, r.n]", 1), 1,
			`"x"`, "bad.csv:4:3: node load: column n"},
		"a field of the load": {loadOf("zeros", "fields: [r.id, {n: 10 / r.n}]") + writeN, 1,
			"field n: division by zero", "zeros.csv:4: node load: "},
		"having keeps the failing row out": {loadOf("zeros", "having: w.n > 0, fields: [r.id, {n: r.n}]") +
			strings.Replace(writeN, "r.n]", "{q: 10 / r.n}]", 1), 1, "", ""},
		"a condition above having": {loadOf("zeros", "having: w.n > 0, fields: [r.id, r.n]") +
			strings.Replace(writeN, "columns: [r.id, r.n]", "having: w.q > 2, columns: [r.id, {q: 10 / r.n}]", 1), 1,
			"", ""},
		"a column of the file": {loadOf("zeros", plainFields) + strings.Replace(writeN, "r.n]", "{q: 10 / r.n}]", 1), 1,
			"field q: division by zero", "zeros.csv:4: node write: field q"},
		"the middle of a chain": {loadOf("zeros", plainFields) + `
  middle: {type: table_table, r: t, w: {name: u, having: w.id > 1, fields: [r.id, {q: 10 / r.n}]}}` + writeU, 2,
			"field q: division by zero", "zeros.csv:4: node middle: "},
		"the end of a chain": {loadOf("zeros", plainFields) + `
  middle: {type: table_table, r: t, w: {name: u, having: w.id > 1, fields: [r.id, r.n]}}` +
			strings.Replace(writeU, "r.*", "{q: 10 / r.n}", 1), 2, "field q: division by zero",
			"zeros.csv:4: node write: field q"},
		"a lookup of both": {loadOf("zeros", plainFields) + second + `
  look: {type: table_lookup_table, r: t, l: {table: s, on: id = key, join_type: left}, ` +
			`w: {name: u, fields: [r.*, l.v]}}` + writeU, 3, "", ""},
		"a lookup that leaves bad rows out": {loadOf("bad", plainFields) + second + `
  look: {type: table_lookup_table, r: t, l: {table: s, on: id = key, join_type: inner}, ` +
			`w: {name: u, having: w.id == 1, fields: [r.id, l.v]}}` + writeU, 3,
			`"x"`, "bad.csv:4:3: node load: column n"},
		"a lookup's own failure": {loadOf("zeros", plainFields) + second + `
  look: {type: table_lookup_table, r: t, l: {table: s, on: id = key, join_type: inner}, ` +
			`w: {name: u, fields: [r.id, {q: l.v / r.n}]}}` + writeU, 3,
			"division by zero", "node look: field q: division by zero in `l.v / r.n`, for the row of table t " +
				"with r.id = 3"},
		"rows that meet nothing": {loadOf("zeros", plainFields) + strings.Replace(second, "[r.key, r.v]",
			"[r.key, r.v], having: w.key != 3", 1) + `
  look: {type: table_lookup_table, r: t, l: {table: s, on: id = key, join_type: inner}, ` +
			`w: {name: u, having: w.q > 1, fields: [r.id, {q: l.v / r.n}]}}` + writeU, 3, "", ""},
		"a lookup over two tables": {loadOf("zeros", plainFields) + strings.NewReplacer("load:", "more:", "name: t,",
			"name: t2,").Replace(loadOf("zeros", plainFields)) + second + `
  look: {type: table_lookup_table, r: {tables: [t, t2]}, l: {table: s, on: id = key, join_type: left}, ` +
			`w: {name: u, fields: [r.id, r.n, l.v]}}` + writeU, 2, "", ""},
		"a grouped lookup": {loadOf("zeros", plainFields) + second + `
  look: {type: table_lookup_table, r: t, l: {table: s, on: id = key, join_type: left, group: true}, ` +
			`w: {name: u, fields: [r.id, {v: sum(l.v)}]}}` + writeU, 3, "", ""},
		"tags": {loadOf("zeros", plainFields) + `
  tag: {type: table_custom_tfm_table, custom_proc_type: tag_and_denormalize, r: t,
    p: {tag_field_name: g, tag_criteria: {big: r.n > 2, odd: r.id % 2 == 1, any: "true"}}, ` +
			`w: {name: u, fields: [r.id, p.g]}}` + writeU, 2, "", ""},
		"a tag's failure": {loadOf("zeros", plainFields) + `
  tag: {type: table_custom_tfm_table, custom_proc_type: tag_and_denormalize, r: t,
    p: {tag_field_name: g, tag_criteria: {big: 10 / r.n > 2, any: "true"}}, ` +
			`w: {name: u, fields: [r.id, p.g]}}` + writeU, 2, "division by zero", "zeros.csv:4: node tag: "},
		"the first of each key": {loadOf("zeros", "fields: [{id: r.id % 2}, r.n, r.txt]") + `
  first: {type: distinct_table, rerun_policy: fail, r: t, ` +
			`w: {name: u, fields: [r.id, r.n], indexes: {idx_u: unique(id)}}}` + writeU, 2, "", ""},
		"a stored table on the way": {loadOf("zeros", plainFields) + `
  middle: {type: table_table, r: t, w: {name: u, having: w.id > 1, fields: [r.id, r.n]}}
  end: {type: table_table, r: u, w: {name: v, fields: [r.id, {q: 10 / r.n}]}}
  also: {type: table_file, r: t, w: {url_template: also.csv, columns: [r.id]}}` +
			strings.ReplaceAll(writeU, "r: u", "r: v"), 2,
			"field q: division by zero", "table t (row 3): node end: "},
	}
	n := 0
	for name, test := range tests {
		if n++; n%effort.Of(4, 1, 1) != 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, failure, _ := runEphemeral(t, test.nodes, false)
			fusedFiles, fusedFailure, sum := runEphemeral(t, test.nodes, true)
			if test.want == "" {
				require.Empty(t, failure)
				require.Empty(t, fusedFailure)
				require.Equal(t, files, fusedFiles)
			} else {
				require.Contains(t, failure, test.want)
				require.Contains(t, fusedFailure, test.want)
				require.Contains(t, fusedFailure, test.place)
			}
			require.Len(t, sum.ComputedIn, test.fused, "ephemeral nodes")
		})
	}
}

// runEphemeral runs nodes over the inputs and gives what they wrote, or the failure.
func runEphemeral(t *testing.T, nodes string, ephemeral bool) (files map[string]string, failure string,
	sum runner.Summary) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	text := strings.NewReplacer("urls: [", "urls: ["+dir+"/", "url_template: ", "url_template: "+dir+
		"/out/").Replace("nodes:" + nodes + "\n")
	for name, content := range map[string]string{"zeros.csv": zerosCSV, "bad.csv": badCSV, "second.csv": secondCSV,
		"script.yaml": text} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
	}
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	sum, err = runner.Run(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: state.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2},
		Ephemeral: ephemeral})
	if err != nil {
		return nil, err.Error(), sum
	}
	if sum.Failure != nil {
		return nil, strings.Replace(sum.Failure.Text(), ", computed in "+sum.Failure.Node+":", ":", 1), sum
	}
	return outputsIn(t, filepath.Join(dir, "out")), "", sum
}

func outputsIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(data)
	}
	return out
}

// TestEphemeralBatchesKeepTheirOrder stores a lookup of a table that is computed
// in many batches: what orders its rows goes on from batch to batch.
func TestEphemeralBatchesKeepTheirOrder(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const files, rows = 3, 400
	dir := t.TempDir()
	var want strings.Builder
	want.WriteString("id,v\n")
	for f := range files {
		var b strings.Builder
		b.WriteString("id\n")
		for i := range rows {
			fmt.Fprintf(&b, "%d\n", f*rows+i)
			fmt.Fprintf(&want, "%d,%d\n", f*rows+i, (f*rows+i)%7)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in%d.csv", f)), []byte(b.String()), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "second.csv"),
		[]byte("key,v\n0,0\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n"), 0o644))
	text := fmt.Sprintf(`nodes:
  load: {type: file_table, ephemeral: true, r: {urls: ["%[1]s/in*.csv"], types: {id: int}}, `+
		`w: {name: t, fields: [r.id, {k: r.id %% 7}]}}
  second: {type: file_table, r: {urls: ["%[1]s/second.csv"], types: {key: int, v: int}}, `+
		`w: {name: s, fields: [r.key, r.v]}}
  look: {type: table_lookup_table, r: t, l: {table: s, on: k = key, join_type: left}, w: {name: u, fields: [r.id, l.v]}}
  write: {type: table_file, r: u, w: {url_template: %[1]s/out.csv, columns: [r.*]}}
  also: {type: table_file, r: u, w: {url_template: %[1]s/also.csv, columns: [r.id]}}
`, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: state.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2,
			Tune: cutInto(2, 500)}})
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	got, err := os.ReadFile(filepath.Join(dir, "out.csv"))
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
}

// TestEphemeralRowsOfUnlikeFilesKeepTheirOrder looks up rows of files whose
// columns come in different orders, which are read one by one: DuckDB has them
// on the side of the join that probes, since they are more than the others.
func TestEphemeralRowsOfUnlikeFilesKeepTheirOrder(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	const files, rows = 6, 50
	dir := t.TempDir()
	var want strings.Builder
	want.WriteString("id,v\n")
	for f := range files {
		b := []string{"key,v\n", "v,key\n"}[f%2]
		for i := range rows {
			b += []string{fmt.Sprintf("7,%d\n", f*rows+i), fmt.Sprintf("%d,7\n", f*rows+i)}[f%2]
			fmt.Fprintf(&want, "1,%d\n", f*rows+i)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("in%d.csv", f)), []byte(b), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "few.csv"), []byte("id,k\n1,7\n"), 0o644))
	text := fmt.Sprintf(`nodes:
  load: {type: file_table, r: {urls: ["%[1]s/in*.csv"], types: {key: int, v: int}}, w: {name: t, fields: [r.key, r.v]}}
  few: {type: file_table, r: {urls: ["%[1]s/few.csv"], types: {id: int, k: int}}, w: {name: s, fields: [r.id, r.k]}}
  look: {type: table_lookup_table, r: s, l: {table: t, on: k = key, join_type: left}, w: {name: u, fields: [r.id, l.v]}}
  write: {type: table_file, r: u, w: {url_template: %[1]s/out.csv, columns: [r.*]}}
`, dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	for range 3 {
		sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
			Workspace: state.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 2 << 30, Cores: 8},
			Ephemeral: true})
		require.NoError(t, err)
		require.Nil(t, sum.Failure)
		got, err := os.ReadFile(filepath.Join(dir, "out.csv"))
		require.NoError(t, err)
		require.Equal(t, want.String(), string(got))
	}
}
