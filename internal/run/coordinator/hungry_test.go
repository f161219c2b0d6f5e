package coordinator_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/queuetest/hub"
	"thalweg/internal/test/runtest"
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
			node := state.NodeKey{RunKey: run, Node: "a"}
			node.Workspace = elsewhere
			hint := queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node}}}
			for range 100_000 {
				_ = other.Publish(ctx, hint)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := runtest.Patient(t)
			b, broker := runtest.New(t), hub.New(hub.Faults{})
			fake := &runtest.Job{Batches: map[string]int{"a": 60, "b": 20, "c": 5}}
			var meddler sync.WaitGroup
			meddling, over := context.WithCancel(ctx)
			if name == "stolen" {
				meddler.Go(func() { trouble(meddling, broker, b.Run) })
			} else {
				trouble(ctx, broker, b.Run)
			}
			var all []*runtest.Process
			var stops []func() error
			for i := range 2 {
				p := runtest.NewProcess(b, fmt.Sprint("process ", i), broker.Join(),
					func(state.RunKey) job.Job { return fake })
				p.Coor.Grace, p.Exec.Runs = time.Hour, picky{p}
				p.Feeds = true
				all = append(all, p)
				stops = append(stops, p.Start(ctx, b.Run))
			}
			for _, p := range all {
				require.Equal(t, state.Complete, <-p.Ended)
			}
			for _, stop := range stops {
				require.NoError(t, stop())
			}
			over()
			meddler.Wait()
			for node, batches := range fake.Batches {
				require.Len(t, b.Attempts(t, node), batches)
			}
		})
	}
}

// elsewhere is the workspace of runs that only others can work on.
const elsewhere = "elsewhere"

// picky is a process that leaves runs to others.
type picky struct{ *runtest.Process }

func (p picky) Use(ctx context.Context, key state.RunKey) (executor.Run, func(), error) {
	if key.Workspace == elsewhere {
		return nil, nil, executor.ErrElsewhere
	}
	return p.Process.Use(ctx, key)
}
