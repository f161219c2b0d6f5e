package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/job"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/parts/cache"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/partstest"
)

// travelScript has tables that are read by row ranges, by buckets and whole.
const travelScript = `
nodes:
  lefts:
    type: file_table
    r:
      urls: [DIR/l0.csv, DIR/l1.csv, DIR/l2.csv, DIR/l3.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}, k: {col_type: int, csv: {col_hdr: k}}, ` +
	`t: {col_type: string, csv: {col_hdr: t}}}
    w: {name: lefts, fields: {id: {expression: r.id, type: int}, k: {expression: r.k, type: int}, ` +
	`t: {expression: r.t, type: string}}}
  rights:
    type: file_table
    r:
      urls: [DIR/r0.csv, DIR/r1.csv, DIR/r2.csv, DIR/r3.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}, k: {col_type: int, csv: {col_hdr: k}}, ` +
	`t: {col_type: string, csv: {col_hdr: t}}}
    w:
      name: rights
      fields: {k: {expression: r.k, type: int}, t: {expression: r.t, type: string}}
      indexes: {idx_rights: non_unique(k)}
  smalls:
    type: file_table
    r:
      urls: [DIR/s.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {k: {col_type: int, csv: {col_hdr: k}}, t: {col_type: string, csv: {col_hdr: t}}}
    w:
      name: smalls
      fields: {k: {expression: r.k, type: int}, t: {expression: r.t, type: string}}
      indexes: {idx_smalls: non_unique(k)}
  counted:
    type: table_lookup_table
    r: {table: lefts}
    l: {index_name: idx_rights, join_on: r.k, group: true, join_type: left}
    w:
      name: counted
      fields:
        id: {expression: r.id, type: int}
        k: {expression: r.k, type: int}
        t: {expression: r.t, type: string}
        n: {expression: count(), type: int}
    checks:
      - unique: id
      - range: {field: k, min: 0}
  named:
    type: table_lookup_table
    r: {table: counted}
    l: {index_name: idx_smalls, join_on: r.n, group: false, join_type: left}
    w:
      name: named
      fields:
        id: {expression: r.id, type: int}
        k: {expression: r.k, type: int}
        t: {expression: r.t + l.t, type: string}
  once:
    type: distinct_table
    rerun_policy: fail
    r: {table: named}
    w:
      name: once
      fields: {k: {expression: r.k, type: int}, t: {expression: r.t, type: string}}
      indexes: {idx_once: unique(k)}
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: once}
    p:
      python_code_urls: [DIR/score.py]
      calculated_fields: {score: {expression: "score(r.k)", type: int}}
    w:
      name: scored
      fields: {k: {expression: r.k, type: int}, t: {expression: r.t, type: string}, ` +
	`score: {expression: p.score, type: int}}
  out:
    type: table_file
    r: {table: scored}
    w:
      url_template: OUT/out.csv
      columns:
        - {name: k, expression: r.k, type: int, csv: {header: k, format: "%d"}}
        - {name: score, expression: r.score, type: int, csv: {header: score, format: "%d"}}
        - {name: t, expression: r.t, type: string, csv: {header: t, format: "%s"}}
`

const travelRows = 160_000 // on each side, of half as many keys

// travelInputs writes what travelScript reads.
func travelInputs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, side := range []string{"l", "r"} {
		var files [4]bytes.Buffer
		for i := range files {
			files[i].WriteString("id,k,t\n")
		}
		for i := range travelRows {
			k := (i * 7919) % (travelRows / 2)
			fmt.Fprintf(&files[4*i/travelRows], "%d,%d,%s%08x\n", i, k, side, uint32(i*2654435761))
		}
		for i := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s%d.csv", side, i)),
				files[i].Bytes(), 0o600))
		}
	}
	small := "k,t\n"
	for k := range 4000 {
		small += fmt.Sprintf("%d,small %x\n", k, k*77_777_777)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.csv"), []byte(small), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "score.py"),
		[]byte("def score(k: int) -> int:\n    return k * 3 % 1001\n"), 0o600))
	return dir
}

// travelled counts what one worker has fetched and stored.
type travelled struct {
	parts.Backend
	mu          sync.Mutex
	read, wrote map[string]int64 // bytes, by part
}

func (b *travelled) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, int64, error) {
	body, total, err := b.Backend.Open(ctx, key, offset, length)
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		if length < 0 {
			length = total - offset
		}
		b.read[key] += length
	}
	return body, total, err
}

func (b *travelled) Put(ctx context.Context, key, path string) (parts.Info, error) {
	info, err := b.Backend.Put(ctx, key, path)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote[key] += info.Bytes
	return info, err
}

// asked notes what the batches of one worker ask for, however often that is.
type asked struct {
	*cache.Store
	mu     sync.Mutex
	pieces map[string]map[parts.Piece]int // by part, how often
}

func (a *asked) note(key string, pieces ...parts.Piece) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pieces[key] == nil {
		a.pieces[key] = map[parts.Piece]int{}
	}
	for _, p := range pieces {
		a.pieces[key][p]++
	}
}

