package cassandra

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state/retrying"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest/hostile"
)

// A node of three is killed in the middle of claims and commits, comes back,
// and another one is killed: whatever was said to be done is there.
func TestClusterChaosNodesKilled(t *testing.T) {
	effort.Unraced(t)
	services := os.Getenv("THALWEG_SERVICES")
	if !cluster() || services == "" {
		t.Skip("kills nodes of a cluster of its own: scripts/chaos-cluster")
	}
	cfg := newKeyspace(t)
	s, err := Open(context.Background(), Config{Config: cfg})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var done atomic.Int64
	killed := make(chan error)
	go func() {
		defer close(killed)
		for i, node := range []string{"cassandra-2", "cassandra-3"} {
			until(&done, int64(killBatches*(3*i+1)/6))
			killed <- kill(services, node)
			until(&done, int64(killBatches*(3*i+2)/6))
			killed <- startAgain(t, node)
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for err := range killed {
			if err != nil {
				t.Error(err)
			}
		}
	}()
	work(t, hostile.Insist(retrying.New(s, retrying.Config{})), "killed", killBatches, &done)
	<-ended
}

const killBatches = 1_200

// until waits for so many batches.
func until(done *atomic.Int64, n int64) {
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for done.Load() < n {
		<-ticker.C
	}
}

// startAgain starts a service that was killed: its ports may be taken a moment longer.
func startAgain(t *testing.T, name string) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for left := 60; ; left-- {
		out, err := exec.Command("../../../../scripts/services", "start", name).CombinedOutput() //nolint:gosec // the test's own
		t.Logf("%s", out)
		if err == nil || left == 0 {
			return err
		}
		<-ticker.C
	}
}

// kill ends a service as a power cut would.
func kill(services, name string) error {
	text, err := os.ReadFile(filepath.Join(services, name, "pid")) //nolint:gosec // the test's own folder
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}
