package tableserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const (
	readBytes = 16 << 10 // a record of TLS
	sendBytes = 1 << 20  // are given fetchPatience
	lastReads = 100 * time.Millisecond
)

// serveTLS answers connections with TLS until the context ends.
func (s *Server) serveTLS(ctx context.Context, patience func() time.Duration) error {
	var connections sync.WaitGroup
	defer connections.Wait()
	return s.accept(ctx, s.secure, func(accepted net.Conn) {
		connections.Go(func() {
			conn := tls.Server(accepted, s.options.TLS)
			defer conn.Close()
			stop := context.AfterFunc(ctx, func() {
				conn.SetReadDeadline(time.Now().Add(lastReads))
				time.AfterFunc(patience(), func() { accepted.Close() })
			})
			defer stop()
			c := s.admit(accepted.RemoteAddr().String())
			if c == nil {
				return
			}
			defer s.leave(c)
			if err := s.serveSecure(ctx, conn, c); err != nil {
				s.disconnect(c, err)
				return
			}
			bye(conn)
		})
	})
}

// bye says that no more answers come, and lets the client hang up.
func bye(conn *tls.Conn) {
	_ = conn.CloseWrite()
	plain, ok := conn.NetConn().(*net.TCPConn)
	if !ok || plain.CloseWrite() != nil {
		return
	}
	_ = plain.SetReadDeadline(time.Now().Add(linger))
	_, _ = io.Copy(io.Discard, plain)
}

// serveSecure answers one connection.
func (s *Server) serveSecure(ctx context.Context, conn *tls.Conn, c *client) error {
	hands, stop := context.WithTimeout(ctx, strangerPatience)
	defer stop()
	if err := conn.HandshakeContext(hands); err != nil {
		return fmt.Errorf("agree on TLS: %w", err)
	}
	known := s.options.Check == nil
	if !known {
		if err := s.deadline(ctx, conn, c.since.Add(strangerPatience)); err != nil {
			return err
		}
	}
	in, out := make([]byte, 0, readBytes), []byte(nil)
	for {
		if len(in) == cap(in) {
			in = append(make([]byte, 0, 2*cap(in)), in...)
		}
		n, err := conn.Read(in[len(in):cap(in)])
		if n == 0 && err != nil {
			return nil // it has gone, has not said who it is, or the server ends
		}
		in = in[:len(in)+n]
		for more := true; more; {
			var used int
			used, out, more, err = s.answer(c, in, out[:0])
			if err == nil {
				in = in[:copy(in, in[used:])]
				err = s.send(conn, c, out)
			}
			if err != nil || c.session.Closing() {
				return err
			}
		}
		if len(in) == 0 && cap(in) > readBytes {
			in = make([]byte, 0, readBytes)
		}
		if cap(out) > largestBuffer {
			out = nil
		}
		if err := s.hold(c, cap(in)); err != nil {
			return err
		}
		if !known && c.session.Known() {
			known = true
			if err := s.deadline(ctx, conn, time.Time{}); err != nil {
				return err
			}
		}
	}
}

// deadline sets until when something is read, unless the server ends.
func (s *Server) deadline(ctx context.Context, conn net.Conn, until time.Time) error {
	err := conn.SetReadDeadline(until)
	if ctx.Err() != nil {
		err = conn.SetReadDeadline(time.Now().Add(lastReads))
	}
	return err
}

// send sends answers, which count as long as the client has not fetched them.
func (s *Server) send(conn net.Conn, c *client, out []byte) error {
	for len(out) > 0 {
		if err := s.owe(c, len(out)); err != nil {
			return err
		}
		if err := conn.SetWriteDeadline(time.Now().Add(fetchPatience)); err != nil {
			return err
		}
		n, err := conn.Write(out[:min(len(out), sendBytes)])
		if err != nil {
			return fmt.Errorf("send answers: %w", err)
		}
		out = out[n:]
	}
	return s.owe(c, 0)
}
