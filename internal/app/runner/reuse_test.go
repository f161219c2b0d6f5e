package runner_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/inspect"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// reuser runs crashScript in a directory, over and over in one state directory.
type reuser struct {
	dir  string
	home *instance.Instance
}

func newReuser(t *testing.T) *reuser {
	t.Helper()
	dir := crashInputs(t)
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	r := &reuser{dir: dir, home: home}
	text := strings.NewReplacer("[orders.csv]", "["+dir+"/orders.csv]", "items_1.csv, items_2.csv", dir+"/items_*.csv",
		"[score.py]", "["+dir+"/score.py]",
		"out/all.csv", dir+"/out/all.csv", `"out/part_`, `"`+dir+`/out/part_`).Replace(crashScript)
	r.write(t, "script.yaml", text)
	return r
}

func (r *reuser) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(t, err)
	return string(text)
}

func (r *reuser) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
}

func (r *reuser) edit(t *testing.T, name, old, now string) {
	t.Helper()
	text := r.read(t, name)
	require.Contains(t, text, old)
	r.write(t, name, strings.Replace(text, old, now, 1))
}

// run runs the script; change may change how.
func (r *reuser) run(t *testing.T, change func(*runner.Options)) (runner.Summary, error) {
	t.Helper()
	opts := runner.Options{ScriptPath: filepath.Join(r.dir, "script.yaml"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: 512 << 20, Interpreter: "python3"}, Reuse: true}
	if change != nil {
		change(&opts)
	}
	return runner.Run(t.Context(), r.home, opts)
}

// computed runs the script, and lists the nodes that were computed.
func (r *reuser) computed(t *testing.T, change func(*runner.Options)) []string {
	t.Helper()
	sum, err := r.run(t, change)
	require.NoError(t, err)
	require.Equal(t, state.Complete, sum.Status, "%+v", sum.Failure)
	return computedOf(sum)
}

func computedOf(sum runner.Summary) []string {
	names := []string{}
	for _, n := range sum.Nodes {
		if n.ReusedFrom == nil {
			names = append(names, n.Name)
		}
	}
	return names
}

func allNodes() []string {
	return []string{"orders", "items", "totals", "scored", "one_file", "many_files"}
}

