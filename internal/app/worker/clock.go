package worker

import (
	"context"
	"sync"

	"thalweg/internal/app/instance"
)

// keepTime sets the clock again and again, until what it answers with is called.
func (s *Server) keepTime(ctx context.Context) (done func()) {
	if s.Instance.Cassandra == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var loop sync.WaitGroup
	loop.Go(func() {
		instance.Every(ctx, instance.ClockEvery, func(ctx context.Context) {
			if err := s.Instance.Clock.Follow(ctx, s.Instance.Cassandra); err != nil && ctx.Err() == nil {
				s.opts.Logger.Debug("the clock of the state cannot be read", "error", err)
			}
		})
	})
	return func() {
		cancel()
		loop.Wait()
	}
}
