package instance

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

// A process that serves for days waits for services that are away, says so once and then seldom, and
// begins when they are there. What stays wrong until somebody acts ends it, and so does being told to.
func TestOutageIsWaitedFor(t *testing.T) {
	t.Parallel()
	away := func(text string) error {
		return &fault.Error{Kind: fault.Environment, Retryable: true, Message: text, Hint: "start it"}
	}
	wrong := &fault.Error{Kind: fault.Script, Message: "the password is wrong"}
	var log bytes.Buffer
	now := time.Now()
	o := &Outage{logger: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time { return now }}
	var pauses []time.Duration
	o.pause = func(d time.Duration) <-chan time.Time {
		pauses = append(pauses, d)
		now = now.Add(d)
		c := make(chan time.Time, 1)
		c <- now
		return c
	}
	tries := 0
	there := &Instance{}
	home, err := o.Open(t.Context(), func() (*Instance, error) {
		if tries++; tries < 20 {
			return nil, away("nobody answers")
		}
		return there, nil
	})
	require.NoError(t, err)
	require.Same(t, there, home)
	require.Equal(t, 1, strings.Count(log.String(), "nobody answers"), log.String())
	require.Contains(t, log.String(), "start it")
	require.Contains(t, log.String(), "the services of the cluster are there")
	require.Empty(t, o.Why())
	for i, d := range pauses {
		require.LessOrEqual(t, d, outageLongestPause)
		require.GreaterOrEqual(t, d, min(outageFirstPause<<min(i, 10), outageLongestPause)/2)
	}

	_, err = o.Open(t.Context(), func() (*Instance, error) { return nil, wrong })
	require.ErrorIs(t, err, wrong)

	drain := make(chan struct{})
	o.drain = drain
	o.pause = func(time.Duration) <-chan time.Time { close(drain); return nil }
	_, err = o.Open(t.Context(), func() (*Instance, error) { return nil, away("it is gone again") })
	require.ErrorIs(t, err, ErrToldToEnd)
	require.Equal(t, "it is gone again", o.Why())

	errLeave := errors.New("leave")
	ctx, leave := context.WithCancelCause(t.Context())
	leave(errLeave)
	o.drain = nil
	_, err = o.Open(ctx, func() (*Instance, error) { <-t.Context().Done(); return nil, errors.New("late") })
	require.ErrorIs(t, err, errLeave)
}
