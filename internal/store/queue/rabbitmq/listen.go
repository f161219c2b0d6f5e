package rabbitmq

import (
	"context"
	"crypto/rand"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// Listen calls heard with each signal of a run that processes send, one after the other, until ctx ends. The process
// takes no other part in the queue. A connection that breaks, or cannot be made, is renewed; signals that are sent
// meanwhile are lost. Listen fails with the context's error, or at once where the configuration cannot be right.
func Listen(ctx context.Context, cfg Config, heard func(queue.Signal)) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	id := rand.Text()
	l := newLink(cfg, "listener")
	l.setup = func(_ context.Context, s *session) (err error) {
		if s.watch, err = l.channel(s); err != nil {
			return err
		}
		if err := cfg.declareSignals(s.watch); err != nil {
			return err
		}
		return l.listen(s, s.watch, id, func(d amqp.Delivery) {
			kind, run, err := decodeSignal(d.Body)
			if err == nil && run != (state.RunKey{}) { // not of hints, and of no later version
				heard(queue.Signal{RunKey: run, Kind: queue.SignalKind(kind)})
			}
		})
	}
	l.run(ctx)
	return context.Cause(ctx)
}
