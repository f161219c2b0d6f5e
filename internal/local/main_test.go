package local_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"thalweg/internal/budget"
	"thalweg/internal/local"
	"thalweg/internal/remote"
	"thalweg/internal/worker/workertest"
)

// crashAt makes the test binary run a script and die: "POINT:N", the N-th time
// that a crash point is passed; "run" only runs.
const crashAt = "THALWEG_TEST_CRASH_AT"

func TestMain(m *testing.M) {
	if at := os.Getenv(crashAt); at != "" {
		os.Exit(victim(at))
	}
	goleak.VerifyTestMain(m)
}

// victim runs script.yaml in the working directory, dying where it is told.
func victim(at string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	place := os.Getenv("THALWEG_TEST_HOME") // where script and state are; "": here
	home, err := local.Open(ctx, filepath.Join(place, local.DefaultDir), true)
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
	lease, _ := time.ParseDuration(os.Getenv("THALWEG_TEST_LEASE"))
	if at == "worker" {
		if err := local.Serve(ctx, home, local.WorkerOptions{Remote: client, MemoryBytes: 2 << 30, Cores: 1, Interpreter: "python3", Lease: lease}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	sum, err := local.Run(ctx, home, local.Options{
		ScriptPath: filepath.Join(place, "script.yaml"), Remote: client, Workspace: "main", MemoryBytes: memory(lease), Interpreter: "python3",
		Resume:     os.Getenv("THALWEG_TEST_RESUME") != "",
		Checkpoint: workertest.DieAt(at), Lease: lease, Tune: sharing(os.Getenv(sharedChecks) != ""),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(sum.Status)
	return 0
}

// sharedChecks asks a victim to share out the checks of small tables, too.
const sharedChecks = "THALWEG_TEST_SHARED_CHECKS"

func sharing(wanted bool) func(*budget.Budget) {
	if !wanted {
		return nil
	}
	return func(b *budget.Budget) { b.Slots, b.Cores, b.SmallBytes = 2, 2, 0 }
}

// memory is a victim's: several at work in one directory share it.
func memory(lease time.Duration) int64 {
	if lease > 0 {
		return 2 << 30
	}
	return 512 << 20
}
