package app_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// oneScript reads what its token opens, and writes where its region says.
const oneScript = `
environment:
  REGION: {}
  HOST: {}
  TOKEN: {secret: true}
nodes:
  load:
    type: file_table
    r: {urls: ["{env.HOST}/in.csv?token={env.TOKEN}"], types: {id: int}}
    w: ids
  write: {type: table_file, r: ids, w: "{env.REGION}.csv"}
`

// localScript reads in.csv beside it.
var localScript = strings.NewReplacer("{env.HOST}/in.csv?token={env.TOKEN}", "in.csv", "  HOST: {}\n", "",
	"  TOKEN: {secret: true}\n", "").Replace(oneScript)

// instanceOf opens an instance in a directory of its own, with variables of its own.
func instanceOf(t *testing.T, dir string, variables map[string]string) *app.App {
	t.Helper()
	a, err := app.Open(t.Context(), app.Place{Dir: filepath.Join(dir, ".thalweg"), Create: true}, app.Process{
		Dir: dir, Known: app.NewSecrets(), Remote: app.NewRemote(app.RemoteConfig{}), MemoryBytes: 1 << 30,
		Environment: func(name string) (string, bool) { v, ok := variables[name]; return v, ok }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// Two instances in one process, with variables and secrets of their own, run side by side, and see
// nothing of each other.
func TestInstancesSideBySide(t *testing.T) {
	t.Parallel()
	rows := map[string]string{"north-secret-1": "id\n1\n2\n", "south-secret-2": "id\n3\n"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := rows[r.URL.Query().Get("token")]
		if !ok {
			http.Error(w, "who are you", http.StatusForbidden)
			return
		}
		http.ServeContent(w, r, "in.csv", time.Unix(1, 0), strings.NewReader(text))
	}))
	t.Cleanup(server.Close)
	type one struct{ region, token, dir string }
	var group sync.WaitGroup
	all := []one{{"north", "north-secret-1", t.TempDir()}, {"south", "south-secret-2", t.TempDir()}}
	instances := make([]*app.App, len(all))
	for i, o := range all {
		require.NoError(t, os.WriteFile(filepath.Join(o.dir, "script.yaml"), []byte(oneScript), 0o600))
		instances[i] = instanceOf(t, o.dir, map[string]string{"REGION": o.region, "TOKEN": o.token, "HOST": server.URL})
	}
	by := app.Caller{Actor: "tester", Via: app.CLI}
	for i, o := range all {
		group.Go(func() {
			for range 3 {
				sum, err := instances[i].Run(t.Context(), by, app.RunOptions{Workspace: app.DefaultWorkspace,
					ScriptPath: filepath.Join(o.dir, "script.yaml")})
				if !assert.NoError(t, err) || !assert.Equal(t, view.Complete, sum.Status, sum.Failure) {
					return
				}
			}
		})
	}
	group.Wait()
	for i, o := range all {
		written, err := os.ReadFile(filepath.Join(o.dir, o.region+".csv"))
		require.NoError(t, err)
		require.Equal(t, rows[o.token], string(written))
		runs, err := instances[i].Runs.List(t.Context(), app.DefaultWorkspace, 0, true)
		require.NoError(t, err)
		require.Len(t, runs, 3)
		require.Equal(t, "tester", runs[0].Actor)
		require.NoError(t, filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, other := range all {
				require.NotContains(t, string(text), other.token, path)
			}
			if other := all[1-i]; other.region != o.region {
				require.NotContains(t, string(text), other.region+".csv", path)
			}
			return err
		}))
	}
}

