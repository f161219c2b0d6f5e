package python

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/awake"
)

// A limit of time is for what a process does with the time that it has.
func TestStopwatch(t *testing.T) {
	t.Parallel()
	const step = 100 * time.Millisecond
	for name, c := range map[string]struct {
		state   byte
		passes  time.Duration // between two looks
		uses    time.Duration // of a processor, then
		spent   time.Duration // of ten looks
		stopped time.Duration
	}{
		"it computes":                        {'R', step, step, 10 * step, 0},
		"it computes in several threads":     {'R', step, 4 * step, 10 * step, 0},
		"it gets a tenth of a processor":     {'R', step, step / 10, step, 0},
		"it sleeps":                          {'S', step, 0, 10 * step, 0},
		"it waits for a disk":                {'D', step, 0, 10 * step, 0},
		"it is stopped":                      {'T', step, 0, 0, 10 * step},
		"it is looked at by a debugger":      {'t', step, 0, 0, 10 * step},
		"all processes were stopped":         {'S', time.Hour, 0, 20 * step, 0},
		"nobody knows":                       {0, step, 0, 10 * step, 0},
		"the machine was, while it computes": {'R', time.Hour, step, 10 * step, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, used := time.Now(), time.Duration(0)
			w := &stopwatch{clock: awake.New(step, func() time.Time { return now }),
				state: func() byte { return c.state }, cpu: func() time.Duration { return used }}
			for range 10 {
				now, used = now.Add(c.passes), used+c.uses
				w.look()
			}
			require.Equal(t, c.spent, w.spent)
			require.Equal(t, c.stopped, w.stopped)
		})
	}
}
