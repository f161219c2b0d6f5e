package tableserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// loop is the event loop of plain connections.
type loop struct {
	gnet.BuiltinEventEngine
	server *Server
	engine gnet.Engine
	booted chan struct{}

	buffers sync.Pool // of answers

	mu   sync.Mutex
	open map[gnet.Conn]*client // that may be strangers
}

// servePlain answers plain connections until the context ends.
func (s *Server) servePlain(ctx context.Context, bound func(net.Addr)) error {
	l := &loop{server: s, booted: make(chan struct{}), open: map[gnet.Conn]*client{},
		buffers: sync.Pool{New: func() any { return new([]byte) }}}
	ended := make(chan error, 1)
	go func() {
		ended <- gnet.Run(l, "tcp://"+s.options.Address, gnet.WithNumEventLoop(runtime.GOMAXPROCS(0)),
			gnet.WithTicker(true), gnet.WithTCPKeepAlive(time.Minute), gnet.WithLogger(logger{s.options.Log}))
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("listen at %s: %w", s.options.Address, err)
	case <-l.booted:
	}
	address, err := l.address()
	if err == nil {
		bound(address)
		select {
		case err := <-ended:
			return fmt.Errorf("serve at %s: %w", s.options.Address, err)
		case <-ctx.Done():
		}
	}
	return errors.Join(err, l.engine.Stop(context.WithoutCancel(ctx)), <-ended)
}

// address is where it listens.
func (l *loop) address() (net.Addr, error) {
	fd, err := l.engine.Dup()
	if err != nil {
		return nil, fmt.Errorf("ask where it listens: %w", err)
	}
	defer unix.Close(fd)
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("ask where it listens: %w", err)
	}
	switch a := name.(type) {
	case *unix.SockaddrInet4:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port}, nil
	case *unix.SockaddrInet6:
		return &net.TCPAddr{IP: a.Addr[:], Port: a.Port}, nil
	}
	return nil, fmt.Errorf("it listens at %T", name)
}

// OnBoot tells that it listens.
func (l *loop) OnBoot(engine gnet.Engine) gnet.Action {
	l.engine = engine
	close(l.booted)
	return gnet.None
}

// OnOpen admits a connection.
func (l *loop) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	admitted := l.server.admit(c.RemoteAddr().String())
	if admitted == nil {
		return []byte("-ERR max number of clients reached\r\n"), gnet.Close
	}
	c.SetContext(admitted)
	if l.server.options.Check != nil {
		l.mu.Lock()
		l.open[c] = admitted
		l.mu.Unlock()
	}
	return nil, gnet.None
}

// OnClose forgets a connection.
func (l *loop) OnClose(c gnet.Conn, _ error) gnet.Action {
	if admitted, ok := c.Context().(*client); ok {
		l.server.leave(admitted)
		l.mu.Lock()
		delete(l.open, c)
		l.mu.Unlock()
	}
	return gnet.None
}

// OnTraffic answers what has come.
func (l *loop) OnTraffic(c gnet.Conn) gnet.Action {
	admitted, ok := c.Context().(*client)
	if !ok {
		return gnet.Close
	}
	answers := l.buffers.Get().(*[]byte)
	defer func() {
		if cap(*answers) <= largestBuffer {
			l.buffers.Put(answers)
		}
	}()
	for {
		in, err := c.Peek(-1)
		if err != nil || len(in) == 0 {
			return gnet.None
		}
		used, out, more, err := l.server.answer(admitted, in, (*answers)[:0])
		if out != nil {
			*answers = out
		}
		if _, failed := c.Discard(used); failed != nil {
			return gnet.Close
		}
		if len(out) > 0 {
			if _, failed := c.Write(out); failed != nil {
				return gnet.Close
			}
		}
		switch {
		case err != nil:
			l.server.options.Log.Error("a client is disconnected", "from", admitted.from, "error", err)
			return gnet.Close
		case admitted.session.Closing():
			return gnet.Close
		case c.OutboundBuffered() > maxUnsentBytes:
			l.server.options.Log.Warn("a client is disconnected that does not fetch its answers", "from", admitted.from)
			return gnet.Close
		case !more:
			return gnet.None
		}
	}
}

// OnTick disconnects those who give no password.
func (l *loop) OnTick() (time.Duration, gnet.Action) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, admitted := range l.open {
		if now.Sub(admitted.since) <= strangerPatience {
			continue
		}
		delete(l.open, c)
		// the session belongs to the connection's own loop
		_ = c.Wake(func(c gnet.Conn, _ error) error {
			if l.server.stranger(admitted, now) {
				return c.Close()
			}
			return nil
		})
	}
	return time.Second, gnet.None
}

// largestBuffer is kept for the next answers.
const largestBuffer = 2 << 20

// logger gives the event loop's own complaints to a log.
type logger struct{ log *slog.Logger }

func (l logger) Debugf(string, ...any)          {}
func (l logger) Infof(string, ...any)           {}
func (l logger) Warnf(format string, a ...any)  { l.log.Warn(fmt.Sprintf(format, a...)) }
func (l logger) Errorf(format string, a ...any) { l.log.Error(fmt.Sprintf(format, a...)) }
func (l logger) Fatalf(format string, a ...any) { l.log.Error(fmt.Sprintf(format, a...)) }
