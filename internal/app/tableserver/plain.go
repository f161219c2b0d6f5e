package tableserver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/panjf2000/gnet/v2"
	"golang.org/x/sys/unix"
)

// loop are the event loops of plain connections. They are given connections that others
// have accepted: gnet's own loop for that ends when there are too many open files.
type loop struct {
	gnet.BuiltinEventEngine
	server  *Server
	buffers sync.Pool     // of answers
	hurry   chan struct{} // somebody waits for a connection to be looked at

	mu      sync.Mutex
	open    map[gnet.Conn]*client
	watched map[gnet.Conn]*client // strangers, and who has to fetch answers
	closing map[gnet.Conn]*client // those of them who are to be disconnected then
}

// servePlain answers plain connections until the context ends.
func (s *Server) servePlain(ctx context.Context, patience func() time.Duration) error {
	l := &loop{server: s, hurry: make(chan struct{}, 1), open: map[gnet.Conn]*client{},
		watched: map[gnet.Conn]*client{}, closing: map[gnet.Conn]*client{},
		buffers: sync.Pool{New: func() any { return new([]byte) }}}
	// the kernel's part of an answer is as large as ours: with more loops each has fewer connections ready at a time
	n := max(1, runtime.GOMAXPROCS(0)/2)
	loops, err := gnet.NewClient(l, gnet.WithNumEventLoop(n), gnet.WithTCPKeepAlive(time.Minute),
		gnet.WithLogger(logger{s.options.Log}))
	if err == nil {
		err = loops.Start()
	}
	if err != nil {
		return fmt.Errorf("begin to serve at %s: %w", s.plain.Addr(), err)
	}
	looking, stop := context.WithCancel(context.WithoutCancel(ctx))
	var looks sync.WaitGroup
	looks.Go(func() { l.lookEach(looking) })
	err = s.accept(ctx, s.plain, func(c net.Conn) {
		if _, err := loops.Enroll(c); err != nil {
			s.complain("a client is not accepted", "error", err)
		}
	})
	stop()
	looks.Wait()
	l.drain(patience)
	if failed := loops.Stop(); failed != nil && err == nil {
		err = fmt.Errorf("end serving at %s: %w", s.plain.Addr(), failed)
	}
	return err
}

// OnOpen admits a connection.
func (l *loop) OnOpen(c gnet.Conn) ([]byte, gnet.Action) {
	admitted := l.server.admit(c.RemoteAddr().String())
	if admitted == nil {
		return []byte("-ERR max number of clients reached\r\n"), gnet.Close
	}
	c.SetContext(admitted)
	l.mu.Lock()
	l.open[c] = admitted
	l.mu.Unlock()
	if l.server.options.Check != nil {
		l.watch(c, admitted)
	}
	return nil, gnet.None
}

