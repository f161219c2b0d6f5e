package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// How the broker is asked for hints.
const (
	// lookAgain is the interval at which a waiting receiver looks even if it was told of no hints.
	lookAgain = 5 * time.Second
	// holdFor is the time for which a hint is held after its receiver has left.
	holdFor = 200 * time.Millisecond
)

// Receive implements queue.Queue.
func (q *Queue) Receive(ctx context.Context) (queue.Delivery, error) {
	if err := q.alive(ctx); err != nil {
		return queue.Delivery{}, fmt.Errorf("receive hint: %w", err)
	}
	q.wanted.Add(1)
	defer q.wanted.Add(-1)
	q.bell.ring()
	select {
	case d := <-q.out:
		return d, nil
	case <-ctx.Done():
		return queue.Delivery{}, fmt.Errorf("receive hint: %w", ctx.Err())
	case <-q.ctx.Done():
		return queue.Delivery{}, fmt.Errorf("receive hint: %w", queue.ErrClosed)
	}
}

// pump gives hints to receivers that wait, one after the other. It pulls none
// for which there is no receiver.
func (q *Queue) pump() {
	for nth := uint64(0); ; {
		rung := q.bell.next()
		if q.wanted.Load() > 0 {
			if d, ok := q.here.Take(); ok {
				q.hand(d, nil, func() { _ = q.here.Publish(q.ctx, d.Hint) }) // closed: nobody waits
				continue
			}
			if q.fetch(nth) {
				nth++
				continue
			}
		}
		select {
		case <-q.ctx.Done():
			return
		case <-rung:
		case <-time.After(lookAgain):
		}
	}
}

// hand gives a delivery to a receiver, or back if none has come for a while.
func (q *Queue) hand(d queue.Delivery, ended <-chan struct{}, giveBack func()) {
	hold := time.NewTicker(holdFor)
	defer hold.Stop()
	for {
		select {
		case q.out <- d:
			return
		case <-q.ctx.Done(): // the broker gives it to another
			return
		case <-ended:
			return
		case <-hold.C:
			if q.wanted.Load() == 0 {
				giveBack()
				return
			}
		}
	}
}

// fetch pulls a hint and gives it to a receiver; false if there is none.
func (q *Queue) fetch(nth uint64) bool {
	q.sub.mu.Lock()
	s := q.sub.now
	q.sub.mu.Unlock()
	if s == nil {
		return false
	}
	for _, p := range queue.LevelsFor(nth) {
		m, ok, err := q.get(s, q.cfg.hintsOf(p))
		if err != nil {
			return false // the connection is renewed
		}
		if ok {
			q.deliver(s, m)
			return true
		}
	}
	return false
}

func (q *Queue) get(s *session, name string) (m amqp.Delivery, ok bool, err error) {
	defer func(began time.Time) { q.cfg.Observe(OpGet, time.Since(began), err) }(time.Now())
	defer s.guarded()()
	m, ok, err = s.pull.Get(name, false)
	return m, ok, err
}

// deliver gives a message to a receiver. One that cannot be read is dropped, or
// set aside if it is of a later version.
func (q *Queue) deliver(s *session, m amqp.Delivery) {
	h, err := decodeHint(m.Body)
	one := &settling{Queue: q, s: s, message: m}
	switch {
	case errors.Is(err, errNewer):
		q.later(m)
		one.settle(func() error { return m.Ack(false) })
	case err != nil:
		if q.spoiled() == 1 {
			q.cfg.Logger.Warn("messages in the queue of hints cannot be read; they are dropped", "queue", m.RoutingKey,
				"error", err)
		}
		one.settle(func() error { return m.Ack(false) })
	default:
		d := queue.Delivery{Hint: h, Done: one.done, Back: one.back}
		q.hand(d, s.ended, func() { one.settle(func() error { return m.Nack(false, true) }) })
	}
}

// settling is a message that was received.
type settling struct {
	*Queue
	s       *session
	message amqp.Delivery
	settled atomic.Bool
}

// settle tells the broker what becomes of a message, once. If it does not hear
// that, it gives the message again: nobody can do anything about it.
func (o *settling) settle(how func() error) {
	if o.settled.Swap(true) {
		return
	}
	if err := how(); err != nil {
		o.counts.unsettled.Add(1)
		o.s.kill()
	}
}

func (o *settling) done(context.Context) error {
	o.settle(func() error { return o.message.Ack(false) })
	return nil
}

// back publishes the message again behind all others: one that is only given
// back would be the next one again.
func (o *settling) back(ctx context.Context) error {
	if o.settled.Load() {
		return nil
	}
	o.counts.handed.Add(1)
	err := o.send(ctx, []message{{o.message.RoutingKey, o.message.Body}})
	o.settle(func() error {
		if err != nil {
			return o.message.Nack(false, true)
		}
		return o.message.Ack(false)
	})
	if err != nil {
		return fmt.Errorf("hand a hint on: %w", err)
	}
	if err := o.signal(ctx, kindHints, state.RunKey{}); err != nil {
		return fmt.Errorf("hand a hint on: %w", err)
	}
	return nil
}
