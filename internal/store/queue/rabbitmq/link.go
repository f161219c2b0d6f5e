package rabbitmq

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/secure"
	"thalweg/internal/store/queue"
)

// Limits of a connection.
const (
	// answerTimeout limits the wait for any answer of the broker. A broker that does not answer is taken for
	// gone.
	answerTimeout = 5 * time.Second
	// heartbeat is the interval of each side's heartbeats; a side is taken for gone after three missing ones.
	heartbeat = 2 * time.Second
	// redialFirst and redialLongest space the tries to connect: each pause is
	// twice the one before, shortened by up to half, so that not all come at once.
	redialFirst   = 100 * time.Millisecond
	redialLongest = 5 * time.Second
	// frameBytes is the broker's own default.
	frameBytes = 128 << 10
)

// link keeps one connection to the broker alive: it has a session, or says why not.
type link struct {
	cfg   Config
	name  string                                // what the connection is for, as the broker shows it
	setup func(context.Context, *session) error // declares and opens channels
	up    func()                                // called for each new session
	down  func(err error)                       // called when there is none any more, or not yet
	mu    sync.Mutex
	now   *session
	err   error         // of the latest try
	tried chan struct{} // closed when the first try has ended
	once  sync.Once
	all   sync.WaitGroup // what watches sessions
}

func newLink(cfg Config, name string) *link {
	return &link{cfg: cfg, name: name, tried: make(chan struct{}), up: func() {}, down: func(error) {}}
}

// session is a connection that works, until ended is closed.
type session struct {
	raw   net.Conn
	conn  *amqp.Connection
	ended chan struct{}
	once  sync.Once
	jam   sync.Once

	publish *amqp.Channel // the publisher's
	known   chan struct{} // who sends to it goes on when all that came back has been noticed
	stuck   chan struct{} // closed when the broker accepts nothing any more
	pull    *amqp.Channel // the receiver's
	watch   *amqp.Channel // the receiver's, for questions
}

// kill ends a session at once, whatever hangs in it.
func (s *session) kill() {
	s.once.Do(func() { close(s.ended) })
	_ = s.raw.Close() // it may be closed already
}

// block says that the broker accepts nothing in this session any more.
func (s *session) block() { s.jam.Do(func() { close(s.stuck) }) }

// blocked reports whether it does.
func (s *session) blocked() bool {
	if s.stuck == nil {
		return false
	}
	select {
	case <-s.stuck:
		return true
	default:
		return false
	}
}

// guarded kills the session if what follows does not end in time; the function
// that it gives says that it has.
func (s *session) guarded() func() bool { return time.AfterFunc(answerTimeout, s.kill).Stop }

// writer bounds each write to a broker that does not read.
type writer struct{ net.Conn }

// Write implements net.Conn.
func (w writer) Write(b []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}

// secured is a connection that keeps why it broke: the broker refuses a
// certificate behind the handshake, and the client says only that it has ended.
type secured struct {
	*tls.Conn
	asked   secure.Asked
	refused atomic.Pointer[error]
}

// Read implements net.Conn.
func (s *secured) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if missed := s.asked.Missed(n, err); missed != nil {
		s.refused.CompareAndSwap(nil, &missed)
	} else if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		s.refused.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Write implements net.Conn.
func (s *secured) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if missed := s.asked.Missed(0, err); missed != nil {
		s.refused.CompareAndSwap(nil, &missed)
	}
	return n, err
}

// listener is a connection that keeps whether the other side has ended it.
type listener struct {
	net.Conn
	ended atomic.Bool
}

// Read implements net.Conn.
func (l *listener) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		l.ended.Store(true)
	}
	return n, err
}

// Why a broker does not let somebody in.
var (
	ErrLogin = errors.New("the broker does not accept the user name and the password")
	ErrVHost = errors.New("the broker does not let the user into the vhost")
)

// refusal gives what the broker refuses a type. It ends the connection with whom it does not
// believe without a word, which the client takes every end of a connection for.
func refusal(err error, ended bool) error {
	var said *amqp.Error
	switch {
	case errors.Is(err, amqp.ErrCredentials) && ended, errors.As(err, &said) && said.Server &&
		said.Code == amqp.AccessRefused:
		return ErrLogin
	case errors.Is(err, amqp.ErrCredentials):
		return errors.New("the connection has ended")
	case said != nil && said.Server && said.Code == amqp.NotAllowed && !strings.Contains(said.Reason, "limit"):
		return fmt.Errorf("%w: %s", ErrVHost, said.Reason)
	}
	return err
}

