package rabbitmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/inproc"
	"thalweg/internal/store/state"
)

// pageHints is the number of hints that are published before one wait for their confirmations.
const pageHints = 500

// Queue is a queue that processes share.
type Queue struct {
	cfg    Config
	id     string // of this process, among those that listen to signals
	here   *inproc.Queue
	pub    *link
	sub    *link
	ctx    context.Context // ends when the queue is closed
	cancel context.CancelFunc
	all    sync.WaitGroup
	bell   bell
	wanted atomic.Int64 // receivers that wait
	out    chan queue.Delivery
	asking sync.Mutex  // one question at a time on session.watch
	told   atomic.Bool // that the broker cannot be reached
	counts counts

	aside     chan []byte // bodies of messages of later versions
	saidLater time.Time   // when it was said that there are some; pump's own
}

var _ queue.Queue = (*Queue)(nil)

// counts counts the messages and hints that went wrong.
type counts struct {
	malformed, newer, returned, unsettled, handed, lost atomic.Uint64
	malformedAt, newerAt                                atomic.Int64 // when there was one last, in Unix nanoseconds
}

// Open returns a queue that is connected, or will be as soon as the broker can
// be reached: it waits for the first try only. It fails where the
// configuration cannot be right.
func Open(ctx context.Context, cfg Config) (*Queue, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	q := &Queue{cfg: cfg, id: rand.Text(), here: inproc.New(0), pub: newLink(cfg, "publisher"),
		sub: newLink(cfg, "receiver"), out: make(chan queue.Delivery),
		aside: make(chan []byte, limitAside)}
	q.bell.rung = make(chan struct{})
	q.ctx, q.cancel = context.WithCancel(context.WithoutCancel(ctx))
	q.pub.setup, q.sub.setup = q.preparePublisher, q.prepareReceiver
	for _, l := range []*link{q.pub, q.sub} {
		l.up, l.down = q.up, q.down
		q.all.Go(func() { l.run(q.ctx) })
	}
	q.all.Go(q.pump)
	q.all.Go(q.setAside)
	for _, l := range []*link{q.pub, q.sub} {
		select {
		case <-l.tried:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("connect to the broker: %w", ctx.Err()), q.Close())
		}
	}
	return q, nil
}

// up is called when a connection works.
func (q *Queue) up() {
	if q.Shared() {
		q.here.Clear() // who leads publishes for all again
		if q.told.Swap(false) {
			q.cfg.Logger.Info("the broker can be reached again")
		}
	}
	q.bell.ring()
}

// down is called when a connection does not work, each time that it is tried.
func (q *Queue) down(err error) {
	q.counts.lost.Add(1)
	if !q.told.Swap(true) {
		q.cfg.Logger.Warn("the broker cannot be reached; runs go on from what is in state", "error",
			address.RedactText(q.cfg.Explain(err).Error()))
	}
}

// Server returns the name and version of the broker, or the reason why it cannot be reached.
func (q *Queue) Server(ctx context.Context) (string, error) {
	s, err := q.pub.session(ctx)
	if err != nil {
		return "", err
	}
	if _, err := q.sub.session(ctx); err != nil {
		return "", err
	}
	return fmt.Sprint(s.conn.Properties["product"], " ", s.conn.Properties["version"]), nil
}

// Stats returns the counts so far.
func (q *Queue) Stats() queue.Stats {
	c := &q.counts
	return queue.Stats{Malformed: c.malformed.Load(), Newer: c.newer.Load(), Returned: c.returned.Load(),
		Unsettled: c.unsettled.Load(),
		Handed:    c.handed.Load(), Lost: c.lost.Load(), MalformedAt: moment(&c.malformedAt),
		NewerAt: moment(&c.newerAt)}
}

func moment(at *atomic.Int64) (t time.Time) {
	if n := at.Load(); n != 0 {
		t = time.Unix(0, n)
	}
	return t
}

// spoiled counts a message that cannot be read.
func (q *Queue) spoiled() uint64 {
	q.counts.malformedAt.Store(time.Now().UnixNano())
	return q.counts.malformed.Add(1)
}

// Shared implements queue.Queue.
func (q *Queue) Shared() bool { return q.ctx.Err() == nil && q.pub.live() && q.sub.live() }

// Keep implements queue.Queue.
func (q *Queue) Keep(ctx context.Context, hints ...queue.Hint) error {
	defer q.bell.ring()
	return q.here.Publish(ctx, hints...)
}

// Publish implements queue.Queue. When it fails, some hints may have been accepted.
func (q *Queue) Publish(ctx context.Context, hints ...queue.Hint) error {
	if err := q.alive(ctx); err != nil {
		return fmt.Errorf("publish hints: %w", err)
	}
	for len(hints) > 0 {
		n := min(len(hints), pageHints)
		began := time.Now()
		err := q.publish(ctx, hints[:n])
		q.cfg.Observe(OpPublish, time.Since(began), err)
		if err != nil {
			return fmt.Errorf("publish hints: %w", err)
		}
		hints = hints[n:]
	}
	return nil
}

