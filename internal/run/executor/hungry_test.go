package executor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/queuetest/hub"
)

// Whatever keeps hints from arriving, the processes that could work look for work themselves:
// here nothing else would before an hour.
func TestHintsThatDoNotArrive(t *testing.T) {
	effort.Raced(t)
	t.Parallel()
	for name, trouble := range map[string]func(ctx context.Context, h *hub.Hub, run state.RunKey){
		"stolen": func(ctx context.Context, h *hub.Hub, _ state.RunKey) {
			thief := h.Join()
			for {
				if _, err := thief.Receive(ctx); err != nil {
					return
				}
			}
		},
		"behind those that nobody can use": func(ctx context.Context, h *hub.Hub, run state.RunKey) {
			other := h.Join()
			hint := strays(run)[0]
			hint.Workspace = elsewhere
			for range 100_000 {
				_ = other.Publish(ctx, hint)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := patientContext(t)
			b, broker := newBundle(t), hub.New(hub.Faults{})
			fake := &fakeJob{batches: map[string]int{"a": 60, "b": 20, "c": 5}}
			var meddler sync.WaitGroup
			meddling, over := context.WithCancel(ctx)
			if name == "stolen" {
				meddler.Go(func() { trouble(meddling, broker, b.run) })
			} else {
				trouble(ctx, broker, b.run)
			}
			var all []*process
			var stops []func() error
			for i := range 2 {
				p := newProcess(b, fmt.Sprint("process ", i), broker.Join(), func(state.RunKey) job.Job { return fake })
				p.coor.Grace, p.exec.Runs = time.Hour, picky{p}
				p.feeds = true
				all = append(all, p)
				stops = append(stops, p.start(ctx, b.run))
			}
			for _, p := range all {
				require.Equal(t, state.Complete, <-p.ended)
			}
			for _, stop := range stops {
				require.NoError(t, stop())
			}
			over()
			meddler.Wait()
			for node, batches := range fake.batches {
				require.Len(t, b.attempts(t, node), batches)
			}
		})
	}
}

// elsewhere is the workspace of runs that only others can work on.
const elsewhere = "elsewhere"

// picky is a process that leaves runs to others.
type picky struct{ *process }

func (p picky) Use(ctx context.Context, key state.RunKey) (executor.Run, func(), error) {
	if key.Workspace == elsewhere {
		return nil, nil, executor.ErrElsewhere
	}
	return p.process.Use(ctx, key)
}
