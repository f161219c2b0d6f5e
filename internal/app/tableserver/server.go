package tableserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/io/resp"
)

// Options say how a table is served.
type Options struct {
	Address string      // host:port of plain connections; "": none
	TLS     *tls.Config // nil: no TLS
	// TLSAddress is host:port of connections with TLS; "": none.
	TLSAddress string
	// Check reports whether a user's password is right; nil: none is asked for.
	Check func(user, password []byte) bool
	// MemoryBytes is what tables in memory may have, the next beside the one before; 0: 80 % of the machine's memory.
	// Cold serves larger ones, from the disk.
	MemoryBytes int64
	Cold        bool
	MaxClients  int // at once
	Log         *slog.Logger
}

// The limits of connections.
const (
	MaxPendingBytes  = 256 << 20        // of all connections: commands that have not come whole
	MaxUnsentBytes   = 512 << 20        // of all connections: answers that have not been fetched
	maxUnsentBytes   = 96 << 20         // of one connection
	strangerPatience = 10 * time.Second // until a password is given, or TLS agreed on
	fetchPatience    = 30 * time.Second // until a client fetches something of its answers
	acceptPause      = 50 * time.Millisecond
	logPause         = time.Second // between two logs of the same that clients cause
)

// How long answers in flight may take to be sent at the end.
const (
	drainPatience     = 10 * time.Second
	interruptPatience = time.Second
	linger            = 200 * time.Millisecond // for a client to hang up first
)

// Server serves one table at a time.
type Server struct {
	options       Options
	plain, secure net.Listener // nil: none

	current  atomic.Pointer[held]
	switches sync.Mutex     // one at a time
	releases sync.WaitGroup // of tables that nobody reads any more
	draining atomic.Bool

	pending, unsent                                 atomic.Int64 // bytes
	clients, lastID, commands, received, sent, lost atomic.Int64
	switched, refused                               atomic.Int64
	resident                                        atomic.Int64 // bytes of tables in memory, or on the disk

	mu   sync.Mutex
	said map[string]time.Time // when something was logged that clients cause
}

// New returns a server of a file. The caller closes it when Serve has returned.
func New(ctx context.Context, path string, o Options) (*Server, error) {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = budget.MachineBytes() / 10 * 8
	}
	s := &Server{options: o, said: map[string]time.Time{}}
	first, err := s.Switch(ctx, path)
	if err != nil {
		return nil, err
	}
	if !o.Cold && 2*first.Bytes > o.MemoryBytes {
		o.Log.Warn("there is no memory for another table of this size beside it: it can only be replaced by a new start",
			"table", format.Size(first.Bytes), "memory", format.Size(o.MemoryBytes))
	}
	return s, nil
}

// Close releases the table.
func (s *Server) Close() error {
	var err error
	if t := s.current.Swap(nil); t != nil {
		t.release()
		s.releases.Wait()
		err = t.failed
	}
	for _, l := range []net.Listener{s.plain, s.secure} {
		if l != nil {
			_ = l.Close() // Serve has, if it began
		}
	}
	return err
}

// Listen begins to listen: clients wait until Serve answers them.
func (s *Server) Listen(ctx context.Context) error {
	for _, front := range []struct {
		at string
		to *net.Listener
	}{{s.options.Address, &s.plain}, {s.options.TLSAddress, &s.secure}} {
		if front.at == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", front.at)
		if err != nil {
			return &fault.Error{Kind: fault.Script, Message: "the server cannot listen at " + front.at, Err: err,
				Hint: "another server may have the port: ss -ltnp shows whose it is"}
		}
		*front.to = l
	}
	return nil
}

// Addresses returns where it listens, once Listen has returned: plain, and with TLS; nil: it does not.
func (s *Server) Addresses() (at [2]net.Addr) {
	for i, l := range []net.Listener{s.plain, s.secure} {
		if l != nil {
			at[i] = l.Addr()
		}
	}
	return at
}

// Serve answers clients until it is told to drain, or the context ends. What clients have
// sent by then is answered, and the answers are delivered.
func (s *Server) Serve(ctx context.Context, drain <-chan struct{}) error {
	told, stop := context.WithCancel(ctx)
	defer stop()
	fronts, told := errgroup.WithContext(told)
	ended := make(chan struct{})
	defer func() { stop(); <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-drain:
			stop()
		case <-told.Done():
		}
		s.draining.Store(true)
	}()
	patience := func() time.Duration {
		if ctx.Err() != nil {
			return interruptPatience
		}
		return drainPatience
	}
	if s.plain != nil {
		fronts.Go(func() error { return s.servePlain(told, patience) })
	}
	if s.secure != nil {
		fronts.Go(func() error { return s.serveTLS(told, patience) })
	}
	return fronts.Wait()
}

