package property

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"thalweg/internal/app/caller"
	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/matrix"
	"thalweg/internal/ops/gc"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// actorSpec makes the test binary one of a trial's processes: the file that says
// what it does.
const actorSpec = "THALWEG_CHAOS_ACTOR"

// deed is an action of a trial's process, with the fault that it causes itself.
type deed struct {
	Do       string // "run", "resume", "retry", "matrix", "worker", "decide", "stop", "pause", "invalidate", "gc"
	Dir      string // of the trial: state, script.json
	Run      int64
	Variant  variant // how batches are cut
	Lease    time.Duration
	Token    string // of a run that begins
	Reuse    bool
	Pinned   bool                 // it goes on with what was pinned
	Gate     string               // that is decided
	Approve  bool                 // else it is rejected
	Answers  map[string]string    // to the gate
	Again    orders.RedoSelection // of a retry
	Node     string               // that is invalid
	Keep     int                  // runs that gc keeps; 0: all
	Times    int                  // that gc collects
	Signal   syscall.Signal       // to itself; 0: none
	Step     int                  // at which that comes
	TaskFail int                  // this task fails, and is tried again; 0: none
	Cells    []string             // of a matrix
}

// said is the result of a deed, as its process prints it.
type said struct {
	Status  state.Status `json:"status,omitempty"`
	Kind    fault.Kind   `json:"kind,omitempty"`
	Error   string       `json:"error,omitempty"`
	Steps   int          `json:"steps"`
	Cells   int          `json:"cells,omitempty"` // of a matrix, that are complete
	Dropped int          `json:"dropped,omitempty"`
	Removed int64        `json:"removed,omitempty"`
}

// act is a process of a trial.
func act(path string) int {
	var d deed
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := context.WithCancelCause(context.Background())
	defer stop(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	go func() {
		<-signals
		stop(runner.ErrLeave)
	}()
	how := perform(ctx, d)
	_ = json.NewEncoder(os.Stdout).Encode(how) // nobody may read it
	if how.Kind != "" {
		return 1
	}
	return 0
}

// perform does a deed.
func perform(ctx context.Context, d deed) said {
	a := &actor{deed: d, client: remote.New(remote.Config{})}
	err := errors.Join(a.do(ctx), a.client.Close())
	if err != nil {
		f := fault.Of(err)
		a.said.Kind, a.said.Error = f.Kind, err.Error()+" "+f.Detail
		if ctx.Err() != nil { // whichever layer noticed, as for the command
			a.said.Kind = fault.Canceled
		}
	}
	a.said.Steps = a.steps
	return a.said
}

// actor does a deed, and counts its steps: calls of the state, steps of files,
// and crash points.
type actor struct {
	deed
	client *remote.Client
	said   said
	mu     sync.Mutex
	steps  int
}

// step may be the one at which the process gets its signal. What else it does
// stands still then as well, but for a signal that it may handle.
func (a *actor) step() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.steps++; a.Signal != 0 && a.steps == a.Step {
		_ = syscall.Kill(syscall.Getpid(), a.Signal)
		if a.Signal == syscall.SIGKILL {
			select {}
		}
	}
}

func (a *actor) passed(job.CrashPoint) { a.step() }

