package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/budget"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
	"thalweg/internal/test/jobtest"
)

// crashAt makes the test binary run a script and die: "POINT:N", the N-th time
// that a crash point is passed; "run" only runs.
const crashAt = "THALWEG_TEST_CRASH_AT"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(serveSlot())
	}
	if at := os.Getenv(crashAt); at != "" {
		os.Exit(victim(at))
	}
	goleak.VerifyTestMain(m)
}

// victim runs script.yaml in the working directory, dying where it is told.
func victim(at string) int {
	if n, err := strconv.ParseUint(os.Getenv(fileBytesMax), 10, 64); err == nil {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	place := os.Getenv("THALWEG_TEST_HOME") // where script and state are; "": here
	home, err := instance.OpenOn(ctx, jobtest.Files(jobtest.DieAt(at)), filepath.Join(place, instance.DefaultDir), true)
	if at == "worker" && ctx.Err() != nil { // told to end before it began
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer home.Close()
	client := remote.New(remote.Config{CAPath: os.Getenv("THALWEG_TEST_CA"), S3Endpoint: os.Getenv("THALWEG_TEST_S3"),
		SFTPKeys: map[string]string{"joe": os.Getenv("THALWEG_TEST_KEY")}, KnownHosts: os.Getenv("THALWEG_TEST_HOSTS")})
	defer client.Close()
	if at == "memory" {
		return shareMemory(ctx, home, os.Getenv(sharesMemory))
	}
	if point, ok := strings.CutPrefix(at, "scheduler "); ok {
		return serveSchedules(ctx, home, client, point)
	}
	if verb, ok := strings.CutPrefix(at, "order "); ok {
		return orderVictim(ctx, home, client, verb)
	}
	if point, ok := strings.CutPrefix(at, "collect "); ok {
		return collectVictim(ctx, home, client, point)
	}
	if at == "worker" {
		var isolate *worker.Isolation
		if os.Getenv(slotsAreProcesses) != "" {
			isolate = &worker.Isolation{Client: remote.Config{}, Command: slotCommand("")}
		}
		if err := worker.Serve(ctx, home, worker.WorkerOptions{Isolate: isolate, Process: runtime.Process{Remote: client,
			MemoryBytes: 2 << 30, Cores: 1, Interpreter: "python3", Tries: triesOfWorkers,
			Checkpoint: jobtest.DieAt(os.Getenv(workerDiesAt))}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	if at == "approve" {
		die := jobtest.DieAt(os.Getenv("THALWEG_TEST_DECIDE_AT"))
		home.State = jobtest.Orders(home.State, die)
		_, err := control.Decide(ctx, home, control.DecisionRequest{Run: state.RunKey{Workspace: "main", Run: 1},
			Gate: os.Getenv("THALWEG_TEST_GATE"), Approve: true,
			Answers: gateAnswers()[os.Getenv("THALWEG_TEST_GATE")],
			Process: runtime.Process{Caller: sales(), Remote: client,
				Checkpoint: die}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	sum, err := runner.Run(ctx, home, runner.Options{
		Most: runner.Ask{Cost: os.Getenv(limitOf)}, Limiter: perSlot,
		ScriptPath: filepath.Join(place, "script.yaml"), Process: runtime.Process{Remote: client,
			MemoryBytes: victimBytes,
			Interpreter: "python3", Checkpoint: jobtest.DieAt(at), Tune: sharing(os.Getenv(sharedChecks) != "")},
		Workspace: "main", Resume: os.Getenv("THALWEG_TEST_RESUME") != "",
		Reuse: os.Getenv("THALWEG_TEST_REUSE") != "",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(sum.Status)
	if sum.Failure != nil {
		fmt.Println(sum.Failure.Kind, sum.Failure.Text())
	}
	return 0
}

// limitOf is what the run of a victim may cost, with perSlot.
const limitOf = "THALWEG_TEST_MAX_COST"

// slotsAreProcesses makes the slots of a victim that is a worker processes.
const slotsAreProcesses = "THALWEG_TEST_ISOLATED"

// fileBytesMax is the largest file that a victim may write.
const fileBytesMax = "THALWEG_TEST_FILE_BYTES"

// gateAnswers returns the answers that victims give at gates.
func gateAnswers() map[string]map[string]string {
	return map[string]map[string]string{"orders": {"cutoff": "97"}}
}

const (
	// workerDiesAt makes a worker die at a crash point.
	workerDiesAt = "THALWEG_TEST_WORKER_DIES_AT"
	// triesOfWorkers is the number of times that workers try a batch.
	triesOfWorkers = 3
)

// sharedChecks asks a victim to share out the checks of small tables, too.
const sharedChecks = "THALWEG_TEST_SHARED_CHECKS"

func sharing(wanted bool) func(*budget.Budget) {
	if !wanted {
		return nil
	}
	return func(b *budget.Budget) { b.Slots, b.Cores, b.SmallBytes = 2, 2, 0 }
}

// victimBytes is the memory of a victim.
const victimBytes = 512 << 20
