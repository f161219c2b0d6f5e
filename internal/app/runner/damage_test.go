package runner_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// damageScript reads tables of an earlier run when it starts with b: as the
// left and right side of a lookup, and by a file.
const damageScript = `
nodes:
  orders:
    type: file_table
    r: {urls: [orders.csv], types: {id: int}}
    w: orders
  items:
    type: file_table
    r: {urls: [items_1.csv, items_2.csv], types: {order_id: int, value: decimal2}}
    w: items
  totals:
    type: table_lookup_table
    start_policy: manual
    r: orders
    l: {table: items, on: "id = order_id", join_type: left, group: true}
    w: {name: totals, fields: [r.*, {total: sum(l.value)}]}
  file:
    type: table_file
    r: totals
    w: {url_template: out/totals.csv, order: id, columns: [id, name, total]}
`

// damageInputs has run the nodes that read files: run 1.
func damageInputs(t *testing.T) string {
	t.Helper()
	dir := crashInputs(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(absolute(damageScript, dir)), 0o644))
	sum, err := damageRun(t, dir)
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	return dir
}

// absolute makes the script's relative files those of dir, for runs inside the
// test's own process.
func absolute(script, dir string) string {
	return replaceAll(script, "orders.csv", dir+"/orders.csv", "items_1.csv", dir+"/items_1.csv", "items_2.csv",
		dir+"/items_2.csv", "out/", dir+"/out/")
}

// damageRun runs the script's nodes as another process would.
func damageRun(t *testing.T, dir string, start ...string) (sum runner.Summary, err error) {
	t.Helper()
	home, err := instance.Open(context.Background(), filepath.Join(dir, instance.DefaultDir), true)
	if err != nil {
		return sum, err
	}
	defer func() { require.NoError(t, home.Close()) }()
	return runner.Run(context.Background(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: "main", Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 2}, Start: start})
}

// filesBelow lists the files below a directory.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			out = append(out, path)
		}
		return err
	}))
	slices.Sort(out)
	return out
}

// damage flips a bit of a file, cuts its end off, or zeroes some of it, and
// says what it did. undo brings the file back.
func damage(t *testing.T, path string, rng *rand.Rand) (what string, undo func()) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	put := func(data []byte) {
		require.NoError(t, os.Chmod(path, 0o644))
		require.NoError(t, os.WriteFile(path, data, 0o644))
		require.NoError(t, os.Chmod(path, info.Mode().Perm()))
	}
	at := rng.IntN(len(data))
	bad := slices.Clone(data)
	switch rng.IntN(10) {
	case 0:
		bad, what = bad[:at], fmt.Sprintf("%s is cut at %d of %d", path, at, len(data))
	case 1:
		for i := at; i < min(at+512, len(bad)); i++ {
			bad[i] = 0
		}
		what = fmt.Sprintf("%s has zeros from %d of %d", path, at, len(data))
	default:
		bit := rng.IntN(8)
		bad[at] ^= 1 << bit
		what = fmt.Sprintf("%s has bit %d of byte %d of %d flipped", path, bit, at, len(data))
	}
	put(bad)
	return what, func() { put(data) }
}

