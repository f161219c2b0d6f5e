package awake_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/base/awake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAClockStandsStillWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := awake.New(time.Second, func() time.Time { return now })
	for _, step := range []struct{ passes, want time.Duration }{
		{0, 0}, {time.Second, time.Second}, {2 * time.Second, 3 * time.Second}, {time.Hour, 5 * time.Second},
		{-time.Hour, 5 * time.Second}, {time.Second, 6 * time.Second},
	} {
		now = now.Add(step.passes)
		require.Equal(t, step.want, c.Look())
	}
}

func TestWithTimeout(t *testing.T) {
	t.Parallel()
	ctx, stop := awake.WithTimeout(t.Context(), time.Nanosecond)
	defer stop()
	<-ctx.Done()
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
	child, end := context.WithCancel(ctx)
	defer end()
	<-child.Done()
	require.Equal(t, context.DeadlineExceeded, child.Err())

	mine := errors.New("mine")
	ctx, stop = awake.WithTimeoutCause(t.Context(), time.Nanosecond, mine)
	defer stop()
	<-ctx.Done()
	require.Equal(t, context.DeadlineExceeded, ctx.Err())
	require.Equal(t, mine, context.Cause(ctx))

	ctx, stop = awake.WithTimeout(t.Context(), time.Hour)
	require.NoError(t, ctx.Err())
	stop()
	<-ctx.Done()
	require.Equal(t, context.Canceled, ctx.Err())
	parent, fail := context.WithCancelCause(t.Context())
	ctx, stop = awake.WithTimeout(parent, time.Hour)
	defer stop()
	fail(mine)
	<-ctx.Done()
	require.Equal(t, context.Canceled, ctx.Err())
	require.Equal(t, mine, context.Cause(ctx))
}

// What has a context may wait without using up the time that it has, nor that of those around it.
func TestWaitsAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, stop := awake.WithTimeout(t.Context(), time.Minute)
		defer stop()
		inner, end := awake.WithTimeout(outer, time.Second)
		defer end()
		passes := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		one, two := awake.Waits(inner), awake.Waits(inner)
		passes(time.Hour)
		one()
		one()
		passes(time.Hour)
		two()
		passes(900 * time.Millisecond)
		require.NoError(t, inner.Err())
		passes(200 * time.Millisecond)
		require.Equal(t, context.DeadlineExceeded, inner.Err())
		require.NoError(t, outer.Err())
		passes(time.Minute)
		require.Equal(t, context.DeadlineExceeded, outer.Err())
		awake.Waits(t.Context())() // without a limit
	})
}
