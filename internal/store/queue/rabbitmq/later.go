package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// What becomes of messages that a later version of this program wrote: nobody waits for them.
const (
	// laterLife is the time for which messages stay aside, for people who look at them. laterQueueLife is
	// that after which their unused queue is removed.
	laterLife      = 10 * time.Minute
	laterQueueLife = time.Hour
	// limitLater limits the messages that stay aside; limitAside limits those that wait for it. Others are
	// dropped.
	limitLater = 1_000
	limitAside = 100
	// laterSaid is the least time between two warnings of such messages.
	laterSaid = time.Minute
)

func (c Config) later() string { return c.Prefix + ".hints.later" }

// later sets a message of a later version aside, and waits for nothing: state knows the batch.
func (q *Queue) later(m amqp.Delivery) {
	q.counts.newer.Add(1)
	now := time.Now()
	q.counts.newerAt.Store(now.UnixNano())
	if now.Sub(q.saidLater) >= laterSaid {
		q.saidLater = now
		q.cfg.Logger.Warn("the queue of hints has messages of a later version of this program; they are set aside, "+
			"and runs go on from what is in state",
			"queue", m.RoutingKey, "so_far", q.counts.newer.Load(), "aside", q.cfg.later())
	}
	select {
	case q.aside <- m.Body:
	default:
	}
}

// setAside publishes what was set aside until the queue is closed. Where that cannot be done
// it is dropped.
func (q *Queue) setAside() {
	for {
		select {
		case <-q.ctx.Done():
			return
		case body := <-q.aside:
			if err := q.putLater(q.ctx, body); err != nil {
				q.cfg.Logger.Debug("messages of a later version are dropped", "error", err)
			}
		}
	}
}

// putLater publishes a message and those behind it, over a channel of its own: what the
// broker refuses ends only that.
func (q *Queue) putLater(ctx context.Context, body []byte) error {
	s, err := q.pub.session(ctx)
	if err != nil {
		return err
	}
	defer s.guarded()()
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	defer func() { _ = ch.Close() }() // the broker may have closed it
	if _, err := ch.QueueDeclare(q.cfg.later(), true, false, false, false, amqp.Table{
		amqp.QueueTypeArg:       amqp.QueueTypeQuorum,
		amqp.QueueMaxLenArg:     int64(limitLater),
		amqp.QueueMessageTTLArg: laterLife.Milliseconds(),
		amqp.QueueTTLArg:        laterQueueLife.Milliseconds(),
	}); err != nil {
		return fmt.Errorf("declare queue %s: %w", q.cfg.later(), err)
	}
	if err := ch.Confirm(false); err != nil { // what the broker has not confirmed is gone with the channel
		return fmt.Errorf("ask for confirms: %w", err)
	}
	for more := true; more; {
		message := amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent,
			Body: body, Type: "hint"}
		confirmed, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", q.cfg.later(), false, false, message)
		if err != nil {
			return err
		}
		if taken, err := confirmed.WaitContext(ctx); err != nil || !taken {
			return cmp.Or(err, errors.New("the broker has not taken the message"))
		}
		select {
		case body = <-q.aside:
		default:
			more = false
		}
	}
	return nil
}
