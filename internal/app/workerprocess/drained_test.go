package workerprocess

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/queue"
)

// lastMoment gives a hint although its receiver has been asked to begin nothing more.
type lastMoment struct {
	queue.Queue
	asked func()
	back  int
}

func (q *lastMoment) Receive(context.Context) (queue.Delivery, error) {
	q.asked()
	return queue.Delivery{Back: func(ctx context.Context) error {
		q.back++
		return ctx.Err()
	}}, nil
}

// A worker that drains begins no batch whose hint comes at that moment.
func TestDrainedGivesBackTheLastHint(t *testing.T) {
	t.Parallel()
	q := &lastMoment{asked: func() {}}
	d := newDrained(q)
	_, err := d.Receive(t.Context())
	require.NoError(t, err)
	q.asked = d.close
	_, err = d.Receive(t.Context())
	require.ErrorIs(t, err, queue.ErrClosed)
	require.Equal(t, 1, q.back)
}