// Questions about one instance are answered side by side, also large ones that need room on disk.
func TestQuestionsSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(localScript), 0o600))
	a, by := instanceOf(t, dir, map[string]string{"REGION": "all"}), app.Caller{Actor: "tester", Via: app.CLI}
	var keys [2]view.RunKey
	for i, text := range []string{"id\n1\n2\n", "id\n1\n3\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(text), 0o600))
		sum, err := a.Run(t.Context(), by, app.RunOptions{Workspace: app.DefaultWorkspace,
			ScriptPath: filepath.Join(dir, "script.yaml")})
		require.NoError(t, err)
		keys[i] = sum.Key
	}
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			if i%2 == 0 {
				found, err := a.Data.Diff(t.Context(), by, keys, app.DiffOptions{Table: "ids", RowsMax: 10,
					MemoryBytes: 1 << 29})
				assert.NoError(t, err)
				assert.Equal(t, [2]int64{1, 1}, [2]int64{found.Added, found.Removed})
				return
			}
			got, err := a.Data.Query(t.Context(), by, app.Query{Workspace: app.DefaultWorkspace,
				SQL:     fmt.Sprintf("SELECT sum(id) + %d FROM ids, range(100000)", i),
				Process: app.Process{MemoryBytes: 1 << 29}})
			assert.NoError(t, err)
			assert.Equal(t, [][]any{{int64(400000 + i)}}, got.Rows)
		})
	}
	group.Wait()
	left, err := filepath.Glob(filepath.Join(dir, ".thalweg", "tmp", "*", "s-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// What callers decide on has a code, and what is proposed is data.
func TestFailuresHaveCodesAndActions(t *testing.T) {
	t.Parallel()
	a := instanceOf(t, t.TempDir(), nil)
	_, err := a.Runs.Find(t.Context(), app.DefaultWorkspace, "7")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	require.Equal(t, []view.Action{{Verb: "runs"}}, fault.Of(err).Actions())
	_, err = a.Orders.Drop(t.Context(), app.Caller{Actor: "tester"}, nil, "", "")
	require.Contains(t, fault.Of(err).Message, "needs a reason")
}

// An order that carries the token of a preview does what was previewed, or nothing.
func TestOrdersDoWhatWasPreviewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(localScript), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("id\n1\n"), 0o600))
	a, by := instanceOf(t, dir, map[string]string{"REGION": "all"}), app.Caller{Actor: "tester", Via: app.CLI}
	sum, err := a.Run(t.Context(), by, app.RunOptions{Workspace: app.DefaultWorkspace,
		ScriptPath: filepath.Join(dir, "script.yaml")})
	require.NoError(t, err)
	would, err := a.Orders.PreviewInvalidation(t.Context(), sum.Key, []string{"load"})
	require.NoError(t, err)
	require.Equal(t, []string{"load", "write"}, would.Would.Nodes)
	_, err = a.Orders.Invalidate(t.Context(), by, sum.Key, []string{"write"}, "wrong", would.Token)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	done, err := a.Orders.Invalidate(t.Context(), by, sum.Key, []string{"load"}, "wrong", would.Token)
	require.NoError(t, err)
	require.Equal(t, would.Would.Nodes, done.Nodes)
	audit, err := a.Runs.Audit(t.Context(), sum.Key)
	require.NoError(t, err)
	require.Equal(t, "tester", audit[len(audit)-1].Actor)
}

// counted is a sink that keeps no row.
type counted struct {
	columns []string
	rows    int64
}

func (c *counted) Begin(head app.QueryResult) error { c.columns = head.Columns; return nil }

func (c *counted) Row([]any) error { c.rows++; return nil }

// Rows of a query are given one by one, up to the limit, and nothing keeps them.
func TestRowsAreGivenOneByOne(t *testing.T) {
	t.Parallel()
	a := instanceOf(t, t.TempDir(), nil)
	for limit, want := range map[int]int64{0: 300_000, 1000: 1000} {
		var got counted
		res, err := a.Data.Query(t.Context(), app.Caller{Actor: "tester"}, app.Query{Workspace: app.DefaultWorkspace,
			SQL: "SELECT range AS n FROM range(300000)", Sink: &got, RowsMax: limit,
			Process: app.Process{MemoryBytes: 1 << 29}})
		require.NoError(t, err)
		require.Equal(t, want, got.rows)
		require.Equal(t, []string{"n"}, got.columns)
		require.Empty(t, res.Rows)
		require.Equal(t, limit > 0, res.More)
	}
}