func (a *asked) Fetch(ctx context.Context, key, sum string) (string, func(), error) {
	a.note(key, parts.Piece{})
	return a.Store.Fetch(ctx, key, sum)
}

func (a *asked) FetchPieces(ctx context.Context, part parts.Info, pieces []parts.Piece) (string, func(), error) {
	a.note(part.Key, pieces...)
	return a.Store.FetchPieces(ctx, part, pieces)
}

// mover is a worker of a cluster of one state directory, whose parts are elsewhere.
type mover struct {
	home    *instance.Instance
	moved   *travelled
	asked   *asked
	batches map[string]int // that it has executed, by node
	mu      sync.Mutex
}

func newMover(t *testing.T, dir, name string, far parts.Backend) *mover {
	t.Helper()
	path := filepath.Join(dir, name+".yaml")
	require.NoError(t, os.WriteFile(path,
		fmt.Appendf(nil, "version: 1\nstate: {directory: %q}\nworker: {scratch: %q}\n",
			filepath.Join(dir, "state"), filepath.Join(dir, name)), 0o600))
	cfg, err := instance.LoadCluster(path, settings.Options{Known: nil})
	require.NoError(t, err)
	require.NoError(t, cluster.Init(t.Context(), cfg))
	home, err := instance.OpenCluster(t.Context(), cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, home.Close()) })
	m := &mover{home: home, moved: &travelled{Backend: far, read: map[string]int64{}, wrote: map[string]int64{}},
		batches: map[string]int{}}
	store, err := cache.New(m.moved, filepath.Join(home.Dir, "copies"), 1<<30)
	require.NoError(t, err)
	require.NoError(t, home.Parts.Close())
	m.asked = &asked{Store: store, pieces: map[string]map[parts.Piece]int{}}
	home.Parts = m.asked
	return m
}

// serve works until the first run is over.
func (m *mover) serve(ctx context.Context, opts worker.WorkerOptions) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	client := remote.New(remote.Config{})
	defer client.Close()
	opts.Remote, opts.Interpreter = client, "python3"
	opts.Observe = func(e job.Event) {
		if e.Kind == job.BatchStarted {
			m.mu.Lock()
			m.batches[e.Node]++
			m.mu.Unlock()
		}
		if e.Kind == job.RunFinished {
			stop()
		}
	}
	return worker.Serve(ctx, m.home, opts)
}

// TestWorkersMoveNoMoreThanThePlanNeeds has two workers over a store that is elsewhere.
func TestWorkersMoveNoMoreThanThePlanNeeds(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	dir, far := travelInputs(t), &partstest.Memory{}
	path := filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte(replaceAll(travelScript, "DIR", dir, "OUT", dir)), 0o600))
	movers := []*mover{newMover(t, dir, "a", far), newMover(t, dir, "b", far)}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	client := remote.New(remote.Config{})
	defer client.Close()
	key, _, err := runner.Submit(ctx, movers[0].home, runner.Options{ScriptPath: path, Workspace: "main",
		Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3", Remote: client,
			Tune: func(b *budget.Budget) {
				b.Slots, b.BatchBytes, b.SmallBytes, b.BroadcastBytes, b.SlotEngineBytes = 1, 2<<20, 1<<20, 1<<20, 8<<20
			}}})
	require.NoError(t, err)
	var all sync.WaitGroup
	for _, m := range movers {
		all.Go(func() {
			assertNoError(t, m.serve(ctx,
				worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 1}}))
		})
	}
	all.Wait()
	run, err := movers[0].home.State.Run(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, state.Complete, run.Status)
	for _, name := range []string{"lefts", "rights", "smalls", "counted", "named", "once", "scored"} {
		requireTravelled(t, far, movers, name)
	}
}

// requireTravelled holds what workers have moved of a node's table to the least:
// each part stored once, and each piece fetched once by each worker of whose batches
// one reads it, and that has not written it.
func requireTravelled(t *testing.T, far *partstest.Memory, movers []*mover, node string) {
	t.Helper()
	sizes := map[string]int64{}
	var table int64
	for info, err := range far.List(t.Context(), "", "") {
		require.NoError(t, err)
		if strings.Contains(info.Key, "-"+node+"/") {
			sizes[info.Key] = info.Bytes
			table += info.Bytes
		}
	}
	require.Positive(t, table, node)
	var stored int64
	for i, m := range movers {
		var read, least, asked int64
		for key, bytes := range sizes {
			stored += m.moved.wrote[key]
			read += m.moved.read[key]
			for p, times := range m.asked.pieces[key] {
				if p.Bytes == 0 {
					p.Bytes = bytes // the whole part
				}
				asked += p.Bytes * int64(times)
				if m.moved.wrote[key] == 0 {
					least += p.Bytes
				}
			}
		}
		t.Logf("%s: %d bytes; worker %d read %d of at least %d, its batches %d", node, table, i, read, least, asked)
		require.LessOrEqual(t, read, least*11/10, "what worker %d has fetched of %s", i, node)
	}
	require.Equal(t, table, stored, "each part of %s is stored once", node)
}

func assertNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
