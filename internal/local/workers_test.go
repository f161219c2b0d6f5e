package local_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/effort"
	"thalweg/internal/state"
)

// crowd is some processes at work on the run of one directory: the first one
// begins it, or resumes it when it has been killed, the others are workers.
type crowd struct {
	t    *testing.T
	dir  string
	said lockedBuffer
	all  []*member
}

type member struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	err   error
}

// lockedBuffer takes what several processes say.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts the member at a place; false if the run is complete.
func (c *crowd) start(i int) bool {
	mode, resume := "worker", false
	if i == 0 {
		run, begun := lastRun(c.t, c.dir)
		if begun && run.Status == state.Complete {
			return false
		}
		mode, resume = "run", begun
	}
	m := &member{cmd: victimCmd(c.t, c.dir, mode, resume), ended: make(chan struct{})}
	m.cmd.Env = append(m.cmd.Env, "THALWEG_TEST_LEASE=3s")
	m.cmd.Stdout, m.cmd.Stderr = &c.said, &c.said
	require.NoError(c.t, m.cmd.Start())
	go func() {
		defer close(m.ended)
		m.err = m.cmd.Wait()
	}()
	c.all[i] = m
	return true
}

func (m *member) killed() bool { return m.endedBy(syscall.SIGKILL) }

func (m *member) endedBy(signal syscall.Signal) bool {
	status, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// TestChaosWorkersKilledAtAnyMoment has several processes work on one run, kills them at
// random and starts them again. What comes of the run is what comes of it
// undisturbed, byte for byte, and nothing is left over.
func TestChaosWorkersKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	want := undisturbed(t)
	trials := effort.Of(1, 2, 200)
	kills := 0
	for trial := range trials {
		seed := uint64(trial)
		n := crowdTrial(t, seed, 2+2*(trial%2), want)
		kills += n
		if effort.All() && trial%10 == 9 {
			t.Logf("%d trials equal to the undisturbed bytes, %d processes killed", trial+1, kills)
		}
	}
	require.Positive(t, kills)
}

// crowdTrial is one run with so many processes; it returns how many were killed.
func crowdTrial(t *testing.T, seed uint64, processes int, want map[string]string) (kills int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	c := &crowd{t: t, dir: crashInputs(t), all: make([]*member, processes)}
	about := func() string {
		return fmt.Sprintf("seed %d, %d processes, %d killed\n%s", seed, processes, kills, c.said.String())
	}
	for i := range c.all {
		c.start(i)
	}
	defer func() {
		for _, m := range c.all {
			_ = m.cmd.Process.Kill()
			<-m.ended
		}
	}()
	for range 2 + rng.IntN(2*processes) {
		i := rng.IntN(processes)
		wait := time.NewTimer(time.Duration(rng.IntN(500)) * time.Millisecond)
		select {
		case <-wait.C:
		case <-c.all[0].ended: // it is through, or was killed and the run was complete
		}
		_ = c.all[i].cmd.Process.Kill()
		<-c.all[i].ended
		if c.all[i].killed() {
			kills++
		} else if i != 0 {
			require.NoError(t, c.all[i].err, about())
		}
		if !c.start(i) {
			break
		}
	}
	<-c.all[0].ended
	if run, ok := lastRun(t, c.dir); !c.all[0].killed() && run.Status != state.Complete {
		require.True(t, ok, about())
		require.NoError(t, c.all[0].err, about())
	}
	if run, _ := lastRun(t, c.dir); run.Status != state.Complete {
		require.True(t, c.start(0))
		<-c.all[0].ended
		require.NoError(t, c.all[0].err, about())
	}
	for _, m := range c.all[1:] { // told to end, they end
		require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
		<-m.ended
		if !m.endedBy(syscall.SIGTERM) { // it did not listen yet: it was started a moment ago
			require.NoError(t, m.err, about())
		}
	}
	require.Equal(t, want, outputs(t, c.dir), about())
	requireDoneOnce(t, c.dir)
	return kills
}

// requireDoneOnce checks that each batch of the run has succeeded once.
func requireDoneOnce(t *testing.T, dir string) {
	t.Helper()
	ctx := context.Background()
	home := openHome(t, dir)
	defer func() { require.NoError(t, home.Close()) }()
	nodes, err := home.State.Nodes(ctx, state.RunKey{Workspace: "main", Run: 1})
	require.NoError(t, err)
	for _, n := range nodes {
		require.Equal(t, state.Succeeded, n.Status, n.Name)
		attempts, err := state.All(ctx, home.State.Attempts, n.NodeKey)
		require.NoError(t, err)
		done := map[int]int{}
		for _, a := range attempts {
			if a.Status == state.Succeeded {
				done[a.Batch]++
			}
		}
		require.Len(t, done, n.BatchesTotal, n.Name)
		for batch, times := range done {
			require.Equal(t, 1, times, "%s batch %d", n.Name, batch)
		}
	}
	runs, err := os.ReadDir(dir + "/.thalweg/remote")
	require.NoError(t, err)
	for _, r := range runs {
		require.False(t, strings.HasPrefix(r.Name(), "main-"), "copies of remote inputs are gone")
	}
}