// run keeps the link up until ctx ends.
func (l *link) run(ctx context.Context) {
	defer l.all.Wait()
	for host, tries := 0, 0; ctx.Err() == nil; host++ {
		began := time.Now()
		s, err := l.connect(ctx, l.cfg.Hosts[host%len(l.cfg.Hosts)])
		l.cfg.Observe(OpConnect, time.Since(began), err)
		if err == nil {
			tries = 0
			l.set(s, nil)
			l.up()
			host-- // the same again
			select {
			case <-ctx.Done():
			case <-s.ended:
				err = errors.New("the connection has ended")
			}
			l.close(s)
		}
		if ctx.Err() != nil {
			break
		}
		l.set(nil, err)
		l.down(err)
		pause := min(redialFirst<<min(tries, 10), redialLongest)
		tries++
		select {
		case <-ctx.Done():
		case <-time.After(pause - rand.N(pause/2)): //nolint:gosec // spacing, not a secret
		}
	}
	l.set(nil, queue.ErrClosed)
}

func (l *link) set(s *session, err error) {
	l.mu.Lock()
	l.now, l.err = s, err
	l.mu.Unlock()
	l.once.Do(func() { close(l.tried) })
}

// session gives the one that works. Only the first try is waited for.
func (l *link) session(ctx context.Context) (*session, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.tried:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.now != nil:
		return l.now, nil
	case errors.Is(l.err, queue.ErrClosed), l.err == nil:
		return nil, queue.ErrClosed
	}
	return nil, unreachable(l.err)
}

// live reports whether there is a session.
func (l *link) live() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now != nil && !l.now.blocked()
}

// connect opens a connection and what is needed on it.
func (l *link) connect(ctx context.Context, host string) (_ *session, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	raw, err := l.cfg.Dial(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	s := &session{raw: writer{raw}, ended: make(chan struct{})}
	defer context.AfterFunc(ctx, s.kill)() // the handshake and what follows wait for nothing else
	defer func() {
		if err != nil {
			s.kill()
		}
	}()
	heard := &listener{Conn: s.raw}
	s.raw = heard
	over, whole := s.raw, &secured{}
	if l.cfg.TLS != nil {
		cfg := whole.asked.Watch(l.cfg.TLS)
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(host)
		}
		whole.Conn = tls.Client(s.raw, cfg)
		if err := whole.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("agree on encryption: %w", cmp.Or(whole.asked.Missed(0, err), err))
		}
		over = whole
	}
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName("thalweg " + l.name)
	s.conn, err = amqp.Open(over, amqp.Config{SASL: l.cfg.logins(), Vhost: l.cfg.Vhost, Heartbeat: heartbeat,
		Locale: "en_US", FrameSize: frameBytes, Properties: properties})
	if refused := whole.refused.Load(); err != nil && refused != nil {
		err = *refused
	}
	if err != nil {
		if ctx.Err() == nil {
			err = refusal(err, heard.ended.Load())
		}
		return nil, fmt.Errorf("log in: %w", err)
	}
	l.watch(s, s.conn.NotifyClose(make(chan *amqp.Error, 1)))
	if err := l.setup(ctx, s); err != nil {
		return nil, err
	}
	return s, nil
}

// watch ends the session when a connection or channel of it has ended.
func (l *link) watch(s *session, closed chan *amqp.Error) {
	l.all.Go(func() { // ends with the connection, which the session's end closes
		if err := <-closed; err != nil {
			l.cfg.Logger.Debug("the broker has ended a connection or channel", "for", l.name, "error",
				address.RedactText(err.Error()))
		}
		s.kill()
	})
}

// channel opens a channel whose end is the session's.
func (l *link) channel(s *session) (*amqp.Channel, error) {
	ch, err := s.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	l.watch(s, ch.NotifyClose(make(chan *amqp.Error, 1)))
	return ch, nil
}

// close says goodbye where somebody listens.
func (l *link) close(s *session) {
	select {
	case <-s.ended:
	default:
		_ = s.conn.CloseDeadline(time.Now().Add(time.Second)) // the broker notices in any case
	}
	s.kill()
}

// unreachable is the failure of a broker that is not there.
func unreachable(err error) error {
	f := &fault.Error{Kind: fault.Environment, Retryable: true, Message: "the broker cannot be reached", Err: err,
		Hint: "runs go on without it, from what is in state; check that RabbitMQ runs and that address, vhost and " +
			"credentials are right"}
	var refused *amqp.Error
	switch known := secure.Hint(err); {
	case known != "":
		f.Hint = known
	case !errors.As(err, &refused):
	case refused.Code == amqp.PreconditionFailed:
		f.Hint = "a queue or an exchange of this name is there with other properties: delete it, and workers " +
			"make it anew"
	}
	switch unknown := (*net.DNSError)(nil); {
	case errors.Is(err, ErrLogin):
		f.Hint = "check username and password; guest is accepted from the broker's own host only"
	case errors.Is(err, ErrVHost):
		f.Hint = "name a vhost that is there, or make this one: `rabbitmqctl add_vhost VHOST`, and let the user in: " +
			"`rabbitmqctl set_permissions -p VHOST USER '.*' '.*' '.*'`"
	case errors.As(err, &unknown) && unknown.IsNotFound:
		f.Hint = "check the names of the hosts"
	}
	return f
}
