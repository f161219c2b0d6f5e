package rabbitmq

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/securetest"
)

// proxy stands between a queue and the broker.
type proxy struct {
	net.Listener
	target string

	mu     sync.Mutex
	conns  map[net.Conn]bool
	refuse bool
	deaf   chan struct{} // not nil: nothing passes until it is closed
	all    sync.WaitGroup
}

func newProxy(t *testing.T) (*proxy, Config) {
	t.Helper()
	u, err := url.Parse(broker(t))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{Listener: l, target: u.Host, conns: map[net.Conn]bool{}}
	p.all.Go(p.serve)
	t.Cleanup(func() {
		_ = l.Close()
		p.hear()
		p.cut(true)
		p.all.Wait()
	})
	return p, Config{URL: broker(t), Hosts: []string{l.Addr().String()}, Prefix: prefix(t)}
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", p.target)
		if err != nil || !p.add(c, there) {
			_ = c.Close()
			continue
		}
		p.all.Go(func() { p.pipe(c, there) })
		p.all.Go(func() { p.pipe(there, c) })
	}
}

func (p *proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.refuse {
			_ = c.Close()
			continue
		}
		p.conns[c] = true
	}
	return !p.refuse
}

func (p *proxy) pipe(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		deaf := p.deaf
		p.mu.Unlock()
		if deaf != nil {
			<-deaf
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut ends all connections, and refuses others if it is to stay so.
func (p *proxy) cut(stay bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = stay
	for c := range p.conns {
		_ = c.Close()
	}
	clear(p.conns)
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = false
}

// stall lets nothing pass, and closes nothing.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = make(chan struct{})
}

func (p *proxy) hear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf != nil {
		close(p.deaf)
		p.deaf = nil
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// publish sends messages past the queue, and waits until the broker has them: others are gone with the channel.
func publish(t *testing.T, exchange, key string, bodies ...string) {
	t.Helper()
	admin(t, func(ch *amqp.Channel) {
		require.NoError(t, ch.Confirm(false))
		var sent []*amqp.DeferredConfirmation
		for _, body := range bodies {
			c, err := ch.PublishWithDeferredConfirm(exchange, key, true, false, amqp.Publishing{Body: []byte(body)})
			require.NoError(t, err)
			sent = append(sent, c)
		}
		for _, c := range sent {
			require.True(t, c.Wait())
		}
	})
}

func hint(batch int) queue.Hint {
	node := state.NodeKey{RunKey: state.RunKey{Workspace: "w", Run: 1}, Node: "n"}
	return queue.Hint{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: node, Batch: batch}}}
}

// eventually waits for what happens by itself.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, effort.Patience, 5*time.Millisecond, what)
}

func receive(ctx context.Context, t *testing.T, q *Queue) queue.Delivery {
	t.Helper()
	d, err := q.Receive(ctx)
	require.NoError(t, err)
	return d
}

// A connection that is cut is renewed; what was not settled comes again, also to
// a receiver that was waiting.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	p, cfg := newProxy(t)
	q, ctx := open(t, cfg), within(t)
	require.NoError(t, q.Publish(ctx, hint(1)))
	held := receive(ctx, t, q)
	p.cut(true)
	eventually(t, "it is noticed", func() bool { return !q.Shared() })
	err := q.Publish(ctx, hint(2))
	require.ErrorContains(t, err, "the broker cannot be reached")
	require.NoError(t, held.Done(ctx), "nobody can do anything about it")
	require.NoError(t, q.Keep(ctx, hint(3)))
	require.Equal(t, hint(3), receive(ctx, t, q).Hint)
	waiting := make(chan queue.Delivery)
	go func() {
		d, _ := q.Receive(ctx)
		waiting <- d
	}()
	p.mend()
	again := <-waiting
	require.Equal(t, hint(1), again.Hint)
	require.NoError(t, again.Done(ctx))
	eventually(t, "it is shared again", q.Shared)
	require.NoError(t, q.Publish(ctx, hint(4)))
	require.Equal(t, hint(4), receive(ctx, t, q).Hint)
	require.NotZero(t, q.Stats().Lost)
}

// What a channel that has ended did not get confirmed was not refused, also before the session knows of its end.
func TestEndedIsNotRefused(t *testing.T) {
	t.Parallel()
	_, cfg := newProxy(t)
	q := open(t, cfg)
	admin(t, func(ch *amqp.Channel) {
		s := &session{publish: ch, ended: make(chan struct{})}
		require.ErrorContains(t, q.refused(s), "the broker refused a hint")
		require.NoError(t, ch.Close())
		require.ErrorContains(t, q.refused(s), "the broker cannot be reached")
	})
}

// A broker that does not answer, and does not close the connection, is given up.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	p, cfg := newProxy(t)
	q, ctx := open(t, cfg), within(t)
	p.stall()
	began := time.Now()
	require.Error(t, q.Publish(ctx, hint(1)))
	effort.Promised(t, began, 3*answerTimeout)
	eventually(t, "it is noticed", func() bool { return !q.Shared() })
	p.cut(false)
	p.hear()
	eventually(t, "it is shared again", q.Shared)
	require.NoError(t, q.Publish(ctx, hint(2)))
	for seen := -1; seen != 2; { // the first may have arrived
		d := receive(ctx, t, q)
		seen = d.Batch
		require.NoError(t, d.Done(ctx))
	}
}

