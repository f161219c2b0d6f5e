package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/benches/pipeline"
	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/sweep"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

const memory = 1 << 30

func options(t *testing.T) pipeline.Options {
	t.Helper()
	return pipeline.Options{Process: runtime.Process{MemoryBytes: memory, Cores: 2, Interpreter: "python3"}, Dir: t.TempDir(),
		Rows: 2000, Seed: 1, Rounds: 2, Numbers: map[string][]int{concurrency.Batches: {1, 2}}}
}

func class(t *testing.T, r sweep.Report, name string) sweep.Class {
	t.Helper()
	i := slices.IndexFunc(r.Classes, func(c sweep.Class) bool { return c.Class == name })
	require.GreaterOrEqual(t, i, 0, name)
	return r.Classes[i]
}

func TestSweepOfGeneratedPipeline(t *testing.T) {
	t.Parallel()
	o := options(t)
	var told []string
	o.Progress = func(text string) { told = append(told, text) }
	r, err := pipeline.Run(t.Context(), o)
	require.NoError(t, err)
	require.Equal(t, sweep.Version, r.Version)
	rows := map[string]int64{concurrency.Load: o.Rows, concurrency.Join: o.Rows, concurrency.Python: o.Rows,
		concurrency.Write: o.Rows}
	require.Len(t, r.Classes, len(rows))
	for name, want := range rows {
		c := class(t, r, name)
		require.GreaterOrEqual(t, c.Rows, want, name)
		require.Equal(t, 2, c.Chosen.Rows.N)
		require.Positive(t, c.Chosen.Bytes.Mean)
		require.NotNil(t, c.Share)
		require.Equal(t, concurrency.Batches, c.Knobs[0].Knob)
		require.Len(t, c.Knobs[0].Fixed, 2)
		require.NotNil(t, c.Knobs[0].Fixed[1].Gain)
		require.Equal(t, name != concurrency.Python, len(c.Knobs) == 2, "interpreters have no threads of the engine")
	}
	require.Equal(t, []string{"run 1 in which the worker chooses by itself",
		"round 1 of 2: as the worker chose", "round 1 of 2: batches 1", "round 1 of 2: batches 2",
		"round 2 of 2: batches 2", "round 2 of 2: batches 1", "round 2 of 2: as the worker chose"},
		told)
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Files of the user's are written when that is asked for, and not before; nobody is told of a run that is measured.
func TestSweepOfOwnScript(t *testing.T) {
	t.Parallel()
	o := options(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"in.csv": "a\n" + strings.Repeat("1\n", 100),
		"script.yaml": `notify: [{command: [touch, ` + dir + `/told], on: [done, failed]}]
nodes:
  read: {type: file_table, r: {urls: [` + dir + `/in.csv], types: {a: int}}, w: t}
  write: {type: table_file, r: t, w: ` + dir + `/out.csv}
`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	o.Script, o.Numbers, o.Rounds = filepath.Join(dir, "script.yaml"), nil, 1
	r, err := pipeline.Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, r.Classes, 1)
	require.Nil(t, class(t, r, concurrency.Load).Share)
	require.Contains(t, strings.Join(r.Notes, "\n"), "[write]")
	require.NoFileExists(t, filepath.Join(dir, "out.csv"))
	o.Writes = true
	r, err = pipeline.Run(t.Context(), o)
	require.NoError(t, err)
	require.EqualValues(t, 100, class(t, r, concurrency.Write).Rows)
	require.Contains(t, strings.Join(r.Notes, "\n"), "so short a time says little")
	require.FileExists(t, filepath.Join(dir, "out.csv"))
	require.NoFileExists(t, filepath.Join(dir, "told"))
}

func TestFailedRunEndsTheBench(t *testing.T) {
	t.Parallel()
	o := options(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte("a\nx\n"), 0o600))
	o.Script = filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(o.Script, []byte("nodes:\n  read: {type: file_table, r: {urls: ["+dir+
		"/in.csv], columns: {a: {csv: {col_hdr: a}, col_type: int}}, csv: {hdr_line_idx: 0, first_data_line_idx: 1}}, w: t}\n"), 0o600))
	_, err := pipeline.Run(t.Context(), o)
	require.ErrorContains(t, err, "a run of the bench failed in node read")
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A cluster is left as it was found, whether the bench ends by itself or not.
func TestClusterIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		o, fleet := options(t), t.TempDir()
		path := filepath.Join(fleet, "cluster.yaml")
		require.NoError(t, os.WriteFile(path, []byte("version: 1\nstate: {directory: state}\n"), 0o600))
		cfg, diags, err := clusterconfig.Load(path, o.Settings())
		require.NoError(t, err)
		require.False(t, diags.HasErrors())
		require.NoError(t, cluster.Init(t.Context(), cfg))
		o.Cluster, o.Numbers, o.Rounds = cfg, nil, 1
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		var some atomic.Bool
		o.Observe = func(e job.Event) {
			if e.Kind == job.NodeFinished && e.Node == "join_totals" && len(stored(t, fleet)) > 0 {
				some.Store(true)
				if interrupted {
					cancel(enough)
				}
			}
		}
		r, err := pipeline.Run(ctx, o)
		if interrupted {
			require.ErrorIs(t, err, enough)
		} else {
			require.NoError(t, err)
			require.Equal(t, "a cluster", r.State)
		}
		cancel(nil)
		require.True(t, some.Load(), "there was something to remove")
		require.Empty(t, stored(t, fleet))
	}
}

// stored lists the parts below a directory.
func stored(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".parquet") {
			out = append(out, path)
		}
		if errors.Is(err, fs.ErrNotExist) { // it was just removed
			return nil
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// Workers of a cluster would take batches of the bench: it does not begin beside them.
func TestClusterWithWorkersIsRefused(t *testing.T) {
	t.Parallel()
	o, fleet := options(t), t.TempDir()
	path := filepath.Join(fleet, "cluster.yaml")
	require.NoError(t, os.WriteFile(path, []byte("version: 1\nstate: {directory: state}\n"), 0o600))
	cfg, _, err := clusterconfig.Load(path, o.Settings())
	require.NoError(t, err)
	require.NoError(t, cluster.Init(t.Context(), cfg))
	home, err := instance.OpenCluster(t.Context(), cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	data, err := json.Marshal(registry.WorkerEntry{Owner: "elsewhere/1", Host: "elsewhere"})
	require.NoError(t, err)
	require.NoError(t, home.State.PutNote(t.Context(), registry.FleetWorkspace, state.Note{Topic: registry.TopicWorkers,
		Name: "elsewhere/1", Data: data, Time: time.Now()}))
	require.NoError(t, home.Close())
	o.Cluster = cfg
	_, err = pipeline.Run(t.Context(), o)
	require.ErrorContains(t, err, "workers of the cluster are there")
}

func TestNothingToMeasure(t *testing.T) {
	t.Parallel()
	o := options(t)
	o.Script = filepath.Join(t.TempDir(), "missing.yaml")
	_, err := pipeline.Run(t.Context(), o)
	require.Equal(t, fault.Script, fault.Of(err).Kind)
}
