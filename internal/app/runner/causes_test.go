package runner_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/ops/causes"
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
	delay   time.Duration // in front of each call of the state that a batch needs
	want    string        // "": nothing is named
}

func always(ms int) func(int) int { return func(int) int { return ms } }

var plantedRuns = []planted{
	{name: "a batch 20 times", batches: 16, slots: 2, call: "work", want: "skew", ms: func(batch int) int {
		return map[bool]int{true: 2000, false: 100}[batch == 15]
	}},
	{name: "3 batches for 8 slots", batches: 3, slots: 8, call: "work", ms: always(1000), want: "few_batches"},
	{name: "sleeping Python", batches: 16, slots: 2, call: "sleep", ms: always(300), want: "python"},
	{name: "a delay before the state", batches: 32, slots: 2, call: "work", ms: always(5), delay: 100 * time.Millisecond,
		want: "state"},
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
		write(fmt.Sprintf("in%03d.csv", b), fmt.Sprintf("ms\n%d\n", p.ms(b)))
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
	if p.delay > 0 {
		home.State = state.Around(home.State, func(ctx context.Context, op state.Op,
			call func(context.Context) error) error {
			if op.Method == state.OpClaim || op.Method == state.OpCommit {
				time.Sleep(p.delay) // what is planted
			}
			return call(ctx)
		})
	}
	sum, err := runner.Run(t.Context(), home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"),
		Workspace: state.DefaultWorkspace, Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 2, Interpreter: "python3",
			Tune: cutInto(p.slots, 10)}})
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
	return len(r.Named) > 0 && r.Named[0].Node == "work" && r.Named[0].Cause.Cause == p.want
}

// plantedRepeats is how often each is run: one of them has to be found, of more than one all but a third.
const plantedRepeats = "THALWEG_PLANTED_REPEATS"

// TestPlantedCauses are named first, at the right node, and a clean run accuses nobody. Other programs on the machine
// are causes, too: without repeats the second of two runs counts.
func TestPlantedCauses(t *testing.T) {
	effort.Unraced(t)
	repeats, err := strconv.Atoi(os.Getenv(plantedRepeats))
	if err != nil {
		repeats = 1
	}
	for _, p := range plantedRuns {
		t.Run(p.name, func(t *testing.T) {
			found := 0
			for i := range max(repeats, 2) {
				r := p.run(t)
				is := p.found(r)
				for _, n := range r.Named {
					t.Log(i, n.Sentence())
				}
				if is {
					found++
				}
				if repeats == 1 && is {
					return
				}
			}
			require.GreaterOrEqual(t, 3*found, 2*repeats)
		})
	}
}
