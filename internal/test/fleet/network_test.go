package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// separate reports whether workers can have networks and host names of their own.
func separate() bool { return runtime.GOOS == "linux" && os.Geteuid() == 0 }

// network is a worker's own: a namespace with nothing but a loopback, on which
// the services' addresses are listened at, and led to the real ones.
type network struct {
	starts chan func() // that are called in the namespace
	lines  []*line
}

// line leads connections to one service.
type line struct {
	to     string
	listen net.Listener
	delay  atomic.Int64 // of each piece, either way
	still  atomic.Bool  // connections stay, and nothing passes
	down   atomic.Bool  // connections end, and none are taken
	mu     sync.Mutex
	open   map[net.Conn]bool
	all    sync.WaitGroup
}

// newNetwork makes a network that leads to some addresses.
func newNetwork(ends []string) (*network, error) {
	n := &network{starts: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its namespace
		if err := n.make(ends); err != nil {
			made <- err
			return
		}
		made <- nil
		for do := range n.starts {
			do()
		}
	}()
	return n, <-made
}

// make makes the namespace, and listens in it. What has been made in it stays in it.
func (n *network) make(ends []string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a network: %w", err)
	}
	if err := run("ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	for _, end := range ends {
		if host, _, _ := net.SplitHostPort(end); !strings.HasPrefix(host, "127.") {
			if err := run("ip", "addr", "replace", host+"/32", "dev", "lo"); err != nil {
				return err
			}
		}
		listen, err := net.Listen("tcp", end)
		if err != nil {
			return fmt.Errorf("stand for %s: %w", end, err)
		}
		l := &line{to: end, listen: listen, open: map[net.Conn]bool{}}
		n.lines = append(n.lines, l)
		go l.accept()
	}
	return nil
}

func (n *network) close() {
	close(n.starts)
	for _, l := range n.lines {
		_ = l.listen.Close()
		l.cut()
		l.all.Wait()
	}
}

func (l *line) accept() {
	for {
		c, err := l.listen.Accept()
		if err != nil {
			return
		}
		if l.down.Load() {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
			continue
		}
		l.all.Go(func() { l.lead(c) })
	}
}

// lead connects, in the network of the tests, and passes on what comes.
func (l *line) lead(c net.Conn) {
	defer c.Close()
	to, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "tcp", l.to)
	if err != nil {
		_ = c.(*net.TCPConn).SetLinger(0)
		return
	}
	defer to.Close()
	l.mu.Lock()
	l.open[c], l.open[to] = true, true
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pass(to, c) })
	both.Go(func() { l.pass(c, to) })
	both.Wait()
	l.mu.Lock()
	delete(l.open, c)
	delete(l.open, to)
	l.mu.Unlock()
}

// pass passes on what comes from one end, until either is closed.
func (l *line) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		k, err := from.Read(buf)
		for l.still.Load() && !l.closed(from) {
			pause(context.Background(), stillEvery)
		}
		if d := time.Duration(l.delay.Load()); d > 0 {
			pause(context.Background(), d)
		}
		if k > 0 {
			if _, werr := to.Write(buf[:k]); werr != nil {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = to.(*net.TCPConn).SetLinger(0)
			}
			return
		}
	}
}

const stillEvery = 20 * time.Millisecond

func (l *line) closed(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.open[c]
}

// cut ends all connections.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
		delete(l.open, c)
	}
}

// within calls do in a network, or in the machine's, on a thread that stays until
// do has ended: processes that it starts end with their thread.
func within(n *network, do func() (wait func())) {
	if n == nil {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			do()()
		}()
		return
	}
	n.starts <- func() { go do()() }
}
