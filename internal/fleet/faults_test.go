package fleet

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// directory is a cluster without services.
func directory(t *testing.T) services {
	return services{config: "state: {directory: " + t.TempDir() + "}\n"}
}

// pause waits, and says whether time is left.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// killing kills a worker every so often, as many times at most, and starts another.
func killing(ctx context.Context, f *fleet, most int) error {
	for range most {
		if !pause(ctx, time.Duration(300+f.random(3000))*time.Millisecond) {
			return nil
		}
		m := f.workers[f.random(len(f.workers))]
		if f.signal(m, syscall.SIGKILL) {
			if err := f.replace(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// beside has a fault happen while runs are made; it ends with them.
func beside(ctx context.Context, fault func(context.Context) error, runs func(context.Context) error) error {
	during, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- fault(during) }()
	err := runs(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// A cluster of one machine, without services: whoever is killed, others go on.
func TestKilledWorkersOfADirectory(t *testing.T) {
	t.Parallel()
	f := newFleet(t, directory(t), 3)
	tr, err := f.newTrial(t.Context(), sample{seed: 1, rows: 600, pace: 2 * time.Millisecond})
	require.NoError(t, err)
	err = beside(t.Context(), func(ctx context.Context) error { return killing(ctx, f, 3) }, func(ctx context.Context) error {
		return f.runs(ctx, []*trial{tr}, 2, 2, time.Now())
	})
	require.NoError(t, err)
}