func (a *actor) do(ctx context.Context) (err error) {
	if a.Do == "matrix" {
		return a.matrix(ctx)
	}
	files := durable.Watched(func(_ durable.Op, do func() error) error {
		a.step()
		defer a.step()
		return do()
	})
	home, err := instance.OpenOn(ctx, files, filepath.Join(a.Dir, "state"), true)
	if err != nil {
		return err
	}
	home.State = hostile.Watch(home.State, a.step)
	defer func() { err = errors.Join(err, home.Close()) }()
	key := state.RunKey{Workspace: "main", Run: a.Run}
	switch a.Do {
	case "run", "resume":
		o := a.options()
		o.Resume, o.ResumeRun, o.Pinned = a.Do == "resume", a.Run, a.Pinned
		return a.drive(ctx, home, o)
	case "retry":
		r, err := runner.PlanRetry(ctx, home, key,
			runner.RetryOptions{Again: a.Again, Process: runtime.Process{Remote: a.client}})
		if err != nil {
			return err
		}
		if len(r.Changed) > 0 {
			return fmt.Errorf("a retry of what has not changed begins another run: %+v", r.Changed)
		}
		o := a.options()
		o.ScriptPath, o.Reuse, o.Resume, o.Pinned, o.ResumeRun, o.Again = "", false, true, true, a.Run, r.Options.Again
		return a.drive(ctx, home, o)
	case "worker":
		return worker.Serve(ctx, home,
			worker.WorkerOptions{Process: runtime.Process{Remote: a.client, MemoryBytes: a.Variant.Memory, Cores: 1,
				Interpreter: "python3", Lease: a.Lease, Tries: triesMax, Checkpoint: a.passed}})
	case "decide":
		_, err := control.Decide(ctx, home, control.DecisionRequest{Run: key, Gate: a.Gate, Approve: a.Approve,
			Comment: "as seen",
			Answers: a.Answers, Process: runtime.Process{Remote: a.client, Checkpoint: a.passed}})
		return err
	case "stop":
		_, err := control.Stop(ctx, home, key, caller.OfProcess(caller.CLI).Mark("enough"))
		return err
	case "pause":
		_, _, err := control.Pause(ctx, home, key, caller.OfProcess(caller.CLI).Mark("for now"))
		return err
	case "invalidate":
		_, err := control.Invalidate(ctx, home, key, control.InvalidateOptions{Nodes: []string{a.Node},
			By: caller.OfProcess(caller.CLI).Mark("wrong")})
		return err
	case "gc":
		return a.collect(ctx, home)
	}
	return fmt.Errorf("nobody knows how to %s", a.Do)
}

// triesMax: a machine that is slow loses leases of 1 s, which is no reason to give up.
const triesMax = 1000

func (a *actor) options() runner.Options {
	o := runner.Options{ScriptPath: filepath.Join(a.Dir, "script.json"), Workspace: "main",
		Process: runtime.Process{MemoryBytes: a.Variant.Memory, Cores: 2, Interpreter: "python3", Remote: a.client,
			Tune: a.Variant.tune, Lease: a.Lease, Tries: triesMax, Checkpoint: a.passed},
		Token: a.Token, Reuse: a.Reuse, Ephemeral: a.Variant.Fused}
	if a.TaskFail > 0 {
		o.Executor = failsOnce(a.TaskFail, true)
	}
	return o
}

func (a *actor) drive(ctx context.Context, home *instance.Instance, o runner.Options) error {
	sum, err := runner.Run(ctx, home, o)
	if a.said.Status = sum.Status; err == nil && sum.Failure != nil {
		a.said.Error = hint(sum)
	}
	return err
}

// matrix runs the script once for each cell.
func (a *actor) matrix(ctx context.Context) error {
	cells, err := runner.RunMatrix(ctx, runner.MatrixOptions{Options: a.options(), Dir: filepath.Join(a.Dir, "state"),
		Concurrency: 2,
		Axes:        []matrix.Axis{{Name: "cell", Values: a.Cells}}, Show: func(runner.CellState) { a.step() }})
	for _, c := range cells {
		if c.Status == state.Complete {
			a.said.Cells++
		} else if c.Failure != nil {
			a.said.Error += fmt.Sprintf("cell %s: %+v ", c.Cell, *c.Failure)
		}
	}
	return err
}

// collect removes what nobody needs any more, again and again.
func (a *actor) collect(ctx context.Context, home *instance.Instance) error {
	for range a.Times {
		done, err := control.Collect(ctx, home, control.CollectOptions{Workspace: "main",
			Limits: gc.Limits{Keep: a.Keep},
			By:     caller.OfProcess(caller.CLI).Mark("old"), Process: runtime.Process{Remote: a.client,
				Checkpoint: a.passed}})
		if err != nil {
			return err
		}
		a.said.Dropped += len(done.Drops)
		a.said.Removed += int64(done.Dead.Count + done.Withdrawn.Count + done.Dropped.Count)
	}
	return nil
}