// Cuts at random moments lose no hint that was accepted.
func TestCutsLoseNothing(t *testing.T) {
	t.Parallel()
	const hints = 400
	p, cfg := newProxy(t)
	q, ctx := open(t, cfg), within(t)
	other := open(t, cfg)
	missing, mu := map[int]bool{}, sync.Mutex{}
	for i := range hints {
		missing[i] = true
	}
	left := func() int { mu.Lock(); defer mu.Unlock(); return len(missing) }
	receiving, enough := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, r := range []*Queue{q, other} {
		all.Go(func() {
			for {
				d, err := r.Receive(receiving)
				if err != nil {
					return
				}
				mu.Lock()
				delete(missing, d.Batch)
				mu.Unlock()
				_ = d.Done(ctx)
			}
		})
	}
	for i, cuts := 0, 0; i < hints; {
		if i/100 == cuts && i%100 == 50 {
			p.cut(false)
			cuts++
		}
		if q.Publish(ctx, hint(i)) == nil {
			i++
		}
		require.NoError(t, ctx.Err())
	}
	eventually(t, "all have come", func() bool { return left() == 0 })
	enough()
	all.Wait()
}

// What somebody deletes in the broker is declared again.
func TestDeletedQueue(t *testing.T) {
	t.Parallel()
	cfg := Config{Prefix: prefix(t)}
	q, ctx := open(t, cfg), within(t)
	require.NoError(t, q.Publish(ctx, hint(1)))
	admin(t, func(ch *amqp.Channel) {
		_, err := ch.QueueDelete(q.cfg.hintsOf(queue.Normal), false, false, false)
		require.NoError(t, err)
	})
	eventually(t, "it can be published again", func() bool { return q.Publish(ctx, hint(2)) == nil })
	eventually(t, "it is received", func() bool {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		d, err := q.Receive(short)
		return err == nil && d.Batch == 2
	})
}

// Messages that cannot be read are dropped and counted; those of a later version are set
// aside. None of them keeps a hint waiting.
func TestPoison(t *testing.T) {
	t.Parallel()
	q, ctx := open(t, Config{Prefix: prefix(t)}), within(t)
	name := q.cfg.hintsOf(queue.Normal)
	publish(t, "", name, "", "{", "[]", `{"v":0}`, `{"w":1,"v":1}`, "\xff\x00", strings.Repeat("x", limitBody+1),
		`{"v":99,"new":true}`, `{"v":9e99}`, `{"v":1,"r":1e400}`, `{"v":1,"b":99999999999999999999}`, `{"v":-1}`,
		"null", "7", strings.Repeat("[", 60_000))
	publish(t, q.cfg.signals(), "", "no signal")
	require.NoError(t, q.Publish(ctx, hint(1)))
	d := receive(ctx, t, q)
	require.Equal(t, hint(1), d.Hint)
	require.NoError(t, d.Done(ctx))
	eventually(t, "the signal has come", func() bool { return q.Stats().Malformed == 15 })
	require.Equal(t, uint64(1), q.Stats().Newer)
	require.NotZero(t, q.Stats().NewerAt)
	n, err := q.Waiting(ctx, queue.Normal)
	require.NoError(t, err)
	require.Zero(t, n)
	eventually(t, "the later one lies aside", func() bool { return aside(t, q) == 1 })
}

// aside counts the messages that were set aside.
func aside(t *testing.T, q *Queue) (n int) {
	admin(t, func(ch *amqp.Channel) {
		if is, err := ch.QueueDeclarePassive(q.cfg.later(), true, false, false, false, nil); err == nil {
			n = is.Messages
		}
	})
	return n
}

// However many messages of later versions there are, the receiver goes on, and what was set
// aside stays for who looks.
func TestMessagesOfALaterVersion(t *testing.T) {
	t.Parallel()
	cfg := Config{Prefix: prefix(t)}
	q, ctx := open(t, cfg), within(t)
	const later = 3_000
	var bodies []string
	for i := range later {
		bodies = append(bodies, fmt.Sprintf(`{"v":2,"w":"w","r":1,"n":"n","b":%d}`, i))
	}
	publish(t, "", q.cfg.hintsOf(queue.Normal), bodies...)
	eventually(t, "all are there, or gone already", func() bool {
		n, err := q.Waiting(ctx, queue.Normal)
		return err == nil && n+int(q.Stats().Newer) >= later
	})
	require.NoError(t, q.Publish(ctx, hint(1)))
	require.Equal(t, hint(1), receive(ctx, t, q).Hint)
	require.Equal(t, uint64(later), q.Stats().Newer)
	eventually(t, "some of them lie aside", func() bool { return aside(t, q) > 0 })
	require.True(t, q.Shared())
}

