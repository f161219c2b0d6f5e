package runner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/address"
	"thalweg/internal/io/database"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/redistest"
)

const tablesScript = `
nodes:
  read:
    type: file_table
    r: {urls: [in.csv], types: {id: int, n: decimal2}}
    w: rows
  added: {type: table_file, r: rows, w: {url_template: "URL", table: added_X, mode: append}}
  merged: {type: table_file, r: rows, w: {url_template: "URL", table: merged_X, mode: merge, key: id}}
  replaced: {type: table_file, r: rows, w: {url_template: "URL", table: replaced_X, mode: replace}}
`

// publishedScript is tablesScript for Redis, which has whole tables only.
const publishedScript = `
nodes:
  read:
    type: file_table
    r: {urls: [in.csv], types: {id: int, n: decimal2}}
    w: rows
  replaced: {type: table_file, r: rows, w: {url_template: "URL", table: replaced_X, mode: replace, key: id}}
  second: {type: table_file, r: rows, w: {url_template: "URL", table: second_X, mode: replace, key: [id]}}
`

// databases are the addresses of those that are here; SQLite's is of a new file, Redis' of a new server.
func databases(t *testing.T) map[string]string {
	out := map[string]string{"SQLite": "sqlite://" + filepath.Join(t.TempDir(), "x.db")}
	for kind, variable := range map[string]string{"PostgreSQL": "THALWEG_TEST_POSTGRES",
		"MariaDB": "THALWEG_TEST_MYSQL"} {
		if at := os.Getenv(variable); at != "" {
			out[kind] = at
		}
	}
	if redistest.Here() {
		out["Redis"] = redistest.Start(t).URL
	}
	return out
}

// tablesTrial is a run that writes tables of a database.
type tablesTrial struct {
	dir, url, id string
	want         string
	script       string
	tables       []string
}

func newTablesTrial(t *testing.T, url string, n int) *tablesTrial {
	t.Helper()
	s := &tablesTrial{dir: t.TempDir(), url: url, id: fmt.Sprintf("%d_%d", os.Getpid(), n),
		script: tablesScript, tables: []string{"added", "merged", "replaced"}}
	if address.Redis(url) {
		s.script, s.tables = publishedScript, []string{"replaced", "second"}
	}
	var in, want strings.Builder
	in.WriteString("id,name,n\n")
	for i := range 2000 {
		fmt.Fprintf(&in, "%d,\"a \"\"%d\"\"\n\",%d.25\n", i, i, i)
		fmt.Fprintf(&want, "%d,\"a \"\"%d\"\"\n\",%d.25\n", i, i, i)
	}
	s.want = want.String()
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "in.csv"), []byte(in.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "script.yaml"),
		[]byte(replaceAll(s.script, "URL", url, "_X", "_"+s.id)), 0o600))
	return s
}

// rows are those of a table.
func (s *tablesTrial) rows(t *testing.T, table string) string {
	t.Helper()
	if address.Redis(s.url) {
		return s.published(t, table)
	}
	snapshot, err := database.Client{}.Snapshot(t.Context(), s.url)
	require.NoError(t, err)
	defer snapshot.Close()
	var out bytes.Buffer
	_, err = snapshot.Copy(t.Context(), database.Source{URL: s.url, Query: "SELECT id, name, n FROM " + table + "_" +
		s.id + " ORDER BY id"}, &out)
	require.NoError(t, err)
	_, rows, _ := strings.Cut(out.String(), "\n")
	return rows
}

// published are the rows of a table in Redis.
func (s *tablesTrial) published(t *testing.T, table string) string {
	t.Helper()
	var rows map[string][]string
	require.NoError(t, json.Unmarshal([]byte(redistest.Table(t, s.url, table+"_"+s.id)), &rows))
	var out strings.Builder
	for id := range 2000 {
		row := rows[strconv.Itoa(id)]
		require.Equal(t, []string{"id", strconv.Itoa(id)}, row[:2])
		fmt.Fprintf(&out, "%d,\"%s\",%s\n", id, strings.ReplaceAll(row[3], `"`, `""`), row[5])
	}
	require.Len(t, rows, 2000)
	return out.String()
}

// ends brings the run to its end, as often as it takes, and looks at the tables.
func (s *tablesTrial) ends(t *testing.T) {
	t.Helper()
	run, begun := lastRun(t, s.dir)
	if !begun || run.Status != state.Complete {
		text, err := victimCmd(t, s.dir, "run", begun).CombinedOutput()
		require.NoError(t, err, string(text))
	}
	for _, table := range s.tables {
		require.Equal(t, s.want, s.rows(t, table), "%s: each row is there once", table)
	}
}

// TestTablesAreWrittenOnce kills the process at the crash points of a batch, and goes on.
func TestTablesAreWrittenOnce(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := 0
			for _, point := range []string{"executed", "published", "committed"} {
				for at := effort.Of(2, 2, 1); at <= 2 || effort.All(); at++ {
					n++
					s := newTablesTrial(t, url, n)
					text, err := victimCmd(t, s.dir, fmt.Sprintf("%s:%d", point, at), false).CombinedOutput()
					if err == nil && at > 2 { // passed fewer times
						break
					}
					requireKilled(t, err, text)
					s.ends(t)
				}
			}
		})
	}
}

