package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// sharesMemory makes the test binary a process that shares memory: "run N" or "resume N" of
// scriptN.yaml, or "worker", each with its bytes behind it.
const sharesMemory = "THALWEG_TEST_SHARES_MEMORY"

// greedyBytes is memory in which greedyScript's batch fits if it has all of it, and not with a quarter less.
const greedyBytes = 512 << 20

// greedyScript has a batch whose lists cannot be put aside on disk, and formulas in Python.
const greedyScript = `
nodes:
  read:
    type: file_table
    r: {urls: [ids.csv], types: {id: int}}
    w: {name: ids, fields: {id: {expression: "coalesce(r.id, 0)", type: int}}}
  greedy:
    type: sql
    r: [ids]
    query: |
      SELECT CAST(g AS BIGINT) AS g, CAST(len(l) AS BIGINT) AS n
      FROM (SELECT a.id % 3 AS g, list(a.id * b.id) AS l FROM ids a, ids b GROUP BY a.id % 3)
    w: {name: greedy, fields: {g: int, n: int}}
  scored:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: ids
    p:
      python_code_urls: [score.py]
      calculated_fields: {v: {expression: "score(r.id)", type: int}}
    w: {name: scored, fields: {id: {expression: r.id, type: int}, v: {expression: p.v, type: int}}}
  write_greedy:
    type: table_file
    r: greedy
    w:
      url_template: OUT/greedy.csv
      columns: [{name: g, expression: r.g, type: int, csv: {header: g}}, ` +
	`{name: n, expression: r.n, type: int, csv: {header: n}}]
  write_scored:
    type: table_file
    r: scored
    w:
      url_template: OUT/scored.csv
      columns: [{name: id, expression: r.id, type: int, csv: {header: id}}, ` +
	`{name: v, expression: r.v, type: int, csv: {header: v}}]
`

const greedyRows = 1_500

