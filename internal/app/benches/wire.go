package benches

import (
	"context"
	"net"
	"sync/atomic"
)

// wire counts the bytes of connections.
type wire struct{ sent, received atomic.Int64 }

// dial connects, and counts.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: connectPatience}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return counted{conn, w}, nil
}

// counted is a connection whose bytes are counted.
type counted struct {
	net.Conn
	by *wire
}

// Read implements net.Conn.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.by.sent.Add(int64(n))
	return n, err
}
