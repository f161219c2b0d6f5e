package runner_test

import (
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a toll gate does with the message that it waits for.
const (
	beforeMessage = "before" // the server never gets it
	behindMessage = "behind" // the server gets it, and the answer that comes next is lost
)

// tollGate stands between a process and a database, and lets messages through: but when one
// of them comes, it does something.
type tollGate struct {
	at     string // address of a database, by way of the gate
	server string

	mu     sync.Mutex
	count  int // messages that have come
	wanted int // the one that is waited for; 0: none any more
	when   string
	do     func()
}

// newTollGate opens a gate to the database of an address.
func newTollGate(t *testing.T, at string) *tollGate {
	t.Helper()
	u, err := url.Parse(at)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &tollGate{server: u.Host}
	u.Host = l.Addr().String()
	g.at = u.String()
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { g.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return g
}

// arm waits for a message, counted from 1 on.
func (g *tollGate) arm(wanted int, when string, do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count, g.wanted, g.when, g.do = 0, wanted, when, do
}

// passed reports whether the message that was waited for has come.
func (g *tollGate) passed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.wanted == 0
}

// take reports whether a message is the one.
func (g *tollGate) take() (string, func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count++; g.count != g.wanted {
		return "", nil
	}
	g.wanted = 0
	return g.when, g.do
}

func (g *tollGate) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer server.Close()
	lost := make(chan func(), 1) // what is done when the answer comes
	var back sync.WaitGroup
	back.Go(func() {
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			select {
			case do := <-lost:
				do()
				return
			default:
			}
			if _, failed := client.Write(buf[:n]); err != nil || failed != nil {
				return
			}
		}
	})
	defer back.Wait()
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		when, do := g.take()
		if when == beforeMessage {
			do()
			return
		}
		if when == behindMessage {
			lost <- do
		}
		if _, err := server.Write(buf[:n]); err != nil { // some messages have no answer: then it is that to the next
			return
		}
	}
}
