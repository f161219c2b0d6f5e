package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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
	ms      func(batch int) int
	rows    int           // of each batch; 0: 1
	want    string        // "": nothing is named
	runWide bool          // no node has more of it than others
	state   time.Duration // in front of each call of the state that a batch needs
	parts   time.Duration // before each part is written
	tune    func(b *budget.Budget)
}

// delayed is the delay that is planted.
func delayed(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// slowParts is a store of parts that is far away.
type slowParts struct {
	parts.Store
	delay time.Duration
}

func (s slowParts) Put(ctx context.Context, key, path string) (parts.Info, error) {
	delayed(ctx, s.delay)
	return s.Store.Put(ctx, key, path)
}

func always(ms int) func(int) int { return func(int) int { return ms } }

var plantedRuns = []planted{
	{name: "a batch 20 times", batches: 16, slots: 2, call: "work", want: "skew", ms: func(batch int) int {
		return map[bool]int{true: 2000, false: 100}[batch == 15]
	}},
	{name: "3 batches for 8 slots", batches: 3, slots: 8, call: "work", ms: always(1000), want: "few_batches"},
	{name: "sleeping Python", batches: 16, slots: 2, call: "sleep", ms: always(300), want: "python"},
	{name: "a delay before the state", batches: 32, slots: 2, call: "work", ms: always(5), state: 100 * time.Millisecond,
		want: "state", runWide: true},
	{name: "a delay before the parts", batches: 16, slots: 2, call: "work", ms: always(5), parts: 200 * time.Millisecond,
		want: "parts", runWide: true},
	{name: "GOMEMLIMIT at the edge", batches: 16, slots: 2, call: "plain", ms: always(1), rows: 20_000,
		tune: func(b *budget.Budget) { b.GoBytes, b.BatchBytes, b.SmallBytes = 1<<20, 1<<18, 1<<18 }, want: "collector",
		runWide: true},
	{name: "clean", batches: 16, slots: 2, call: "work", ms: always(300)},
}

// run executes the script, and explains it.
func (p planted) run(t *testing.T) causes.Report {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for b := range p.batches {
		write(fmt.Sprintf("in%03d.csv", b), "ms\n"+strings.Repeat(fmt.Sprintln(p.ms(b)), max(p.rows, 1)))
	}
	write("planted.py", plantedCode)
	write("script.yaml", fmt.Sprintf(`nodes:
  load: {type: file_table, r: {urls: ["%[1]s/in*.csv"], types: {ms: int}}, w: rows}
  work:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: {table: rows}
    p: {python_code_urls: ["%[1]s/planted.py"], calculated_fields: {v: {expression: %[2]s(r.ms), type: int}}}
    w: {name: worked, fields: {v: {expression: p.v, type: int}}}
`, dir, p.call))
	home, err := instance.Open(t.Context(), filepath.Join(dir, "state"), true)
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
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: state.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3",
			Tune: func(b *budget.Budget) {
				cutInto(p.slots, 10)(b)
				if p.tune != nil {
					p.tune(b)
				}
			}}})
	require.NoError(t, err)
	facts, err := causes.Gather(t.Context(), home.State, sum.Key, time.Now())
	require.NoError(t, err)
	return causes.Explain(facts)
}

// found reports whether the cause is named first, at its node, or nothing if there is none.
func (p planted) found(r causes.Report) bool {
	if p.want == "" {
		return len(r.Named) == 0
	}
	return len(r.Named) > 0 && (p.runWide || r.Named[0].Node == "work") && r.Named[0].Cause.Cause == p.want
}

// plantedRepeats names how often each is run; it has to be found in two thirds of them.
const plantedRepeats = "THALWEG_PLANTED_REPEATS"

// Causes that are planted are named first, at the right node, and a clean run accuses nobody. Other programs on the
// machine are causes, too: one of two runs is enough where no number of repeats is asked for.
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
