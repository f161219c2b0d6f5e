package runner_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/python"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/hostile"
)

const publicationsScript = `
nodes:
  load:
    type: file_table
    r:
      urls: [DIR/in.csv]
      csv: {hdr_line_idx: 0, first_data_line_idx: 1}
      columns: {id: {col_type: int, csv: {col_hdr: id}}}
    w: {name: items, fields: {id: {expression: r.id, type: int}}}
`

// publishedNode writes one file; N is its number.
const publishedNode = `
  outN:
    type: table_file
    r: {table: items}
    w:
      url_template: OUT/N.csv
      columns: [{name: id, expression: r.id * N, type: int, csv: {header: id, format: "%d"}}]
`

const publishedFiles, publishedRows = 8, 300

// dying is a store as a process sees it that is dead from some call about its
// files on: nothing that it says is heard then.
type dying struct {
	state.Store
	die      context.CancelFunc
	lastDone bool // the call at which it dies is done, and nobody hears of it
	mu       sync.Mutex
	left     int
}

var errDead = fmt.Errorf("the process is dead: %w", context.Canceled)

// heard does a call of a process that lives.
func (d *dying) heard(call func() error) error {
	d.mu.Lock()
	d.left--
	left := d.left
	d.mu.Unlock()
	if left > 0 {
		return call()
	}
	d.die()
	if left == 0 && d.lastDone {
		_ = call()
	}
	return errDead
}

func (d *dying) Announce(ctx context.Context, c state.Claim, p []state.Publication, lease time.Time) error {
	return d.heard(func() error { return d.Store.Announce(ctx, c, p, lease) })
}

func (d *dying) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return d.heard(func() error { return d.Store.Forget(ctx, key, attempt) })
}

func (d *dying) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	return d.heard(func() error { return d.Store.Commit(ctx, c, out, now) })
}

func (d *dying) Retry(ctx context.Context, c state.Claim, f state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return d.heard(func() error { return d.Store.Retry(ctx, c, f, stats, now, now) }) // at once
}

func (d *dying) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return d.heard(func() error { return d.Store.Release(ctx, c, now) })
}

// Close leaves the store to the next process.
func (d *dying) Close() error { return nil }

// unlucky fails some tasks once their file is written.
type unlucky struct {
	engine.Executor
	mu  sync.Mutex
	rng *rand.Rand
}

func (u *unlucky) Execute(ctx context.Context, cfg engine.InstanceConfig, pool *python.Pool,
	task engine.Task) (engine.Result, error) {
	res, err := u.Executor.Execute(ctx, cfg, pool, task)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err == nil && task.Output.File != nil && u.rng.IntN(5) == 0 {
		return engine.Result{}, &fault.Error{Kind: fault.Environment, Retryable: true, Message: "not now"}
	}
	return res, err
}

// TestPublicationsOnAHostileStore has processes that die at any call about
// their files publish over a store whose calls are lost, doubled, late or not
// answered, and leaves behind each dead one every file that it had announced. In
// the end all files are there, with their bytes, and nothing else is, in state or on the disk.
func TestPublicationsOnAHostileStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var in strings.Builder
	in.WriteString("id\n")
	for i := range publishedRows {
		fmt.Fprintln(&in, i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "in.csv"), []byte(in.String()), 0o644))
	for seed := range effort.Of[uint64](3, 6, 200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			p := &publishing{t: t, dir: t.TempDir(), truth: hostile.New().Open(), rng: rand.New(rand.NewPCG(seed, 9))}
			p.store = retrying.New(hostile.Wrap(p.truth, hostile.Everything(seed)),
				retrying.Config{Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
			text := replaceAll(publicationsScript, "DIR", dir)
			for n := range publishedFiles {
				text += replaceAll(publishedNode, "N", fmt.Sprint(n), "OUT", filepath.Join(p.dir, "out"))
			}
			require.NoError(t, os.WriteFile(filepath.Join(p.dir, "script.yaml"), []byte(text), 0o644))
			for life := 0; !p.live(life); life++ {
				p.leave()
			}
			p.check()
		})
	}
}

// publishing is a run that many processes publish.
type publishing struct {
	t     *testing.T
	dir   string
	truth state.Store
	store state.Store // what there is to see of the truth
	rng   *rand.Rand
}

var publishingRun = state.RunKey{Workspace: "main", Run: 1}

// live has a process work until it dies, or the run is complete.
func (p *publishing) live(life int) (complete bool) {
	const livesMax = 12 // then one lives for ever
	home, err := instance.Open(p.t.Context(), filepath.Join(p.dir, "state"), true)
	require.NoError(p.t, err)
	defer func() { require.NoError(p.t, home.Close()) }()
	require.NoError(p.t, home.State.Close())
	ctx, die := context.WithCancel(p.t.Context())
	defer die()
	d := &dying{Store: p.store, left: 1 << 30, lastDone: p.rng.IntN(2) == 0, die: die}
	if life < livesMax {
		d.left = 1 + p.rng.IntN(12)
	}
	home.State = d
	_, err = p.store.Run(p.t.Context(), publishingRun)
	sum, err := runner.Run(ctx, home, runner.Options{ScriptPath: filepath.Join(p.dir, "script.yaml"), Workspace: "main",
		Resume: err == nil, Process: runtime.Process{MemoryBytes: 512 << 20, Cores: 2,
			Tune: func(b *budget.Budget) { b.Slots = 2 }, Executor: func(e engine.Executor) engine.Executor {
				return &unlucky{Executor: e, rng: rand.New(rand.NewPCG(p.rng.Uint64(), 0))}
			}}})
	if ctx.Err() == nil {
		require.NoError(p.t, err)
		require.Nil(p.t, sum.Failure)
	}
	run, err := p.store.Run(p.t.Context(), publishingRun)
	if errors.Is(err, state.ErrNotFound) {
		return false
	}
	require.NoError(p.t, err)
	return run.Status == state.Complete
}

// announced lists what state has of files.
func (p *publishing) announced() []state.Publication {
	p.t.Helper()
	all, err := state.OfNodes(p.t.Context(), p.truth, publishingRun, p.truth.Publications)
	require.NoError(p.t, err)
	return all
}

// leave makes the files that a process leaves which is killed.
func (p *publishing) leave() {
	p.t.Helper()
	for _, pub := range p.announced() {
		path := filepath.Join(filepath.Dir(pub.Address), pub.Temp)
		require.NoError(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(p.t, os.WriteFile(path, []byte("half a fi"), 0o644))
	}
}

func (p *publishing) check() {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.dir, "out"))
	require.NoError(p.t, err)
	require.Len(p.t, entries, publishedFiles)
	for n := range publishedFiles {
		text, err := os.ReadFile(filepath.Join(p.dir, "out", fmt.Sprint(n, ".csv")))
		require.NoError(p.t, err)
		var want strings.Builder
		want.WriteString("id\n")
		for i := range publishedRows {
			fmt.Fprintln(&want, i*n)
		}
		require.Equal(p.t, want.String(), string(text))
	}
	require.Empty(p.t, p.announced())
}
