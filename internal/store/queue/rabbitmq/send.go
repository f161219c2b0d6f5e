package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/store/queue"
)

// Send signals from a process that takes no part in the queue, such as one that
// gives an order and ends. It returns when the broker has the signal; where no
// process has ever been, nobody hears it, and that is an error.
func Send(ctx context.Context, cfg Config, signal queue.Signal) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return err
	}
	body, err := encodeSignal(int8(signal.Kind), signal.RunKey)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	l := newLink(cfg, "orders")
	defer l.all.Wait()
	l.setup = func(_ context.Context, s *session) (err error) {
		if s.publish, err = l.channel(s); err != nil {
			return err
		}
		return s.publish.Confirm(false)
	}
	var s *session
	for _, host := range cfg.Hosts {
		began := time.Now()
		s, err = l.connect(ctx, host)
		cfg.Observe(OpConnect, time.Since(began), err)
		if err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("signal: %w", unreachable(err))
	}
	defer l.close(s)
	defer s.guarded()()
	sent, err := s.publish.PublishWithDeferredConfirmWithContext(ctx, cfg.signals(), "", false, false,
		amqp.Publishing{ContentType: "application/json", Body: body, Type: "signal", AppId: rand.Text()})
	if err == nil {
		var taken bool
		if taken, err = sent.WaitContext(ctx); err == nil && !taken {
			err = errors.New("the broker has not taken the signal")
		}
	}
	if err != nil {
		return fmt.Errorf("signal: %w", unreachable(err))
	}
	return nil
}
