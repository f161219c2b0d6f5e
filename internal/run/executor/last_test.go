package executor_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/run/executor"
	"thalweg/internal/store/queue"
)

// endsWhile is a queue that gives a hint at the moment at which its receiver ends.
type endsWhile struct {
	queue.Queue
	end  func()
	back int
}

func (q *endsWhile) Receive(context.Context) (queue.Delivery, error) {
	q.end()
	return queue.Delivery{Back: func(ctx context.Context) error {
		q.back++
		return ctx.Err()
	}}, nil
}

// A hint that comes as a worker ends is there for others at once, not when the connection closes.
func TestAHintAtTheEndGoesBack(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	q := &endsWhile{end: end}
	require.NoError(t, executor.New(executor.Config{Queue: q, Slots: 1, Owner: "w"}).Work(ctx))
	require.Equal(t, 1, q.back)
}
