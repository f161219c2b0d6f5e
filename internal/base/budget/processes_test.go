package budget

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

// The processor time of what a killed child had started is kept, though nobody waits for it, and hides nothing of later
// children.
func TestProcessorTimeOfOrphans(t *testing.T) {
	t.Parallel()
	var p Processes
	used := func() time.Duration {
		_, children, ok := p.Use()
		require.True(t, ok)
		return children.CPU
	}
	began := used()
	parent := exec.Command("sh", "-c", `sh -c 'while :; do :; done' & echo $!; wait`)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	orphan, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	defer func() { _ = syscall.Kill(orphan, syscall.SIGKILL) }() // it has ended, unless the test failed
	require.Eventually(t, func() bool { return used()-began > 300*time.Millisecond }, effort.Patience,
		10*time.Millisecond)
	seen := used()
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.NoError(t, syscall.Kill(orphan, syscall.SIGKILL))
	require.GreaterOrEqual(t, used(), seen)
	later := exec.Command("sh", "-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done")
	require.NoError(t, later.Run())
	took := later.ProcessState.UserTime() + later.ProcessState.SystemTime()
	require.Positive(t, took)
	require.GreaterOrEqual(t, used()-seen, took)
}
