package runner_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/ops/causes"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// plantedCode works for a number of milliseconds of the processor, or sleeps for them.
const plantedCode = `
import time

def work(ms):
    end = time.process_time() + ms / 1000
    while time.process_time() < end:
        pass
    return ms

def plain(ms):
    return ms

def sleep(ms):
    time.sleep(ms / 1000)
    return ms
`

// planted is a run with a cause that is planted in its node work.
type planted struct {
	name    string
	batches int
	slots   int
	call    string
	ms      func(batch, row int) int
	rows    int           // of each batch; 0: 1
	want    string        // "": nothing is named
	spared  string        // a cause that is not named, whatever is
	runWide bool          // no node has more of it than others
	state   time.Duration // in front of each call of the state that a batch needs
	parts   int64         // bytes a second of the way to the parts; 0: as they are
	memory  int64         // 0: plannedMemory
	beside  bool          // two workers on a processor each, and a load on that of the second
	script  string        // "": plantedScript
	tune    func(b *budget.Budget)
}

// delayed is the delay that is planted.
func delayed(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// slowParts is a store of parts behind a narrow line.
type slowParts struct {
	parts.Store
	perSecond int64 // bytes
}

func (s slowParts) Put(ctx context.Context, key, path string) (parts.Info, error) {
	info, err := s.Store.Put(ctx, key, path)
	delayed(ctx, time.Duration(info.Bytes)*time.Second/time.Duration(s.perSecond))
	return info, err
}

func always(ms int) func(int, int) int { return func(int, int) int { return ms } }

var plantedRuns = []planted{
	{name: "a batch 20 times", batches: 16, slots: 2, call: "work", want: "skew", ms: func(batch, _ int) int {
		return map[bool]int{true: 2000, false: 100}[batch == 15]
	}},
	{name: "3 batches for 8 slots", batches: 3, slots: 8, call: "work", ms: always(1000), want: "few_batches"},
	{name: "sleeping Python", batches: 16, slots: 2, call: "sleep", ms: always(300), want: "python"},
	{name: "5 ms before the state", batches: 300, slots: 2, script: plainColumn, ms: always(5),
		state: 5 * time.Millisecond, want: "state", runWide: true},
	{name: "10 MB/s before the parts", batches: 16, slots: 2, script: plainColumn, ms: scattered, rows: 300_000,
		tune: func(b *budget.Budget) { b.BatchBytes, b.SmallBytes = 8<<20, 8<<20 }, parts: 10_000_000, want: "parts",
		runWide: true},
	{name: "GOMEMLIMIT at the edge", batches: 16, slots: 2, call: "plain", ms: always(1), rows: 20_000,
		tune: func(b *budget.Budget) { b.GoBytes, b.BatchBytes, b.SmallBytes = 1<<20, 1<<18, 1<<18 }, want: "collector",
		runWide: true},
	{name: "a quarter of the memory", batches: 8, slots: 2, ms: greedyValue, rows: 440, script: greedyKeys,
		memory: plannedMemory / 4, tune: cutForAll, want: "memory"},
	{name: "all of that memory", batches: 8, slots: 2, ms: greedyValue, rows: 440, script: greedyKeys,
		tune: cutForAll, spared: "memory"},
	{name: "a load beside one worker", batches: 40, slots: 2, call: "work", ms: always(150), beside: true,
		want: "others_load"},
	{name: "clean", batches: 16, slots: 2, call: "work", ms: always(300)},
}

// plannedMemory is that of a planted run, by which its batches are cut.
const plannedMemory = 1 << 30

// cutForAll cuts batches as they would be for plannedMemory.
func cutForAll(b *budget.Budget) { b.BatchBytes, b.SmallBytes = 1<<12, 1<<12 }

const plantedScript = `nodes:
  load: {type: file_table, r: {urls: ["DIR/in*.csv"], types: {ms: int}}, w: rows}
  work:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: rows}
    p: {python_code_urls: ["DIR/planted.py"], calculated_fields: {v: {expression: CALL(r.ms), type: int}}}
    w: {name: worked, fields: {v: {expression: p.v, type: int}}}
`

// greedyKeys has 64 keys, each with a list of texts that cannot be put aside on disk.
const greedyKeys = `nodes:
  load:
    type: file_table
    r: {urls: ["DIR/in*.csv"], types: {ms: int}}
    w:
      name: rows
      fields: {k: {expression: "coalesce(r.ms, 0) % 64", type: int}, v: {expression: "coalesce(r.ms, 0)", type: int}}
  work:
    type: sql
    r: [rows]
    by: [k]
    query: |
      SELECT a.k, CAST(len(list(repeat('x', 1000) || b.v)) AS BIGINT) AS n
      FROM rows a JOIN rows b ON a.k = b.k GROUP BY a.k
    w: {name: worked, fields: {k: int, n: int}}
`

// plainColumn computes next to nothing.
const plainColumn = `nodes:
  load: {type: file_table, r: {urls: ["DIR/in*.csv"], types: {ms: int}}, w: rows}
  work: {type: table_table, r: rows, w: {name: worked, fields: {v: {expression: "coalesce(r.ms, 0) + 1", type: int}}}}
`

// scattered has values that hardly compress.
func scattered(batch, row int) int {
	h := uint64(row*1000+batch) * 0x9e3779b97f4a7c15
	return int((h ^ h>>31) * 0xbf58476d1ce4e5b9 >> 2)
}

func greedyValue(batch, row int) int { return 8*row + batch }

// run executes the script, and explains it.
func (p planted) run(t *testing.T) causes.Report {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for b := range p.batches {
		text := []byte("ms\n")
		for row := range max(p.rows, 1) {
			text = fmt.Appendln(text, p.ms(b, row))
		}
		write(fmt.Sprintf("in%03d.csv", b), string(text))
	}
	write("planted.py", plantedCode)
	write("script.yaml", replaceAll(cmp.Or(p.script, plantedScript), "DIR", dir, "CALL", p.call))
	home, err := instance.Open(t.Context(), filepath.Join(dir, instance.DefaultDir), true)
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	if p.state > 0 {
		home.State = state.Around(home.State, func(ctx context.Context, op state.Op,
			call func(context.Context) error) error {
			if op.Method == state.OpClaim || op.Method == state.OpCommit {
				delayed(ctx, p.state)
			}
			return call(ctx)
		})
	}
	if p.parts > 0 {
		home.Parts = slowParts{home.Parts, p.parts}
	}
	opts := runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir, Workspace: state.DefaultWorkspace,
		Process: runtime.Process{MemoryBytes: cmp.Or(p.memory, plannedMemory), Cores: 2, Interpreter: "python3",
			Tune: func(b *budget.Budget) {
				cutInto(p.slots, 10)(b)
				if p.tune != nil {
					p.tune(b)
				}
			}}}
	var key state.RunKey
	if p.beside {
		key, err = runner.Begin(t.Context(), home, opts)
		require.NoError(t, err)
		workBesideLoad(t, home, key, dir)
	} else {
		sum, err := runner.Run(t.Context(), home, opts)
		require.NoError(t, err)
		require.Equal(t, state.Complete, sum.Status)
		key = sum.Key
	}
	facts, err := causes.Gather(t.Context(), home.State, key, time.Now())
	require.NoError(t, err)
	return causes.Explain(facts)
}