// shareMemory is the process that sharesMemory asks for.
func shareMemory(ctx context.Context, home *instance.Instance, how string) int {
	words := strings.Fields(how)
	memory, err := strconv.ParseInt(words[len(words)-1], 10, 64)
	if err == nil && words[0] == "worker" {
		err = worker.Serve(ctx, home,
			worker.WorkerOptions{Process: runtime.Process{MemoryBytes: memory, Cores: 1, Interpreter: "python3",
				Lease: sharersLease}})
	} else if err == nil {
		var sum runner.Summary
		sum, err = runner.Run(ctx, home, runner.Options{ScriptPath: "script" + words[1] + ".yaml", Workspace: "main",
			Process: runtime.Process{MemoryBytes: memory, Cores: 1, Interpreter: "python3", Lease: sharersLease},
			Resume:  words[0] == "resume"})
		if sum.Failure != nil {
			fmt.Println(sum.Failure.Kind, sum.Failure.Text())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// sharersLease is short, so that what a killed process had goes on in others.
const sharersLease = time.Second

// sharer is a process that shares memory.
type sharer struct {
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
	killed bool // by us
}

// sharers are processes in one state directory.
type sharers struct {
	t    *testing.T
	dir  string
	rng  *rand.Rand
	runs int
	all  []*sharer
}

func (s *sharers) start(how string) *sharer {
	p := &sharer{cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Dir = s.dir
	p.cmd.Env = append(os.Environ(), crashAt+"=memory", fmt.Sprintf("%s=%s %d", sharesMemory, how,
		greedyBytes+s.rng.Int64N(2)*greedyBytes/4))
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	require.NoError(s.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // how it ended is looked at where it matters
		close(p.ended)
	}()
	s.all = append(s.all, p)
	return p
}

func (s *sharers) write(name, text string) {
	require.NoError(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
}

func newSharers(t *testing.T, seed uint64) *sharers {
	s := &sharers{t: t, dir: t.TempDir(), rng: rand.New(rand.NewPCG(seed, 1))}
	var ids strings.Builder
	for i := range greedyRows {
		fmt.Fprintf(&ids, "%d\n", i)
	}
	s.write("ids.csv", "id\n"+ids.String())
	s.write("score.py", "def score(x: int) -> int:\n    return x * 3\n")
	s.runs = 1 + s.rng.IntN(3)
	for n := range s.runs {
		s.write(fmt.Sprintf("script%d.yaml", n), strings.ReplaceAll(greedyScript, "OUT", fmt.Sprintf("out%d", n)))
	}
	return s
}

// status returns the status of the run of a script; "" if it was not begun.
func (s *sharers) status(n int) (status state.Status) {
	home := openHome(s.t, s.dir)
	defer func() { require.NoError(s.t, home.Close()) }()
	runs, _, err := home.State.Runs(s.t.Context(), "main", state.Page{})
	require.NoError(s.t, err)
	for _, r := range runs {
		if filepath.Base(r.ScriptPath) == fmt.Sprintf("script%d.yaml", n) {
			status = r.Status
		}
	}
	return status
}

// disturb kills one of the processes, or stops it for a while.
func (s *sharers) disturb() {
	pause := time.NewTimer(time.Duration(s.rng.IntN(1500)) * time.Millisecond)
	defer pause.Stop()
	<-pause.C
	p := s.all[s.rng.IntN(len(s.all))]
	if s.rng.IntN(2) == 0 {
		p.killed = true
		_ = p.cmd.Process.Kill() // it may have ended
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	defer func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }()
	stopped := time.NewTimer(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
	defer stopped.Stop()
	<-stopped.C
}

// await waits for the processes; those that work for others are told to end once the others have.
func (s *sharers) await(workers []*sharer) {
	s.t.Helper()
	patience := time.NewTimer(5 * time.Minute)
	defer patience.Stop()
	for _, wait := range []bool{false, true} {
		for _, p := range s.all {
			worker := false
			for _, w := range workers {
				worker = worker || w == p
			}
			if worker != wait {
				continue
			}
			if worker {
				_ = p.cmd.Process.Signal(syscall.SIGTERM)
			}
			select {
			case <-p.ended:
			case <-patience.C:
				_ = p.cmd.Process.Signal(syscall.SIGQUIT)
				<-p.ended
				require.Fail(s.t, "a process does not end", p.output.String())
			}
		}
	}
	s.all = nil
}

// sharing runs scripts in processes that share memory, come, go and stand still, until
// all are complete. No run may fail: each fits the whole.
func (s *sharers) sharing(want map[string]string) {
	s.t.Helper()
	var workers []*sharer
	for range s.rng.IntN(3) {
		workers = append(workers, s.start("worker"))
	}
	for n := range s.runs {
		s.start(fmt.Sprintf("run %d", n))
	}
	for range s.rng.IntN(3) {
		s.disturb()
	}
	all := s.all
	for {
		s.await(workers)
		workers = nil
		for _, p := range all {
			require.NotContains(s.t, p.output.String(), "memory", "nobody fails for the memory of others")
		}
		for n := range s.runs {
			switch status := s.status(n); status {
			case state.Complete:
			case "":
				s.start(fmt.Sprintf("run %d", n))
			case state.Running, state.Stopped:
				s.start(fmt.Sprintf("resume %d", n))
			default:
				require.Fail(s.t, "a run is "+string(status))
			}
		}
		if all = s.all; len(all) == 0 {
			break
		}
	}
	for n := range s.runs {
		for name, text := range want {
			got, err := os.ReadFile(filepath.Join(s.dir, fmt.Sprintf("out%d", n), name))
			require.NoError(s.t, err)
			require.Equal(s.t, text, string(got), name)
		}
	}
}

// greedyFiles returns the files that a run of greedyScript writes.
func greedyFiles() map[string]string {
	greedy, scored := "g,n\n", "id,v\n"
	for g := range 3 {
		greedy += fmt.Sprintf("%d,%d\n", g, greedyRows/3*greedyRows)
	}
	for i := range greedyRows {
		scored += fmt.Sprintf("%d,%d\n", i, 3*i)
	}
	return map[string]string{"greedy.csv": greedy, "scored.csv": scored}
}

// TestChaosSharedMemory has one to five processes at a time share memory in which a batch of each run fits only alone.
func TestChaosSharedMemory(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	runs, wanted, first := 0, effort.Of(1, 5, 500), uint64(1)
	if seed, err := strconv.ParseUint(os.Getenv("THALWEG_MEMORY_SEED"), 10, 64); err == nil {
		first, wanted = seed, 1
	}
	for seed := first; runs < wanted; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := newSharers(t, seed)
			s.sharing(greedyFiles())
			runs += s.runs
		})
	}
	t.Logf("%d runs shared memory, and none failed", runs)
}
