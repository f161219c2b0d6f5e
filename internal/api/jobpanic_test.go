package api

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/progress"
	"thalweg/internal/test/effort"
)

// A mistake in a job ends the job only.
func TestAJobThatPanics(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	j := newJobs()
	defer j.close()
	fail := func(err error) *Problem { return problem(err, func(text string) string { return text }) }
	ann := asker{needs: access.Anyone}
	one, err := j.begin(ann, "test", fail, func(context.Context) (any, error) { panic("no such luck") })
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, one, err = j.find(ann, one.ID)
		return err == nil && one.Ended != nil
	}, effort.Patience, time.Millisecond)
	require.Equal(t, jobFailed, one.Status)
	require.Equal(t, fault.Bug, one.Problem.Kind)
}

// The file of a job goes with its result.
func TestFilesOfJobsAreForgotten(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	j := newJobs()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	ann := asker{needs: access.Anyone}
	one, err := j.begin(ann, "test", nil, func(context.Context) (any, error) { return &jobFile{content: f}, nil })
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, one, err = j.find(ann, one.ID)
		return err == nil && one.Ended != nil
	}, effort.Patience, time.Millisecond)
	j.forget(time.Now())
	_, err = f.Stat()
	require.NoError(t, err)
	j.close()
	_, err = f.Stat()
	require.ErrorIs(t, err, os.ErrClosed)
}

// A job says how far it is while it is at work, and no more once it has ended.
func TestProgressOfJobs(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	j := newJobs()
	defer j.close()
	ann := asker{needs: access.Anyone}
	told, end := make(chan context.Context), make(chan struct{})
	now := progress.Progress{Phase: "writing the rows", Done: 1, Of: 3, Unit: "rows", Bytes: 10}
	one, err := j.begin(ann, "test", nil, func(ctx context.Context) (any, error) {
		progress.Tell(ctx, now)
		told <- ctx
		<-end
		return "all", nil
	})
	require.NoError(t, err)
	require.Nil(t, one.Progress)
	ctx := <-told
	_, one, err = j.find(ann, one.ID)
	require.NoError(t, err)
	require.Equal(t, &now, one.Progress)
	close(end)
	require.Eventually(t, func() bool {
		_, one, err = j.find(ann, one.ID)
		return err == nil && one.Ended != nil
	}, effort.Patience, time.Millisecond)
	progress.Tell(ctx, now)
	_, one, err = j.find(ann, one.ID)
	require.NoError(t, err)
	require.Nil(t, one.Progress)
	require.Equal(t, "all", one.Result)
}

// Who asks for a file while it is forgotten gets it, or hears that it is not there.
func TestFilesThatAreJustForgotten(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	j := newJobs()
	defer j.close()
	ann := asker{needs: access.Anyone}
	at := time.Now().Add(-2 * jobKeptFor)
	for range 1000 {
		content, err := os.Open(os.DevNull)
		require.NoError(t, err)
		one := &job{Job: Job{ID: "x", Status: jobDone, Ended: &at, Result: &jobFile{content: content}}, by: ann}
		j.mu.Lock()
		j.all[one.ID] = one
		j.mu.Unlock()
		var forgets sync.WaitGroup
		forgets.Go(func() { j.forget(time.Now()) })
		_, f, err := j.file(ann, "x")
		forgets.Wait()
		if err != nil {
			require.Equal(t, fault.NotFound, fault.CodeOf(err), "%v", err)
			continue
		}
		require.NoError(t, f.Close())
	}
}
