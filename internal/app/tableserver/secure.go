package tableserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	readBytes   = 64 << 10
	acceptPause = 50 * time.Millisecond
)

// serveTLS answers connections with TLS until the context ends.
func (s *Server) serveTLS(ctx context.Context, bound func(net.Addr)) error {
	listener, err := tls.Listen("tcp", s.options.TLSAddress, s.options.TLS)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", s.options.TLSAddress, err)
	}
	bound(listener.Addr())
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		c, err := listener.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && errors.Is(err, net.ErrClosed):
			return fmt.Errorf("serve at %s: %w", s.options.TLSAddress, err)
		case err != nil: // there are too many open files, or the client has gone
			s.options.Log.Warn("a client is not accepted", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		connections.Go(func() {
			defer c.Close()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			if err := s.serveSecure(c); err != nil && ctx.Err() == nil {
				s.options.Log.Warn("a client is disconnected", "from", c.RemoteAddr().String(), "error", err)
			}
		})
	}
}

// serveSecure answers one connection.
func (s *Server) serveSecure(conn net.Conn) error {
	c := s.admit(conn.RemoteAddr().String())
	if c == nil {
		return nil
	}
	defer s.leave(c)
	in, out := make([]byte, 0, readBytes), []byte(nil)
	for {
		if s.options.Check != nil && !c.session.Known() {
			if err := conn.SetReadDeadline(c.since.Add(strangerPatience)); err != nil {
				return err
			}
		} else if err := conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		if len(in) == cap(in) {
			in = append(make([]byte, 0, 2*cap(in)), in...)
		}
		n, err := conn.Read(in[len(in):cap(in)])
		if n == 0 && err != nil {
			return nil // it has gone, or has not said who it is
		}
		in = in[:len(in)+n]
		for more := true; more; {
			var used int
			used, out, more, err = s.answer(c, in, out[:0])
			if err != nil {
				return err
			}
			in = in[:copy(in, in[used:])]
			if len(out) > 0 {
				if err := conn.SetWriteDeadline(time.Now().Add(writePatience)); err != nil {
					return err
				}
				if _, err := conn.Write(out); err != nil {
					return fmt.Errorf("send answers: %w", err)
				}
			}
			if c.session.Closing() {
				return nil
			}
		}
		if len(in) == 0 && cap(in) > readBytes {
			in = make([]byte, 0, readBytes)
		}
		if cap(out) > largestBuffer {
			out = nil
		}
	}
}