func (q *Queue) publish(ctx context.Context, hints []queue.Hint) error {
	bodies := make([]message, len(hints))
	for i, h := range hints {
		body, err := encodeHint(h)
		if err != nil {
			return err
		}
		if len(body) > limitBody {
			return fmt.Errorf("a hint of %d bytes", len(body))
		}
		bodies[i] = message{q.cfg.hintsOf(h.Priority), body}
	}
	if err := q.send(ctx, bodies); err != nil {
		return err
	}
	if err := q.signal(ctx, kindHints, state.RunKey{}); err != nil {
		q.cfg.Logger.Debug("processes that wait were not told of hints", "error", err)
	}
	q.bell.ring()
	return nil
}

// message is a message for one of the queues.
type message struct {
	queue string
	body  []byte
}

// send returns when the broker has confirmed all.
func (q *Queue) send(ctx context.Context, all []message) error {
	s, err := q.pub.session(ctx)
	if err != nil {
		return err
	}
	defer s.guarded()()
	confirmed := make([]*amqp.DeferredConfirmation, len(all))
	for i, m := range all {
		confirmed[i], err = s.publish.PublishWithDeferredConfirmWithContext(ctx, "", m.queue, true, false,
			amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: m.body, Type: "hint"})
		if err != nil {
			if ctx.Err() == nil {
				err = unreachable(err)
			}
			return err
		}
	}
	for _, c := range confirmed {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return unreachable(errors.New("the connection ended before all was confirmed"))
		case <-s.stuck:
			return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the broker accepts nothing for now",
				Hint: "it has too little memory or disk left: see its log"}
		case <-c.Done():
		}
		if !c.Acked() {
			return q.refused(s)
		}
	}
	select { // what no queue has is confirmed, too, but comes back before
	case s.known <- struct{}{}:
	case <-s.ended:
	}
	select {
	case <-s.ended:
		return unreachable(errors.New("the connection ended, or a queue was missing"))
	default:
		return nil
	}
}

// refused is the failure of a message that the broker has not taken. A channel that ends settles all of them so:
// it is closed before that, while s may learn of it later.
func (q *Queue) refused(s *session) error {
	if s.publish.IsClosed() {
		return unreachable(errors.New("the connection ended before all was confirmed"))
	}
	return &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the broker refused a hint",
		Hint: fmt.Sprintf("its queue is full: %d hints may wait", limitWaiting)}
}

// alive fails if the queue is closed, or ctx has ended.
func (q *Queue) alive(ctx context.Context) error {
	if q.ctx.Err() != nil {
		return queue.ErrClosed
	}
	return ctx.Err()
}

// Waiting implements queue.Queue.
func (q *Queue) Waiting(ctx context.Context, p queue.Priority) (n int, err error) {
	defer func(began time.Time) { q.cfg.Observe(OpDepth, time.Since(began), err) }(time.Now())
	if err := q.alive(ctx); err != nil {
		return 0, fmt.Errorf("ask how many hints wait: %w", err)
	}
	s, err := q.sub.session(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask how many hints wait: %w", err)
	}
	answered := make(chan error, 1)
	var info amqp.Queue
	go func() { // a broker that does not answer is given up later than by who asks
		q.asking.Lock()
		defer q.asking.Unlock()
		defer s.guarded()()
		var err error
		info, err = s.watch.QueueDeclarePassive(q.cfg.hintsOf(p), true, false, false, false, nil)
		answered <- err
	}()
	select {
	case <-ctx.Done():
		return 0, fmt.Errorf("ask how many hints wait: %w", ctx.Err())
	case err := <-answered:
		if err != nil {
			return 0, fmt.Errorf("ask how many hints wait: %w", unreachable(err))
		}
		return info.Messages, nil
	}
}

// Signal implements queue.Queue.
func (q *Queue) Signal(ctx context.Context, s queue.Signal) error {
	if err := q.alive(ctx); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	if err := q.here.Signal(ctx, s); err != nil {
		return err
	}
	return q.signal(ctx, int8(s.Kind), s.RunKey)
}

func (q *Queue) signal(ctx context.Context, kind int8, run state.RunKey) error {
	s, err := q.pub.session(ctx)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	body, err := encodeSignal(kind, run)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	defer s.guarded()()
	err = s.publish.PublishWithContext(ctx, q.cfg.signals(), "", false, false,
		amqp.Publishing{ContentType: "application/json", Body: body, Type: "signal", AppId: q.id})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("signal: %w", unreachable(err))
	}
	return err
}

// heard is called for each signal that comes, those of this process included.
func (q *Queue) heard(d amqp.Delivery) {
	if d.AppId == q.id {
		return
	}
	kind, run, err := decodeSignal(d.Body)
	switch {
	case errors.Is(err, errNewer):
		q.counts.newer.Add(1)
		q.counts.newerAt.Store(time.Now().UnixNano())
	case err != nil:
		q.spoiled()
	case kind == kindHints:
		q.bell.ring()
	default: // also one of a later version's kinds: to look does no harm
		_ = q.here.Signal(q.ctx, queue.Signal{RunKey: run, Kind: queue.SignalKind(kind)}) // closed: nobody listens
	}
}

// Signalled implements queue.Queue.
func (q *Queue) Signalled(ctx context.Context) (queue.Signal, error) { return q.here.Signalled(ctx) }

// Close implements queue.Queue. It may be called more than once.
func (q *Queue) Close() error {
	q.cancel()
	err := q.here.Close()
	q.all.Wait()
	return err
}

// bell wakes all who wait for it.
type bell struct {
	mu   sync.Mutex
	rung chan struct{}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.rung)
	b.rung = make(chan struct{})
}

// next is closed when the bell rings again.
func (b *bell) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rung
}
