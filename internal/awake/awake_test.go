package awake_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/awake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAClockStandsStillWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	now := time.Now()
	c := awake.New(time.Second, func() time.Time { return now })
	for _, step := range []struct{ passes, want time.Duration }{
		{0, 0}, {time.Second, time.Second}, {2 * time.Second, 3 * time.Second}, {time.Hour, 5 * time.Second}, {-time.Hour, 5 * time.Second}, {time.Second, 6 * time.Second},
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