// workBesideLoad has two workers work on a run, on a processor each, and other programs on that of the second.
func workBesideLoad(t *testing.T, home *instance.Instance, key state.RunKey, dir string) {
	t.Helper()
	processors := processorsOf(t)
	if len(processors) < 2 {
		t.Skip("two workers need a processor each")
	}
	var workers []*exec.Cmd
	start := func(cmd *exec.Cmd, processor int) {
		pin(t, cmd, processor)
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
	}
	for _, processor := range processors[:2] {
		w := victimCmd(t, dir, "worker", false)
		w.Stderr = os.Stderr
		start(w, processor)
		workers = append(workers, w)
	}
	for range 3 {
		load := exec.Command("python3", "-c", "while True: pass")
		start(load, processors[1])
		defer func() {
			_ = load.Process.Kill()
			_ = load.Wait() // it was killed
		}()
	}
	require.Eventually(t, func() bool {
		run, err := home.State.Run(t.Context(), key)
		require.NoError(t, err)
		return run.Status.Terminal()
	}, effort.Patience, 50*time.Millisecond)
	for _, w := range workers {
		require.NoError(t, w.Process.Signal(syscall.SIGTERM))
		require.NoError(t, w.Wait())
	}
}

// processorsOf lists the processors that this process may use.
func processorsOf(t *testing.T) (list []int) {
	t.Helper()
	var set unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &set))
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list
}

// pin starts a process on one processor. It has what the thread that starts it has; that thread ends, locked as it is.
func pin(t *testing.T, cmd *exec.Cmd, processor int) {
	t.Helper()
	started := make(chan error)
	go func() {
		goruntime.LockOSThread()
		var one unix.CPUSet
		one.Set(processor)
		err := unix.SchedSetaffinity(0, &one)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	require.NoError(t, <-started)
}

// found reports whether the cause is named first, at its node, or nothing if there is none.
func (p planted) found(r causes.Report) bool {
	if p.spared != "" {
		return !slices.ContainsFunc(r.Named, func(n causes.Named) bool { return n.Cause.Cause == p.spared })
	}
	if p.want == "" {
		return len(r.Named) == 0
	}
	return len(r.Named) > 0 && (p.runWide || r.Named[0].Node == "work") && r.Named[0].Cause.Cause == p.want
}

// plantedRepeats names how often each is run; it has to be found in two thirds of them.
const plantedRepeats = "THALWEG_PLANTED_REPEATS"

// Causes that are planted are named first, at the right node, and a clean run accuses nobody. Other programs on the
// machine are causes, too: where no number of repeats is asked for, other tests may run beside this one, so one of two
// runs is enough, and no load is compared with none.
func TestPlantedCauses(t *testing.T) {
	effort.Unraced(t)
	repeats, err := strconv.Atoi(os.Getenv(plantedRepeats))
	if err != nil {
		repeats = 2
	}
	least := (2*repeats + 2) / 3
	if err != nil {
		least = 1
	}
	for _, p := range plantedRuns {
		t.Run(p.name, func(t *testing.T) {
			if testing.Short() && p.want != "python" && p.want != "" {
				t.Skip("a planted run takes seconds: it is for whole runs of the tests, not -short ones")
			}
			if p.beside && err != nil {
				t.Skip("needs a machine that does nothing else: make planted")
			}
			found := 0
			for i := 0; i < repeats && found < least; i++ {
				r := p.run(t)
				for _, n := range r.Named {
					t.Log(i, n.Sentence())
				}
				if p.found(r) {
					found++
				}
			}
			require.GreaterOrEqual(t, found, least)
		})
	}
}
