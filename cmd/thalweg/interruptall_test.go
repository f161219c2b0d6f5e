package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// interruptible are command lines of every command, run one behind the other in
// one directory. HANG is an address that answers only by interrupting.
var interruptible = [][]string{
	{"run", "script.yaml"}, {"run", "script.yaml", "--json"}, {"run", "hangs.yaml"}, {"run", "hangs.yaml", "--json"},
	{"run", "HANG"},
	{"validate", "script.yaml"}, {"validate", "hangs.yaml"}, {"validate", "hangs.yaml", "--json"},
	{"validate", "script.yaml", "--params", "HANG"},
	{"check", "script.yaml"}, {"check", "script.yaml", "--json"}, {"check", "hangs.yaml"},
	{"test", "script.yaml"}, {"test", "script.yaml", "--json"}, {"test", "hangs.yaml", "--tests", "script.test.yaml"},
	{"infer", "in.csv"}, {"infer", "in.csv", "--json"}, {"infer", "HANG"}, {"init", "project"},
	{"explain", "script.yaml"}, {"explain", "hangs.yaml"}, {"explain", "hangs.yaml", "--json"},
	{"graph", "script.yaml"}, {"graph", "hangs.yaml", "-o", "a/b.svg"},
	{"simulate", "--workers", "2", "--batches", "60"}, {"simulate", "--print-costs"},
	{"bench", "pipeline", "--rows", "10", "--rounds", "1", "--settle", "0s"},
	{"capacity", "study", "2025"}, {"capacity", "study", "arm", "--json"}, {"capacity", "table", "runs.csv"},
	{"capacity", "compare", "1", "1"}, {"capacity", "compare", "runs.csv", "runs.csv"},
	{"capacity", "explain", "1"}, {"capacity", "plan", "--run", "1", "--deadline", "1h", "--machines", "c7g.large"},
	{"bench", "host", "--seconds", "0.1"}, {"bench", "compare", "host.json", "host.json"},
	{"bench", "store", "--target", "parts", "--value-bytes", "10", "--ops", "9", "--warm-up", "0s"},
	{"bench", "store", "--target", "state", "--ops", "9", "--warm-up", "0s", "--batches", "10"},
	{"runs"}, {"runs", "--json"}, {"nodes"}, {"batches", "read"}, {"checks"},
	{"sql", "SELECT count(*) FROM t"}, {"sql", "SELECT count(*) FROM t", "--format", "json"},
	{"fmt", "--check", "script.yaml"}, {"schema"}, {"version"}, {"completion", "bash"},
	{"__complete", "bash", "--", "show", ""},
	{"history"}, {"history", "--json"}, {"cost", "1"}, {"cost", "--by", "workspace", "--json"}, {"show", "1"},
	{"show", "1", "--svg"}, {"show", "1", "--workers"}, {"show", "1", "read"},
	{"show", "1", "read", "0"}, {"why", "1"},
	{"events", "1"}, {"audit"}, {"audit", "1"}, {"approvals"}, {"schedules"}, {"matrix"},
	{"table-index", "1.t", "--key", "a", "-o", "t.twx"},
	{"diff", "1", "1", "t"}, {"trace", "t", "--run", "1", "--where", "a = 2"},
	{"lineage", "t.a", "script.yaml"}, {"lineage", "t.a", "--run", "1", "--json"},
	{"run", "script.yaml", "--fresh"}, {"retry", "1", "--node", "read"}, {"retry", "1", "--node", "read", "--dry-run"},
	{"invalidate", "1", "--reason", "wrong", "--dry-run"}, {"drop", "1", "--reason", "old", "--dry-run"},
	{"resume", "1"}, {"stop", "1"}, {"pause", "1"}, {"take", "1", "--comment", "mine"}, {"approve", "1", "t"}, {"reject", "1", "t", "--comment", "no"},
	{"hooks", "test"}, {"gc", "--dry-run"}, {"gc"}, {"login"},
	{"attach", "1"}, {"cluster", "init", "--cluster", "cluster.yaml"}, {"cluster", "status", "--cluster",
		"cluster.yaml"},
	{"cluster", "status", "--cluster", "cluster.yaml", "--json"},
	{"run", "script.yaml", "--cluster", "cluster.yaml", "--detach"}, {"stop", "1", "--cluster", "cluster.yaml"},
	{"gc", "--cluster", "cluster.yaml"},
	{"doctor", "--state", ".thalweg", "--python", "nowhere"}, {"doctor", "--cluster", "cluster.yaml", "--python",
		"nowhere", "--json"},
}

