package api

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/test/effort"
)

// A mistake in a job ends the job only.
func TestAJobThatPanics(t *testing.T) {
	t.Parallel()
	j := newJobs()
	defer j.close()
	fail := func(err error) *Problem { return problem(err, func(text string) string { return text }) }
	one, err := j.begin("ann", "test", fail, func(context.Context) (any, error) { panic("no such luck") })
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, one, err = j.find("ann", one.ID)
		return err == nil && one.Ended != nil
	}, effort.Patience, time.Millisecond)
	require.Equal(t, jobFailed, one.Status)
	require.Equal(t, fault.Bug, one.Problem.Kind)
}