// A process that ends gives others what it held.
func TestClosedQueueGivesBack(t *testing.T) {
	t.Parallel()
	cfg := Config{Prefix: prefix(t)}
	a, b, ctx := open(t, cfg), open(t, cfg), within(t)
	require.NoError(t, b.Publish(ctx, hint(1)))
	receive(ctx, t, a)
	require.NoError(t, a.Close())
	require.Equal(t, hint(1), receive(ctx, t, b).Hint)
}

// Signals and hints reach other processes at once.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	cfg := Config{Prefix: prefix(t)}
	a, b, ctx := open(t, cfg), open(t, cfg), within(t)
	want := queue.Signal{RunKey: hint(1).RunKey, Kind: queue.Moved}
	require.NoError(t, a.Signal(ctx, want))
	for _, q := range []*Queue{a, b} {
		got, err := q.Signalled(ctx)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	came := make(chan queue.Hint)
	go func() {
		d, _ := b.Receive(ctx)
		came <- d.Hint
	}()
	began := time.Now()
	require.NoError(t, a.Publish(ctx, hint(2)))
	require.Equal(t, hint(2), <-came)
	effort.Promised(t, began, lookAgain, "it was told, and did not look by itself")
	name, err := a.Server(ctx)
	require.NoError(t, err)
	require.Contains(t, name, "RabbitMQ")
}

// A full queue refuses what is new, and keeps what is next.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	q, ctx := open(t, Config{Prefix: prefix(t)}), within(t)
	all := make([]queue.Hint, 2_000)
	for i := range all {
		all[i] = hint(i)
	}
	require.NoError(t, q.Publish(ctx, all...))
	n, err := q.Waiting(ctx, queue.Normal)
	require.NoError(t, err)
	require.Equal(t, len(all), n)
	require.Equal(t, hint(0), receive(ctx, t, q).Hint)
}

// A broker that is not there is no reason to fail, and no password is told.
func TestNoBroker(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var log lockedBuffer
	q := open(t, Config{URL: "amqp://somebody:hush-hush@" + l.Addr().String() + "/v",
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	ctx := within(t)
	require.False(t, q.Shared())
	errs := []error{q.Publish(ctx, hint(1)), q.Signal(ctx, queue.Signal{Kind: queue.Moved})}
	_, err = q.Waiting(ctx, queue.Normal)
	errs = append(errs, err)
	_, err = q.Server(ctx)
	for _, err := range append(errs, err) {
		require.ErrorContains(t, err, "the broker cannot be reached")
		require.NotContains(t, err.Error(), "hush-hush")
	}
	require.NoError(t, q.Keep(ctx, hint(1)))
	require.Equal(t, hint(1), receive(ctx, t, q).Hint)
	warnings := func() int { return strings.Count(log.String(), "level=WARN") }
	eventually(t, "it is told", func() bool { return warnings() > 0 })
	require.NoError(t, q.Keep(ctx, hint(2)))
	require.Equal(t, hint(2), receive(ctx, t, q).Hint)
	require.Equal(t, 1, warnings(), "it is told once")
	require.NotContains(t, log.String(), "hush-hush")
}

// A broker that ends the connection of a client without a certificate may want one.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	authority := securetest.NewAuthority(t)
	address := securetest.Reset(t, authority.Server("127.0.0.1"))
	_, err := Look(within(t), Config{Hosts: []string{address}, TLS: &tls.Config{RootCAs: authority.Pool()}}, address)
	require.Contains(t, fault.Of(err).Hint, "may want a certificate of the client", "%v", err)
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"://x", "http://x", "amqp://us er:hush%zz@x", "amqp:", ""} {
		_, err := Open(context.Background(), Config{URL: bad})
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "hush")
	}
	c, err := Config{URL: "amqps://u:p%20w@h/my%2Fhost"}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []string{"h:5671"}, c.Hosts)
	require.Equal(t, []string{"u", "p w", "my/host", PrefixDefault}, []string{c.Username, c.Password,
		c.Vhost, c.Prefix})
	require.NotNil(t, c.TLS)
	c, err = Config{Hosts: []string{"a", "[::1]", "b:7"}}.withDefaults()
	require.NoError(t, err)
	require.Equal(t, []string{"a:5672", "[::1]:5672", "b:7"}, c.Hosts)
	require.Equal(t, "/", c.Vhost)
}

// Credentials that are refused are said to be, without them.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(broker(t))
	require.NoError(t, err)
	q := open(t, Config{Hosts: []string{u.Host}, Username: "nobody", Password: "hush-hush"})
	_, err = q.Server(within(t))
	require.ErrorContains(t, err, "the broker cannot be reached")
	require.NotContains(t, err.Error(), "hush-hush")
	require.ErrorIs(t, err, ErrLogin)
	_, err = Look(within(t), Config{Username: u.User.Username(), Password: "guest", Vhost: "nobody's"}, u.Host)
	require.ErrorIs(t, err, ErrVHost)

	// A broker that falls silent, or a connection that breaks, says nothing of a password.
	require.NotErrorIs(t, refusal(amqp.ErrCredentials, false), ErrLogin)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = (*lockedBuffer)(nil)

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
