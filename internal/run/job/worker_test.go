package job_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

func TestOwnerNamesOneProcess(t *testing.T) {
	t.Parallel()
	me := job.Owner()
	require.Equal(t, me, job.Owner())
	require.False(t, job.Gone(me))
	host, rest, _ := strings.Cut(me, "/")
	pid, began, _ := strings.Cut(rest, "/")
	require.Equal(t, fmt.Sprint(os.Getpid()), pid)
	require.True(t, job.Gone(host+"/"+pid+"/1"+began), "another process had the number")
	require.False(t, job.Gone("another"+me), "nobody knows of other hosts")
	for _, odd := range []string{"", "pid-17-4711", host + "/x/1", host + "/0/1", host + "/-1/1"} {
		require.False(t, job.Gone(odd), odd)
	}
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	require.True(t, job.Gone(fmt.Sprintf("%s/%d/%s", host, cmd.Process.Pid, began)))
}

func TestGuardSaysWhereAPanicWas(t *testing.T) {
	t.Parallel()
	err := fault.Guard("executing batch 3", func() error { panicHere(); return nil })
	f := job.FailureOf(err, state.BatchKey{Batch: 3})
	require.Equal(t, fault.Bug, f.Kind)
	require.False(t, f.Retryable)
	require.Equal(t, "executing batch 3: panic: no such luck", f.Message)
	require.Contains(t, f.Detail, "panicHere")
	plain := errors.New("plain")
	require.Equal(t, plain, fault.Guard("", func() error { return plain }))
}

func panicHere() { panic("no such luck") }
