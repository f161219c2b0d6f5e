package retrying

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
	"thalweg/internal/store/state"
)

// failing is a store whose calls fail for a time that passes in pauses only.
type failing struct {
	state.Store
	until, passed time.Duration
	err           error
}

func (f *failing) Run(context.Context, state.RunKey) (state.Run, error) {
	if f.passed < f.until {
		return state.Run{}, f.err
	}
	return state.Run{Status: state.Complete}, nil
}

func (f *failing) pause(ctx context.Context, d time.Duration) error {
	f.passed += d
	return ctx.Err()
}

// A state that is away for an hour is waited for by who asked for that, and said to be
// away once, and once to be back; others are told after a while, and so is who waits
// for what will not pass.
func TestAway(t *testing.T) {
	t.Parallel()
	gone := &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the servers are away"}
	for name, c := range map[string]struct {
		err    error
		within time.Duration
		fails  bool
	}{
		"who waits":                      {err: gone, within: Forever},
		"who does not":                   {err: gone, fails: true},
		"what is not known":              {err: state.ErrUnknown, within: Forever},
		"what nobody knows to pass":      {err: errors.New("odd"), within: Forever, fails: true},
		"what is decided":                {err: state.ErrConflict, within: Forever, fails: true},
		"what will not pass":             {err: fault.New(fault.Environment, "no"), within: Forever, fails: true},
		"who does not, and is not known": {err: state.ErrUnknown, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			f := &failing{until: time.Hour, err: c.err}
			s := New(f, Config{Within: c.within, Pause: f.pause, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			run, err := s.Run(t.Context(), state.RunKey{})
			if c.fails {
				require.ErrorIs(t, err, c.err)
				require.Less(t, f.passed, WithinDefault+longestPause)
				return
			}
			require.NoError(t, err)
			require.Equal(t, state.Complete, run.Status)
			require.Equal(t, 1, strings.Count(log.String(), "could not be reached"), log.String())
			require.Equal(t, 1, strings.Count(log.String(), "is reached again"), log.String())
		})
	}
}

// Who waits for ever goes with its context.
func TestAwayUntilTheEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &failing{until: time.Hour, err: state.ErrUnknown}
	s := New(f, Config{Within: Forever, Pause: func(ctx context.Context, d time.Duration) error {
		if f.passed > time.Minute {
			cancel()
		}
		return f.pause(ctx, d)
	}})
	_, err := s.Run(ctx, state.RunKey{})
	require.ErrorIs(t, err, state.ErrUnknown)
}