// OnClose forgets a connection.
func (l *loop) OnClose(c gnet.Conn, _ error) gnet.Action {
	if admitted, ok := c.Context().(*client); ok {
		l.server.leave(admitted)
		l.mu.Lock()
		delete(l.open, c)
		delete(l.watched, c)
		delete(l.closing, c)
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
	in, err := c.Next(-1) // nothing is left with gnet, which copies what is there each time
	if err != nil || len(in) == 0 || admitted.session.Closing() || admitted.last && admitted.before <= 0 {
		return gnet.None
	}
	admitted.before -= len(in)
	if len(admitted.rest) > 0 {
		admitted.rest = append(admitted.rest, in...)
		in = admitted.rest
	}
	left, err := l.answer(c, admitted, in)
	if err == nil {
		admitted.keep(in, left)
		err = l.server.hold(admitted, cap(admitted.rest))
	}
	switch {
	case err != nil:
		l.server.disconnect(admitted, err)
		return gnet.Close
	case admitted.session.Closing() && admitted.unsent == 0:
		return gnet.Close
	case admitted.unsent > 0 && !admitted.gone:
		l.watch(c, admitted)
	}
	return gnet.None
}

// answer carries out commands, and sends the answers.
func (l *loop) answer(c gnet.Conn, admitted *client, in []byte) (left []byte, err error) {
	answers := l.buffers.Get().(*[]byte)
	defer func() {
		if cap(*answers) <= largestBuffer {
			l.buffers.Put(answers)
		}
	}()
	for more := true; more; {
		var used int
		var out []byte
		used, out, more, err = l.server.answer(admitted, in, (*answers)[:0])
		if err != nil {
			return nil, err
		}
		in, *answers = in[used:], out
		if len(out) == 0 {
			continue
		}
		if _, err := c.Write(out); err != nil {
			return nil, fmt.Errorf("send answers: %w", err)
		}
		if err := l.server.owe(admitted, c.OutboundBuffered()); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// keptBytes is what a connection keeps of a buffer that is empty.
const keptBytes = 4 << 10

// keep keeps what is left of a client's bytes.
func (c *client) keep(in, left []byte) {
	switch {
	case len(left) == 0 && cap(c.rest) > keptBytes:
		c.rest = nil
	case len(c.rest) == 0 || len(left) < len(in): // else it is there
		c.rest = append(c.rest[:0], left...)
	}
}

// watch has a connection looked at each second, and soon if it is to be closed.
func (l *loop) watch(c gnet.Conn, admitted *client) {
	l.mu.Lock()
	if !admitted.watched {
		admitted.watched, admitted.stuck = true, time.Now()
		l.watched[c] = admitted
	}
	if admitted.session.Closing() {
		l.closing[c] = admitted
	}
	l.mu.Unlock()
	if admitted.session.Closing() {
		select {
		case l.hurry <- struct{}{}:
		default:
		}
	}
}

// closePause is between two looks at connections that are to be closed.
const closePause = 10 * time.Millisecond

// lookEach looks at connections that are watched until the context ends.
func (l *loop) lookEach(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	var soon <-chan time.Time
	for {
		of := l.closing
		select {
		case <-ctx.Done():
			return
		case <-l.hurry:
			if soon == nil {
				soon = time.After(closePause)
			}
			continue
		case <-second.C:
			of = l.watched
		case <-soon:
			soon = nil
		}
		l.mu.Lock()
		connections, closing := maps.Clone(of), len(l.closing)
		l.mu.Unlock()
		now := time.Now()
		l.each(connections, func(c gnet.Conn, admitted *client) { l.look(c, admitted, now) })
		if closing > 0 && soon == nil {
			soon = time.After(closePause)
		}
	}
}

// each does something with connections in the loops that they belong to.
func (l *loop) each(connections map[gnet.Conn]*client, do func(gnet.Conn, *client)) {
	for c, admitted := range connections {
		if admitted.asked.Swap(true) {
			continue // it has not come to the last time yet
		}
		err := c.EventLoop().Execute(context.Background(), gnet.RunnableFunc(func(context.Context) error {
			admitted.asked.Store(false)
			if !admitted.gone {
				do(c, admitted)
			}
			return nil
		}))
		if err != nil {
			admitted.asked.Store(false)
		}
	}
}

// look closes a connection whose client gives no password, fetches nothing, or has all its answers and wants no more.
func (l *loop) look(c gnet.Conn, admitted *client, now time.Time) {
	unsent := c.OutboundBuffered()
	if int64(unsent) != admitted.unsent {
		admitted.stuck = now
	}
	_ = l.server.owe(admitted, unsent) // less than before
	switch {
	case admitted.session.Closing() && unsent == 0, l.server.stranger(admitted, now):
		_ = c.EventLoop().Close(c)
	case unsent > 0 && now.Sub(admitted.stuck) > fetchPatience:
		l.server.disconnect(admitted, fmt.Errorf("it has fetched no answers for %s", fetchPatience))
		_ = c.EventLoop().Close(c)
	case unsent > 0: // it is looked at again
	case l.server.options.Check == nil || admitted.session.Known():
		admitted.watched = false
		l.mu.Lock()
		delete(l.watched, c)
		l.mu.Unlock()
	}
}

// drain lets clients have the answers to what has come, tells them that no more come, and lets them hang up. What
// comes later is not answered: who goes on sending would never be at an end.
func (l *loop) drain(patience func() time.Duration) {
	tick := time.NewTicker(closePause)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < patience(); <-tick.C {
		l.mu.Lock()
		open := maps.Clone(l.open)
		l.mu.Unlock()
		if len(open) == 0 {
			return
		}
		l.each(open, func(c gnet.Conn, admitted *client) {
			if !admitted.last {
				admitted.last = true
				admitted.before, _ = unix.IoctlGetInt(c.Fd(), unix.TIOCINQ) // 0: it has gone
			}
			switch {
			case !admitted.halved.IsZero():
				// while it goes on sending, closing would take back what it has not acknowledged
				underway, _ := unix.IoctlGetInt(c.Fd(), unix.TIOCOUTQ)
				if underway == 0 && time.Since(admitted.halved) > linger {
					_ = c.EventLoop().Close(c)
				}
			case c.OutboundBuffered() == 0 && admitted.before <= 0:
				admitted.halved = time.Now()
				_ = unix.Shutdown(c.Fd(), unix.SHUT_WR)
			}
		})
	}
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