// accept hands connections on until the context ends.
func (s *Server) accept(ctx context.Context, l net.Listener, to func(net.Conn)) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serve at %s: %w", l.Addr(), err)
		case err != nil: // there are too many open files, or the client has gone
			s.complain("a client is not accepted", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
		default:
			to(c)
		}
	}
}

// client is a connection, whoever moves its bytes. It belongs to who does.
type client struct {
	session resp.Session
	since   time.Time
	from    string
	pending int64 // bytes, as they are counted
	unsent  int64

	// of plain connections
	rest    []byte // a command that has not come whole
	watched bool
	stuck   time.Time // since when it fetches nothing
	last    bool      // the server ends
	before  int       // bytes that had come by then, and are to be answered
	halved  time.Time // when it was told that nothing more comes
	asked   atomic.Bool
	gone    bool
}

// admit begins a connection; nil: there are too many.
func (s *Server) admit(from string) *client {
	if s.clients.Add(1) > int64(s.options.MaxClients) {
		s.clients.Add(-1)
		s.complain("a client is refused: there are too many", "from", from, "most", s.options.MaxClients)
		return nil
	}
	return &client{session: resp.Session{Check: s.options.Check, Counts: s.counts, ID: s.lastID.Add(1)}, since: time.Now(),
		from: from}
}

func (s *Server) leave(c *client) {
	s.clients.Add(-1)
	s.pending.Add(-c.pending)
	s.unsent.Add(-c.unsent)
	c.pending, c.unsent, c.gone = 0, 0, true
}

// complain logs what clients cause, who cannot fill the log with it.
func (s *Server) complain(text string, args ...any) {
	now := time.Now()
	s.mu.Lock()
	said := now.Sub(s.said[text]) < logPause
	if !said {
		s.said[text] = now
	}
	s.mu.Unlock()
	if !said {
		s.options.Log.Warn(text, args...)
	}
}

// disconnect logs why a connection ends before its client wants to.
func (s *Server) disconnect(c *client, why error) {
	s.lost.Add(1)
	s.complain("a client is disconnected", "from", c.from, "error", why)
}

// stranger reports whether a client has not given a password for too long.
func (s *Server) stranger(c *client, now time.Time) bool {
	return s.options.Check != nil && !c.session.Known() && now.Sub(c.since) > strangerPatience
}

// answer carries out what a client has sent, all of it from one table. It returns an
// error if the connection is to be closed.
func (s *Server) answer(c *client, in, out []byte) (used int, answers []byte, more bool, err error) {
	t := s.acquire()
	if t == nil {
		return len(in), nil, false, errors.New("the server has ended")
	}
	defer t.release()
	before := c.session.Commands
	err = fault.Guard("answer a client", func() error {
		used, answers, more = c.session.Answer(t.dataset(), in, out)
		return nil
	})
	if err != nil {
		return len(in), nil, false, err
	}
	s.commands.Add(c.session.Commands - before)
	s.received.Add(int64(used))
	s.sent.Add(int64(len(answers)))
	if failed := c.session.Failed(); failed != nil {
		s.complain("the table cannot be read", "error", failed)
	}
	return used, answers, more, nil
}

// hold counts what is kept of a client's command that has not come whole.
func (s *Server) hold(c *client, bytes int) error {
	bytes += c.session.Held()
	grown := int64(bytes) - c.pending
	c.pending = int64(bytes)
	if total := s.pending.Add(grown); grown > 0 && total > MaxPendingBytes {
		return fmt.Errorf("clients have sent %d bytes of commands that have no end", total)
	}
	return nil
}

// owe counts answers that a client has not fetched.
func (s *Server) owe(c *client, bytes int) error {
	grown := int64(bytes) - c.unsent
	c.unsent = int64(bytes)
	total := s.unsent.Add(grown)
	switch {
	case bytes > maxUnsentBytes:
		return fmt.Errorf("it does not fetch its answers: %d bytes", bytes)
	case grown > 0 && total > MaxUnsentBytes:
		return fmt.Errorf("clients do not fetch their answers: %d bytes of all", total)
	}
	return nil
}
