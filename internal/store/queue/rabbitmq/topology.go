package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/store/queue"
)

// Limits of what is in the broker.
const (
	// limitWaiting limits the waiting hints of a priority. More are refused; the oldest are not dropped,
	// because they are the next ones.
	limitWaiting = 100_000
	// limitDeliveries limits how often a hint is delivered to a process that dies or loses its connection;
	// then it is dropped. State still knows the batch.
	limitDeliveries = 20
	// limitSignals and signalLife bound what waits for a process that does not
	// look: signals are of this moment.
	limitSignals = 1_000
	signalLife   = 10 * time.Second
)

func (c Config) hintsOf(p queue.Priority) string {
	name := "normal"
	switch p {
	case queue.High:
		name = "high"
	case queue.Low:
		name = "low"
	}
	return c.Prefix + ".hints." + name
}

func (c Config) signals() string { return c.Prefix + ".signals" }

// declare makes what is shared, where it is not there yet.
func (c Config) declare(ch *amqp.Channel) error {
	for _, p := range queue.Levels() {
		if _, err := c.declareHints(ch, p); err != nil {
			return fmt.Errorf("declare queue %s: %w", c.hintsOf(p), err)
		}
	}
	return c.declareSignals(ch)
}

func (c Config) declareSignals(ch *amqp.Channel) error {
	if err := ch.ExchangeDeclare(c.signals(), amqp.ExchangeFanout, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare exchange %s: %w", c.signals(), err)
	}
	return nil
}

func (c Config) declareHints(ch *amqp.Channel, p queue.Priority) (amqp.Queue, error) {
	return ch.QueueDeclare(c.hintsOf(p), true, false, false, false, amqp.Table{
		amqp.QueueTypeArg:     amqp.QueueTypeQuorum,
		amqp.QueueMaxLenArg:   int64(limitWaiting),
		amqp.QueueOverflowArg: amqp.QueueOverflowRejectPublish,
		"x-delivery-limit":    int64(limitDeliveries),
	})
}

// preparePublisher opens the channel for hints and signals.
func (q *Queue) preparePublisher(_ context.Context, s *session) (err error) {
	if s.publish, err = q.pub.channel(s); err != nil {
		return err
	}
	if err := q.cfg.declare(s.publish); err != nil {
		return err
	}
	if err := s.publish.Confirm(false); err != nil {
		return fmt.Errorf("ask for confirmations: %w", err)
	}
	s.stuck, s.known = make(chan struct{}), make(chan struct{})
	returns, blocked := s.publish.NotifyReturn(make(chan amqp.Return)), s.conn.NotifyBlocked(make(chan amqp.Blocking))
	q.pub.all.Go(func() {
		for {
			select {
			case _, ok := <-returns:
				if !ok {
					return
				}
				q.counts.returned.Add(1)
				s.kill() // no queue has it: the next session declares them
			case <-s.known:
			}
		}
	})
	q.pub.all.Go(func() {
		for b := range blocked {
			if !b.Active { // begin afresh
				s.kill()
				continue
			}
			q.cfg.Logger.Warn("the broker accepts nothing for now; runs go on from what is in state",
				"reason", b.Reason)
			s.block()
		}
	})
	return nil
}

// prepareReceiver opens the channels for hints that are taken, and for signals.
func (q *Queue) prepareReceiver(_ context.Context, s *session) (err error) {
	if s.pull, err = q.sub.channel(s); err != nil {
		return err
	}
	if s.watch, err = q.sub.channel(s); err != nil {
		return err
	}
	if err := q.cfg.declare(s.watch); err != nil {
		return err
	}
	return q.sub.listen(s, s.watch, q.id, q.heard)
}

// listen hears what is signalled, until the session ends. id is that of the listener.
func (l *link) listen(s *session, ch *amqp.Channel, id string, heard func(amqp.Delivery)) error {
	name := l.cfg.signals() + "." + id
	_, err := ch.QueueDeclare(name, false, true, true, false, amqp.Table{
		amqp.QueueMaxLenArg: int64(limitSignals), amqp.QueueMessageTTLArg: signalLife.Milliseconds()})
	if err != nil {
		return fmt.Errorf("declare queue %s: %w", name, err)
	}
	if err := ch.QueueBind(name, "", l.cfg.signals(), false, nil); err != nil {
		return fmt.Errorf("bind queue %s: %w", name, err)
	}
	signals, err := ch.Consume(name, "", true, true, false, false, nil)
	if err != nil {
		return fmt.Errorf("listen to signals: %w", err)
	}
	l.all.Go(func() {
		for d := range signals {
			heard(d)
		}
		s.kill() // also where the broker has ended only the listening
	})
	return nil
}
