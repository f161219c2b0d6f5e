package metrics_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"thalweg/internal/app/worker"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/sandbox"
)

// TestMain makes the test binary a worker's slot where it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(serveSlot())
	}
	os.Exit(m.Run())
}

// diesWhen names a file: the slot dies when it is there.
const diesWhen = "THALWEG_TEST_DIES_WHEN"

func serveSlot() int {
	if path := os.Getenv(diesWhen); path != "" {
		go func() {
			for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
				if _, err := os.Stat(path); err == nil {
					os.Exit(3)
				}
			}
		}()
	}
	conn, err := sandbox.Inherited()
	if err == nil {
		err = worker.ServeSlot(conn, func(json.RawMessage, sandbox.Parent) (*remote.Client,
			error) {
			return remote.New(remote.Config{}), nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
