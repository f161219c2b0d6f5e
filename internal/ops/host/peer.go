package host

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
)

// Of the protocol between two sides of a measurement. Both know a token, which is never sent: each proves it with a
// code over what both have sent. Then the side that measures names what it wants by a byte.
const (
	greeting    = "thalweg-bench-host 1\n"
	nonceBytes  = 32
	helloWait   = 5 * time.Second
	sessionMost = 5 * time.Minute
	sessionsAll = 64
	replyBytes  = 16 // how many, and in how many nanoseconds
	packetBytes = 64
	keyBytes    = 16
	TokenLeast  = 16 // bytes that a token must have

	wantEcho     = 'e'
	wantUpload   = 'u'
	wantDownload = 'd'
	wantPackets  = 'p'
)

func proof(token []byte, side string, nonces ...[]byte) []byte {
	mac := hmac.New(sha256.New, token)
	_, _ = io.WriteString(mac, greeting+side) // a hash takes all
	for _, n := range nonces {
		_, _ = mac.Write(n)
	}
	return mac.Sum(nil)
}

// Listener answers those who measure the network to this machine.
type Listener struct {
	token   []byte
	tcp     net.Listener
	udp     net.PacketConn
	slots   chan struct{}
	mu      sync.Mutex
	packets map[[keyBytes]byte]*received
}

// received counts the packets of one who measures.
type received struct {
	n           atomic.Int64
	first, last atomic.Int64 // nanoseconds of the clock
}

// Listen opens a listener on an address, for TCP and UDP. The caller serves, which closes it.
func Listen(ctx context.Context, addr string, token []byte) (*Listener, error) {
	if len(token) < TokenLeast {
		return nil, fault.New(fault.Script, "the token has %d bytes; it must have %d at least", len(token), TokenLeast)
	}
	failed := func(err error) error {
		return &fault.Error{Kind: fault.Environment, Message: "listen on " + addr, Err: err}
	}
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, failed(err)
	}
	udp, err := lc.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		_ = tcp.Close()
		return nil, failed(err)
	}
	return &Listener{token: token, tcp: tcp, udp: udp, slots: make(chan struct{}, sessionsAll),
		packets: map[[keyBytes]byte]*received{}}, nil
}

// Addr is where it listens.
func (l *Listener) Addr() string { return l.tcp.Addr().String() }

// Serve answers until the context ends.
func (l *Listener) Serve(ctx context.Context) error {
	sessions, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer stop()
	release := context.AfterFunc(sessions, func() { _, _ = l.tcp.Close(), l.udp.Close() })
	defer release()
	wait.Go(l.receive)
	for {
		conn, err := l.tcp.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			_ = l.udp.Close()
			return &fault.Error{Kind: fault.Environment, Message: "accept connections on " + l.Addr(), Err: err}
		}
		select {
		case l.slots <- struct{}{}:
		default:
			_ = conn.Close() // there are enough
			continue
		}
		wait.Go(func() {
			defer func() { <-l.slots }()
			cut := context.AfterFunc(sessions, func() { _ = conn.Close() })
			defer cut()
			defer func() { _ = conn.Close() }()
			_ = l.session(conn) // whoever is on the other side sees that it has ended
		})
	}
}

func (l *Listener) session(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	ours := make([]byte, nonceBytes)
	_, _ = rand.Read(ours) // it does not fail
	if _, err := conn.Write(append([]byte(greeting), ours...)); err != nil {
		return err
	}
	said := make([]byte, nonceBytes+sha256.Size+1)
	if _, err := io.ReadFull(conn, said); err != nil {
		return err
	}
	theirs, code, want := said[:nonceBytes], said[nonceBytes:nonceBytes+sha256.Size], said[nonceBytes+sha256.Size]
	if !hmac.Equal(code, proof(l.token, "client", ours, theirs, []byte{want})) {
		return errors.New("another token")
	}
	if _, err := conn.Write(proof(l.token, "server", ours, theirs, []byte{want})); err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(sessionMost)); err != nil {
		return err
	}
	switch want {
	case wantEcho:
		return echo(conn)
	case wantUpload:
		return swallow(conn)
	case wantDownload:
		return pour(conn)
	case wantPackets:
		return l.countPackets(conn)
	}
	return fmt.Errorf("nothing is known of %q", want)
}

func echo(conn net.Conn) error {
	message := make([]byte, packetBytes)
	for {
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
		if _, err := conn.Write(message); err != nil {
			return err
		}
	}
}

// swallow reads until the other side has sent all, and says how much that was, and in which time.
func swallow(conn net.Conn) error {
	buf := make([]byte, blockBytes/4)
	var begun time.Time
	total := int64(0)
	for {
		n, err := conn.Read(buf)
		if begun.IsZero() {
			begun = time.Now()
		}
		total += int64(n)
		if err == io.EOF {
			return reply(conn, total, time.Since(begun))
		}
		if err != nil {
			return err
		}
	}
}

// pour writes until the other side has enough.
func pour(conn net.Conn) error {
	buf := make([]byte, blockBytes/4)
	for {
		if _, err := conn.Write(buf); err != nil {
			return err
		}
	}
}

func reply(conn net.Conn, n int64, took time.Duration) error {
	var out [replyBytes]byte
	binary.BigEndian.PutUint64(out[:], uint64(n))
	binary.BigEndian.PutUint64(out[replyBytes/2:], uint64(took))
	_, err := conn.Write(out[:])
	return err
}

// countPackets names a key, counts packets that begin with it, and says at the end how many came.
func (l *Listener) countPackets(conn net.Conn) error {
	var key [keyBytes]byte
	_, _ = rand.Read(key[:]) // it does not fail
	got := &received{}
	l.mu.Lock()
	l.packets[key] = got
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.packets, key)
		l.mu.Unlock()
	}()
	if _, err := conn.Write(key[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	return reply(conn, got.n.Load(), time.Duration(got.last.Load()-got.first.Load()))
}

// receive counts packets until the socket is closed.
func (l *Listener) receive() {
	udp, is := l.udp.(*net.UDPConn)
	if !is {
		return
	}
	buf := make([]byte, packetBytes+1)
	for {
		n, _, err := udp.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if n != packetBytes {
			continue
		}
		l.mu.Lock()
		got := l.packets[[keyBytes]byte(buf[:keyBytes])]
		l.mu.Unlock()
		if got == nil {
			continue
		}
		now := time.Now().UnixNano()
		if got.n.Add(1) == 1 {
			got.first.Store(now)
		}
		got.last.Store(now)
	}
}