// TestTablesAtEachMessage kills the process before each message to the server, and behind it:
// then nobody knows what became of it. Or it loses the connection there, and goes on.
func TestTablesAtEachMessage(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for kind, url := range databases(t) {
		if kind == "SQLite" {
			continue // there is no server
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			trials := map[string]int{}
			for _, when := range []string{beforeMessage, behindMessage} {
				for _, kill := range []bool{true, false} {
					for n := effort.Of(7, 7, 1); ; n += effort.Of(40, 20, 1) {
						if !passesMessage(t, url, n, when, kill) {
							break
						}
						trials[fmt.Sprintf("%s, killed %v", when, kill)]++
					}
				}
			}
			t.Logf("%s: %v", kind, trials)
			require.Len(t, trials, 4)
		})
	}
}

// passesMessage makes a trial, if a run sends so many messages.
func passesMessage(t *testing.T, url string, n int, when string, kill bool) bool {
	t.Helper()
	gate := newTollGate(t, url)
	s := newTablesTrial(t, gate.at, firstOfMessages+int(trialNumber.Add(1)))
	cmd := victimCmd(t, s.dir, "run", false)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	started := make(chan struct{})
	gate.arm(n, when, func() {
		if <-started; kill {
			_ = cmd.Process.Kill()
		}
	})
	require.NoError(t, cmd.Start())
	close(started)
	err := cmd.Wait()
	if !gate.passed() {
		require.NoError(t, err, text.String())
		gate.arm(0, "", nil)
		s.ends(t)
		return false
	}
	if kill && err != nil { // the last message says goodbye
		requireSignal(t, err)
	}
	if !kill {
		require.NoError(t, err, "message %d, %s: %s", n, when, text.String())
	}
	s.ends(t)
	return true
}

// trialNumber tells trials' tables apart, from firstOfMessages on.
var trialNumber atomic.Int64

const firstOfMessages = 10_000

// TestChaosTables kills the process at any moment, and again.
func TestChaosTables(t *testing.T) {
	effort.Unraced(t)
	if !effort.All() {
		t.Skip("part of make chaos")
	}
	const trials = 100
	for kind, url := range databases(t) {
		t.Run(kind, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			whole := newTablesTrial(t, url, 999)
			began := time.Now()
			whole.ends(t)
			took := time.Since(began)
			killed := 0
			for n := range trials {
				s := newTablesTrial(t, url, 1000+n)
				for try := 0; try < 1+n%3; try++ {
					run, begun := lastRun(t, s.dir)
					if begun && run.Status == state.Complete {
						break
					}
					cmd := victimCmd(t, s.dir, "run", begun)
					began := time.Now()
					require.NoError(t, cmd.Start())
					// any moment
					kill := time.AfterFunc(time.Duration(rng.Int64N(int64(took))), func() { _ = cmd.Process.Kill() })
					err := cmd.Wait()
					kill.Stop()
					if err == nil {
						took = min(took, time.Since(began)) // the first one may have been slow
						continue
					}
					requireSignal(t, err)
					killed++
				}
				s.ends(t)
			}
			t.Logf("%s: %d trials, killed %d times", kind, trials, killed)
			require.Greater(t, killed, trials/2)
		})
	}
}

func requireSignal(t *testing.T, err error) {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, -1, exit.ExitCode(), "it was killed")
}

// Times of a database are read as the types that scripts give them, in the form in which it
// writes them; what a type does not keep is refused, or cut where the script says so.
func TestTimesOfTables(t *testing.T) {
	t.Parallel()
	for kind, url := range databases(t) {
		columns := map[string]string{"PostgreSQL": "timestamp '2024-01-01 00:00:00.123456' AS a, timestamptz " +
			"'2024-01-01 01:00:00.123456+01' AS b",
			"MariaDB": "cast('2024-01-01 00:00:00.123456' AS datetime(6)) AS a, cast('2024-01-01 00:00:00.123456' AS " +
				"datetime(6)) AS b"}[kind]
		if columns == "" {
			continue // SQLite has texts
		}
		for _, c := range []struct{ types, want, refused string }{
			{"a: timestamptz, b: timestamptz", "a,b\n2024-01-01T00:00:00.123456Z,2024-01-01T00:00:00.123456Z\n", ""},
			{"a: {type: datetime, round: true}, b: {type: datetime, round: true}",
				"a,b\n2024-01-01 00:00:00.123,2024-01-01 00:00:00.123\n", ""},
			{"b: timestamptz", "", "column a: \"2024-01-01 00:00:00.123456\" has digits below the millisecond"},
		} {
			t.Run(kind+" "+c.types, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				script := fmt.Sprintf("nodes:\n  read: {type: file_table, r: {urls: [%q], query: %q, types: {%s}}, "+
					"w: rows}\n  write: {type: table_file, r: rows, w: out.csv}\n",
					url, "SELECT "+columns, c.types)
				require.NoError(t, os.WriteFile(filepath.Join(dir, "script.yaml"), []byte(script), 0o600))
				text, err := victimCmd(t, dir, "run", false).CombinedOutput()
				if c.refused != "" {
					require.Contains(t, string(text), c.refused)
					return
				}
				require.NoError(t, err, string(text))
				got, err := os.ReadFile(filepath.Join(dir, "out.csv"))
				require.NoError(t, err)
				require.Equal(t, c.want, string(got))
			})
		}
	}
}