// A run takes over what an earlier one has computed of the same inputs, code
// and parameters, and computes the rest: the files are those of a run that
// takes over nothing.
func TestOnlyWhatHasChangedIsComputed(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	out := func(r *reuser) string { return filepath.Join(r.dir, "out", "all.csv") }
	for name, tc := range map[string]struct {
		change func(t *testing.T, r *reuser)
		opts   func(*runner.Options)
		want   []string
	}{
		"nothing": {want: []string{}},
		"comments and layout": {
			change: func(t *testing.T, r *reuser) { r.edit(t, "script.yaml", "nodes:", "# said\nnodes:\n\n") },
			want:   []string{}},
		"a formula's file": {
			change: func(t *testing.T, r *reuser) { r.edit(t, "score.py", "* 7", "* 8") },
			want:   []string{"scored", "one_file", "many_files"}},
		"a formula's expression": {
			change: func(t *testing.T, r *reuser) {
				r.edit(t, "script.yaml", "score(r.name, r.list)", "score(r.list, r.name)")
			}, want: []string{"scored", "one_file", "many_files"}},
		"a file's order": {
			change: func(t *testing.T, r *reuser) { r.edit(t, "script.yaml", "score(desc)", "score(asc)") },
			want:   []string{"one_file"}},
		"a check": {
			change: func(t *testing.T, r *reuser) { r.edit(t, "script.yaml", "min: 0", "min: -1") },
			want:   []string{"totals", "scored", "one_file", "many_files"}},
		"an input's content": {
			change: func(t *testing.T, r *reuser) {
				r.edit(t, "items_2.csv", "order_id,value\n", "order_id,value\n17,3.50\n")
			},
			want: []string{"items", "totals", "scored", "one_file", "many_files"}},
		"an input more": {
			change: func(t *testing.T, r *reuser) { r.write(t, "items_3.csv", "order_id,value\n17,3.50\n") },
			want:   []string{"items", "totals", "scored", "one_file", "many_files"}},
		"a content of the same size and time": {
			change: func(t *testing.T, r *reuser) {
				path := filepath.Join(r.dir, "orders.csv")
				before, err := os.Stat(path)
				require.NoError(t, err)
				text := r.read(t, "orders.csv")
				r.write(t, "orders.csv", strings.Replace(text, "\n7,name", "\n7,nome", 1))
				require.NoError(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
			},
			want: []string{"orders", "totals", "scored", "one_file", "many_files"}},
		"an output that is gone": {
			change: func(t *testing.T, r *reuser) { require.NoError(t, os.Remove(out(r))) },
			want:   []string{"one_file"}},
		"an output of the same size": {
			change: func(t *testing.T, r *reuser) { r.edit(t, "out/all.csv", "0", "1") }, want: []string{"one_file"}},
		"a node that is named": {
			opts: func(o *runner.Options) { o.Start = []string{"orders", "totals"} },
			want: []string{"orders", "totals", "scored",
				"one_file", "many_files"}},
		"no reuse wanted": {
			opts: func(o *runner.Options) { o.Reuse = false }, want: allNodes()},
		"reuse false": {
			change: func(t *testing.T, r *reuser) {
				r.edit(t, "script.yaml", "  totals:\n", "  totals:\n    reuse: false\n")
				require.Equal(t, []string{"totals", "scored", "one_file", "many_files"}, r.computed(t, nil))
			},
			want: []string{"totals", "scored", "one_file", "many_files"}},
		"a check of the run's time": {
			change: func(t *testing.T, r *reuser) {
				r.edit(t, "script.yaml", "      - range: {field: total, min: 0}\n",
					"      - rows: {min: 1, change_percent: 50}\n")
				require.Equal(t, []string{"totals", "scored", "one_file", "many_files"}, r.computed(t, nil))
			},
			want: []string{"totals", "scored", "one_file", "many_files"}},
		"back to what an earlier run had": {
			change: func(t *testing.T, r *reuser) {
				r.edit(t, "script.yaml", "score(desc)", "score(asc)")
				require.Equal(t, []string{"one_file"}, r.computed(t, nil))
				r.edit(t, "script.yaml", "score(asc)", "score(desc)")
			},
			want: []string{"one_file"}}, // its file was replaced
		"a part that is gone": {
			change: func(t *testing.T, r *reuser) {
				found, err := filepath.Glob(filepath.Join(r.home.Dir, "parts", "data", "main", "00001",
					"*-scored", "*.parquet"))
				require.NoError(t, err)
				require.NotEmpty(t, found)
				require.NoError(t, os.Remove(found[0]))
			},
			want: []string{"scored", "one_file", "many_files"}},
		"an invalidated run": {
			change: func(t *testing.T, r *reuser) {
				order := state.Command{Kind: state.CommandInvalidate, Token: "t", Nodes: []state.CommandNode{{Node: "items"}}}
				require.NoError(t, state.Direct(t.Context(), r.home.State, state.RunKey{Workspace: "main",
					Run: 1}, order))
			},
			want: []string{"items", "totals", "scored", "one_file", "many_files"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReuser(t)
			require.Equal(t, allNodes(), r.computed(t, nil))
			written, err := os.Stat(out(r))
			require.NoError(t, err)
			if tc.change != nil {
				tc.change(t, r)
			}
			require.Equal(t, tc.want, r.computed(t, tc.opts))
			if !slices.Contains(tc.want, "one_file") {
				now, err := os.Stat(out(r))
				require.NoError(t, err)
				require.True(t, os.SameFile(written, now), "a file that is right is not touched")
				require.Equal(t, written.ModTime(), now.ModTime())
			}
			got := outputs(t, r.dir)
			require.NoError(t, os.RemoveAll(filepath.Join(r.dir, "out")))
			require.Equal(t, allNodes(), r.computed(t, func(o *runner.Options) { o.Reuse = false }))
			want := outputs(t, r.dir)
			require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
			require.Equal(t, want, got)
		})
	}
}

// A part of a table that was taken over is compared with its checksum when it is
// read: the failure names the run that wrote it, and the way out that it gives
// leads out.
func TestDamageInWhatWasTakenOver(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	for _, way := range []string{"again", "fresh", "start"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := newReuser(t)
			require.Equal(t, allNodes(), r.computed(t, nil))
			want := outputs(t, r.dir)
			found, err := filepath.Glob(filepath.Join(r.home.Dir, "parts", "data", "main", "00001", "*-totals",
				"*-0000.parquet"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			data, err := os.ReadFile(found[0])
			require.NoError(t, err)
			data[len(data)/2] ^= 1
			require.NoError(t, os.Chmod(found[0], 0o644))
			require.NoError(t, os.WriteFile(found[0], data, 0o644))

			r.edit(t, "score.py", "* 7", "* 7 ")
			sum, err := r.run(t, nil)
			require.NoError(t, err)
			require.Equal(t, state.Failed, sum.Status)
			require.Contains(t, sum.Failure.Message, "of the table of node totals in run 1 is damaged")
			require.Contains(t, sum.Failure.Hint, "{{set fresh}}, or with {{set start=totals}} from there on")
			require.Equal(t, want, outputs(t, r.dir))

			computed := r.computed(t, func(o *runner.Options) {
				switch way {
				case "fresh":
					o.Reuse = false
				case "start":
					o.Start = []string{"totals"}
				}
			})
			require.Contains(t, computed, "totals")
			require.Equal(t, want, outputs(t, r.dir))
			require.Empty(t, r.computed(t, nil), "what was made again is found first")
		})
	}
}

// What a node has taken over may be declared invalid before it counts as done:
// it is planned again, and computed.
func TestTakenOverWhileItIsInvalidated(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	require.Equal(t, allNodes(), r.computed(t, nil))
	want := outputs(t, r.dir)
	var once sync.Once
	computed := r.computed(t, func(o *runner.Options) {
		o.Checkpoint = func(p job.CrashPoint) {
			if p == job.Planned { // orders or items has just been taken over
				once.Do(func() {
					order := state.Command{Kind: state.CommandInvalidate, Token: "t",
						Mark: state.Mark{Actor: "ann", Reason: "wrong prices"}}
					require.NoError(t, state.Direct(t.Context(), r.home.State, state.RunKey{Workspace: "main",
						Run: 1}, order))
				})
			}
		}
	})
	require.Equal(t, allNodes(), computed)
	require.Equal(t, want, outputs(t, r.dir))
	nodes, err := r.home.State.Nodes(t.Context(), state.RunKey{Workspace: "main", Run: 2})
	require.NoError(t, err)
	again := 0
	for _, n := range nodes {
		again += n.Generation
	}
	require.Positive(t, again, "the node that had been taken over was planned again")
}

// Whose rows were taken over keeps them for all, or says that they are gone.
func TestReadingWhatWasTakenOver(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	r := newReuser(t)
	require.Equal(t, allNodes(), r.computed(t, nil))
	require.Empty(t, r.computed(t, nil))
	require.Empty(t, r.computed(t, nil))
	for i, name := range allNodes() {
		n, err := r.home.State.Node(t.Context(), state.NodeKey{RunKey: state.RunKey{Workspace: "main",
			Run: 3}, Node: name})
		require.NoError(t, err)
		require.Equal(t, &state.NodeKey{RunKey: state.RunKey{Workspace: "main", Run: 1},
			Node: allNodes()[i]}, n.ReusedFrom,
			"the node that computed the rows, not one that took them over")
	}
	query := func(text string) (inspect.QueryResult, error) {
		return inspect.Query(t.Context(), r.home, inspect.QueryOptions{Workspace: "main", SQL: text,
			Process: runtime.Process{MemoryBytes: 256 << 20}})
	}
	first, err := query("FROM run1.totals ORDER BY id")
	require.NoError(t, err)
	for _, from := range []string{"run3.totals", "totals"} {
		got, err := query("FROM " + from + " ORDER BY id")
		require.NoError(t, err)
		require.Equal(t, first.Rows, got.Rows)
	}
	warned, err := query("SELECT count(*) FROM run3.totals__failed")
	require.NoError(t, err)
	require.NotEqual(t, [][]any{{int64(0)}}, warned.Rows, "what a check kept is seen, too")

	order := state.Command{Kind: state.CommandInvalidate, Token: "t", Nodes: []state.CommandNode{{Node: "totals"}}}
	require.NoError(t, state.Direct(t.Context(), r.home.State, state.RunKey{Workspace: "main", Run: 1}, order))
	_, err = query("FROM run3.totals")
	require.ErrorIs(t, err, pipeline.ErrTableGone)
	require.ErrorContains(t, err,
		"what node totals of run 3 wrote was taken over from node totals of run 1: table totals of run 1 was "+
			"invalidated by somebody")
	require.Equal(t, []string{"totals", "scored", "one_file", "many_files"}, r.computed(t, nil))
	got, err := query("FROM totals ORDER BY id")
	require.NoError(t, err, "the latest that is there")
	require.Equal(t, first.Rows, got.Rows)
}

// A process that is killed while nodes are taken over leaves a run that can be
// resumed, and ends as if nothing had happened.
func TestKilledWhileTakingOver(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	command := func(dir, at string, resume bool) ([]byte, error) {
		cmd := victimCmd(t, dir, at, resume)
		cmd.Env = append(cmd.Env, "THALWEG_TEST_REUSE=1")
		return cmd.CombinedOutput()
	}
	prepare := func() string {
		dir := crashInputs(t)
		text, err := command(dir, "run", false)
		require.NoError(t, err, string(text))
		formula := strings.Replace(scoreFormula, "* 7", "* 9", 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "score.py"), []byte(formula), 0o644))
		require.NoError(t, os.Remove(filepath.Join(dir, "out", "part_00001.csv")))
		return dir
	}
	dir := prepare()
	text, err := command(dir, "run", false)
	require.NoError(t, err, string(text))
	want := outputs(t, dir)
	require.Len(t, want, 4)
	step := effort.Of(3, 2, 1)
	for _, point := range effort.Of([]job.CrashPoint{job.Settling},
		[]job.CrashPoint{job.Planned, job.Settling}, job.CrashPoints()) {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n += step {
				dir := prepare()
				text, err := command(dir, fmt.Sprintf("%s:%d", point, n), false)
				if err == nil { // passed fewer than n times
					require.Equal(t, "complete\n", string(text))
					require.Greater(t, n, 1, "the crash point is never passed")
					return
				}
				requireKilled(t, err, text)
				text, err = command(dir, "run", true)
				require.NoError(t, err, string(text))
				require.Equal(t, "complete\n", string(text))
				require.Equal(t, want, outputs(t, dir))
				home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), false)
				require.NoError(t, err)
				nodes, err := home.State.Nodes(t.Context(), state.RunKey{Workspace: "main", Run: 2})
				require.NoError(t, errors.Join(err, home.Close()))
				for _, node := range nodes[:3] {
					require.NotNil(t, node.ReusedFrom, node.Name)
				}
			}
		})
	}
}