// TestChaosDamagedParts damages parts of an earlier run: a run that reads them,
// and a query, fail by naming the part, or give what they gave before.
func TestChaosDamagedParts(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir := damageInputs(t)
	stored := filesBelow(t, filepath.Join(dir, instance.DefaultDir, "parts", "data"))
	require.Len(t, stored, 2)
	query := func() (inspect.QueryResult, error) {
		home, err := instance.Open(context.Background(), filepath.Join(dir, instance.DefaultDir), false)
		require.NoError(t, err)
		defer func() { require.NoError(t, home.Close()) }()
		return inspect.Query(context.Background(), home,
			inspect.QueryOptions{Workspace: "main", Process: runtime.Process{MemoryBytes: 128 << 20},
				SQL: "SELECT count(*), sum(value), min(name), max(id) FROM run1.orders JOIN run1.items ON " +
					"id = order_id"})
	}
	rows, err := query()
	require.NoError(t, err)
	sum, err := damageRun(t, dir, "totals")
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status)
	want := outputs(t, dir)
	require.NotEmpty(t, want)

	rng := rand.New(rand.NewPCG(7, 8))
	refused := 0
	for n := range effort.Of(20, 60, 5_000) {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
		path := stored[rng.IntN(len(stored))]
		what, undo := damage(t, path, rng)
		same, err := query()
		if err == nil {
			require.Equal(t, rows, same, what)
		} else {
			refused++
			require.ErrorIs(t, err, parts.ErrCorrupt, what)
			require.ErrorContains(t, err, filepath.Base(path), what)
		}
		if n%10 == 0 { // a run takes longer
			sum, err := damageRun(t, dir, "totals")
			require.NoError(t, err, what)
			if sum.Status == state.Complete {
				require.Equal(t, want, outputs(t, dir), what)
			} else {
				require.Equal(t, state.Failed, sum.Status, what)
				require.Contains(t, sum.Failure.Message, filepath.Base(path), what)
				node, _, _ := strings.Cut(filepath.Base(filepath.Dir(path))[3:], "/")
				require.Contains(t, sum.Failure.Message, "node "+node+" in run 1", what)
				require.Contains(t, sum.Failure.Hint, "{{set start="+node+",totals}} ", what)
				require.Empty(t, outputs(t, dir), what)
			}
		}
		undo()
	}
	require.Positive(t, refused)
	_, err = damageRun(t, dir, "totals")
	require.NoError(t, err)
	require.Equal(t, want, outputs(t, dir), "what was mended is read again")

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
	at := slices.IndexFunc(stored, func(path string) bool { return strings.Contains(path, "-orders/") })
	require.GreaterOrEqual(t, at, 0, stored)
	flipBit(t, stored[at])
	sum, err = damageRun(t, dir, "orders", "totals")
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status, "the way out that the hint names: %v", sum.Failure)
	require.Equal(t, want, outputs(t, dir))
}

// TestDamagedPartOfAResumedRun: a run that was cut off goes on with parts of
// its own, one of which is damaged. It fails again and again, and says which
// way out there is; that way works, from the node on that wrote the part.
func TestDamagedPartOfAResumedRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ damaged, start string }{
		{"items", "items"},   // written by a node that reads files
		{"totals", "totals"}, // by one that reads tables of the run that failed
	} {
		t.Run(c.damaged, func(t *testing.T) {
			t.Parallel()
			dir := crashInputs(t)
			text := strings.ReplaceAll(absolute(damageScript, dir), "    start_policy: manual\n", "")
			require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(text), 0o644))
			options := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Workspace: "main",
				Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 2}}
			run := func(change func(*runner.Options)) runner.Summary {
				home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), true)
				require.NoError(t, err)
				defer func() { require.NoError(t, home.Close()) }()
				o := options
				change(&o)
				sum, err := runner.Run(t.Context(), home, o)
				require.NoError(t, err)
				return sum
			}
			// The run ends where the damaged table would be read first.
			cut := map[string]string{"items": "totals", "totals": "file"}[c.damaged]
			ctx, cancel := context.WithCancel(t.Context())
			home, err := instance.Open(ctx, filepath.Join(dir, instance.DefaultDir), true)
			require.NoError(t, err)
			stopped := options
			stopped.Observe = func(e job.Event) {
				if e.Node == cut {
					cancel()
				}
			}
			sum, err := runner.Run(ctx, home, stopped)
			require.NoError(t, err)
			require.NoError(t, home.Close())
			require.Equal(t, state.Stopped, sum.Status)

			stored := filesBelow(t, filepath.Join(dir, instance.DefaultDir, "parts", "data"))
			at := slices.IndexFunc(stored, func(path string) bool { return strings.Contains(path, "-"+c.damaged+"/") })
			require.GreaterOrEqual(t, at, 0, stored)
			flipBit(t, stored[at])
			for range 2 {
				sum := run(func(o *runner.Options) { o.Resume = true })
				require.Equal(t, state.Failed, sum.Status)
				require.Contains(t, sum.Failure.Message, filepath.Base(stored[at])+" of the table of node "+c.damaged+
					" in run 1 is damaged")
				require.Contains(t, sum.Failure.Hint, "{{set start="+c.start+"}} ")
			}
			sum = run(func(o *runner.Options) { o.Start = strings.Split(c.start, ",") })
			require.Equal(t, state.Complete, sum.Status, sum.Failure)
			repaired := outputs(t, dir)
			require.NotEmpty(t, repaired)
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "out")))
			require.Equal(t, state.Complete, run(func(*runner.Options) {}).Status)
			require.Equal(t, outputs(t, dir), repaired)
		})
	}
}

func flipBit(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.Chmod(path, 0o644))
	require.NoError(t, os.WriteFile(path, data, 0o644))
}
