package local_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

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
	home, err := local.Open(ctx, local.DefaultDir, true)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer home.Close()
	client := remote.New(remote.Config{CAPath: os.Getenv("THALWEG_TEST_CA"), S3Endpoint: os.Getenv("THALWEG_TEST_S3"),
		SFTPKeys: map[string]string{"joe": os.Getenv("THALWEG_TEST_KEY")}, KnownHosts: os.Getenv("THALWEG_TEST_HOSTS")})
	defer client.Close()
	sum, err := local.Run(ctx, home, local.Options{
		ScriptPath: "script.yaml", Remote: client, Workspace: "main", MemoryBytes: 512 << 20, Interpreter: "python3",
		Resume:     os.Getenv("THALWEG_TEST_RESUME") != "",
		Checkpoint: workertest.DieAt(at),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(sum.Status)
	return 0
}
