package remotetest

import (
	"io"
	"net"
	"sync"

	"github.com/stretchr/testify/require"
)

// Proxy passes connections on to a server, or breaks them.
type Proxy struct {
	Addr   string
	target string
	wg     sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]bool
	plans  []Break // one for each connection to come
	count  int

	stalled chan struct{} // closed when a connection has stopped passing bytes on
	held    sync.RWMutex  // by Hold; by who passes bytes on, for reading
}

// Break cuts a connection after so many bytes from the server (Down) or to it (Up); 0 never.
type Break struct {
	Down, Up int64
	Stall    bool // stop passing bytes on instead of closing
}

// NewProxy starts a proxy to an address.
func NewProxy(t TB, target string) *Proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{Addr: l.Addr().String(), target: target, open: map[net.Conn]bool{}, stalled: make(chan struct{})}
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// Plan says what happens to the next connections, one after another.
func (p *Proxy) Plan(list ...Break) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans = append(p.plans, list...)
}

// Stalled is closed when the first connection has stopped passing bytes on.
func (p *Proxy) Stalled() <-chan struct{} { return p.stalled }

// Cut closes the connections that are open. Others can be made.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
	clear(p.open)
}

// Hold passes no bytes on until it is released, or the test ends. Connections can be made.
func (p *Proxy) Hold(t TB) (release func()) {
	p.held.Lock()
	release = sync.OnceFunc(p.held.Unlock)
	t.Cleanup(release)
	return release
}

// gated is a connection to which bytes are passed on unless they are held.
type gated struct {
	net.Conn
	p *Proxy
}

// Write implements io.Writer.
func (g gated) Write(b []byte) (int, error) {
	g.p.held.RLock()
	defer g.p.held.RUnlock()
	return g.Conn.Write(b)
}

// Connections returns the number of connections so far.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

func (p *Proxy) pass(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.open[client], p.open[server] = true, true
	p.count++
	var b Break
	if len(p.plans) > 0 {
		b, p.plans = p.plans[0], p.plans[1:]
	}
	p.mu.Unlock()
	end := func() {
		_ = client.Close()
		_ = server.Close()
	}
	var stall func()
	if b.Stall {
		stall = p.tellStalled
	}
	var wg sync.WaitGroup
	wg.Go(func() { copyUntil(gated{client, p}, server, b.Down, stall, end) })
	wg.Go(func() { copyUntil(gated{server, p}, client, b.Up, stall, end) })
	wg.Wait()
}

func (p *Proxy) tellStalled() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stalled:
	default:
		close(p.stalled)
	}
}

// copyUntil copies at most bytes of them (0: all) and then ends both
// connections, or calls stall and swallows what comes.
func copyUntil(to io.Writer, from io.Reader, bytes int64, stall, end func()) {
	if bytes == 0 {
		_, _ = io.Copy(to, from)
		end()
		return
	}
	_, err := io.Copy(to, io.LimitReader(from, bytes))
	if err == nil && stall != nil {
		stall()
		_, _ = io.Copy(io.Discard, from)
	}
	end()
}