// refused are those of them that have nothing to do here, or find something wrong, and say so.
var refused = []string{"resume", "stop", "pause", "take", "approve", "reject", "hooks", "drop", "doctor", "init", "login"}

// TestInterruptAnyCommand interrupts every command at the places where it looks
// for that: at the first, the third, the ninth, … It must end well or say that
// it was interrupted, and nothing else; see the exit codes in docs/commands.md.
func TestInterruptAnyCommand(t *testing.T) {
	requireEveryCommand(t)
	var interrupt atomic.Pointer[context.CancelFunc]
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if cancel := interrupt.Load(); cancel != nil {
			(*cancel)()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	t.Chdir(t.TempDir())
	hang := server.URL + "/x.csv"
	for name, text := range map[string]string{
		"script.yaml": "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {a: int, b: int}}, w: t, checks: " +
			"[{rows: {min: 1}}]}\n",
		"hangs.yaml":       "nodes:\n  read: {type: file_table, r: {urls: [" + hang + "], types: {}}, w: t}\n",
		"script.test.yaml": "tests:\n  - {name: one, node: read, given: {read: \"a,b\\n1,3\\n\"}, expect: [{a: 1, b: 3}]}\n",
		"in.csv":           "a,b\n1,3\n2,3\n",
		"host.json":        `{"figures": {"sort": {"value": 4, "unit": "s"}}}`,
		"runs.csv":         "nodes,cores,seconds\n1,2,60\n",
		"cluster.yaml":     "version: 1\nstate: {directory: fleet}\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	execute := func(args []string, looks int64) (code int, said string, interrupted bool) {
		parent, cancel := context.WithCancel(t.Context())
		defer cancel()
		interrupt.Store(&cancel)
		ctx := &countdown{Context: parent, cancel: cancel}
		ctx.left.Store(looks)
		var out, serr bytes.Buffer
		code = run(ctx, args, &console{stdout: &out, stderr: &serr})
		return code, serr.String(), parent.Err() != nil
	}
	code, said, _ := execute([]string{"run", "script.yaml"}, 0)
	require.Equal(t, exitOK, code, said)
	for _, args := range interruptible {
		args = slices.Clone(args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "HANG", hang)
		}
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			for looks := int64(1); ; looks *= 3 {
				code, said, interrupted := execute(args, looks)
				if ends := slices.Contains(refused, args[0]) && code == exitUsers; code != exitOK && !ends {
					require.Equal(t, exitInterrupted, code, "at look %d: %s", looks, said)
					require.Regexp(t, `(?m)^(thalweg: interrupted|run \d+ was stopped; continue with --resume, or `+
						`.thalweg resume \d+.|run \d+ is not followed any more, .*`+
						`|\{"error":\{"kind":"canceled",.*"message":"interrupted",.*\}\})$`, said, "at look %d", looks)
					said = strings.ReplaceAll(said, `{"error":{"kind":"canceled"`, "")
					require.NotRegexp(t, `(?i)error:|context|cancel|\d+ errors`, said, "at look %d", looks)
				}
				if !interrupted || looks > maxLooks {
					break
				}
			}
		})
	}
}

// maxLooks is more than any of these commands looks for an interruption.
const maxLooks = 1 << 14

// countdown is a context that is interrupted when it was looked at so many times; 0 is never.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func (c *countdown) look() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

func (c *countdown) Done() <-chan struct{} { c.look(); return c.Context.Done() }

func (c *countdown) Err() error { c.look(); return c.Context.Err() }

// requireEveryCommand fails when the command line has a command that is not tried.
func requireEveryCommand(t *testing.T) {
	t.Helper()
	parser, err := kong.New(&cli{}, kong.Vars{"state": "", "workspace": ""})
	require.NoError(t, err)
	for _, leaf := range parser.Model.Leaves(true) {
		path := strings.Fields(leaf.Path())
		if slices.Contains([]string{"worker", "scheduler", "serve", "dev", "serve-table"}, path[0]) {
			// They end only when they are told to: testdata/script/worker.txtar, scheduler.txtar, TestServeTableEnds,
			// TestThroughAServer, TestDev.
			continue
		}
		require.True(t, slices.ContainsFunc(interruptible, func(args []string) bool {
			return args[0] == path[0]
		}), fmt.Sprintf("%q is not interrupted by any test", path))
	}
}
