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

// Other is the other side of a measurement of the network.
type Other struct {
	Addr  string
	Token []byte
}

// patience is how much longer than it measures one waits for the other side.
const patience = 10 * time.Second

// streamsMost is how many connections are used at once: clouds bound what one of them carries.
const streamsMost = 8

// loopback measures the network within this machine.
func (m *measuring) loopback(ctx context.Context) error {
	token := make([]byte, TokenLeast)
	_, _ = rand.Read(token) // it does not fail
	l, err := Listen(ctx, "127.0.0.1:0", token)
	if err != nil {
		m.miss("loopback", err.Error())
		return nil
	}
	serving, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { _ = l.Serve(serving) }) // who measures sees that it has ended
	defer wait.Wait()
	defer stop()
	return m.network(ctx, "loopback", Other{l.Addr(), token})
}

// network measures round trips, bytes and packets to another side.
func (m *measuring) network(ctx context.Context, name string, to Other) error {
	before := m.root.count()
	for _, step := range []struct {
		name string
		do   func(context.Context, string, Other) error
	}{{"round trips", m.roundTrips}, {"bytes", m.bytes}, {"packets", m.packets}} {
		m.tell(ctx, name+": "+step.name, 0, 0)
		if err := step.do(ctx, name, to); err != nil {
			return to.failed(ctx, "measure "+step.name+" to", err)
		}
	}
	m.Interrupts = append(m.Interrupts, between(before, m.root.count(), m.Facts.Cards, name))
	return nil
}

// failed says what could not be done with the other side; if the context has ended, that is why.
func (to Other) failed(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &fault.Error{Kind: fault.Environment, Message: what + " " + to.Addr, Err: err}
}

// dial connects, and has both sides prove that they know the token.
func (to Other) dial(ctx context.Context, want byte, most time.Duration) (conn net.Conn, release func(), err error) {
	d := net.Dialer{Timeout: helloWait}
	if conn, err = d.DialContext(ctx, "tcp", to.Addr); err != nil {
		return nil, nil, err
	}
	cut := context.AfterFunc(ctx, func() { _ = conn.Close() })
	release = func() { cut(); _ = conn.Close() }
	if err := to.hello(conn, want); err != nil {
		release()
		return nil, nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(most + patience)); err != nil {
		release()
		return nil, nil, err
	}
	return conn, release, nil
}

func (to Other) hello(conn net.Conn, want byte) error {
	if err := conn.SetDeadline(time.Now().Add(helloWait)); err != nil {
		return err
	}
	said := make([]byte, len(greeting)+nonceBytes)
	if _, err := io.ReadFull(conn, said); err != nil {
		return fmt.Errorf("it does not greet: %w", err)
	}
	if string(said[:len(greeting)]) != greeting {
		return errors.New("nothing answers there as {{do bench-host listen=}} of this version does")
	}
	theirs, ours := said[len(greeting):], make([]byte, nonceBytes)
	_, _ = rand.Read(ours) // it does not fail
	out := append(append(append([]byte{}, ours...), proof(to.Token, "client", theirs, ours, []byte{want})...), want)
	if _, err := conn.Write(out); err != nil {
		return err
	}
	code := make([]byte, sha256.Size)
	if _, err := io.ReadFull(conn, code); err != nil {
		return fmt.Errorf("it does not take the token, or measures for others: %w", err)
	}
	if !hmac.Equal(code, proof(to.Token, "server", theirs, ours, []byte{want})) {
		return errors.New("it does not know the token itself")
	}
	return nil
}

func (m *measuring) roundTrips(ctx context.Context, name string, to Other) error {
	conn, release, err := to.dial(ctx, wantEcho, m.each)
	if err != nil {
		return err
	}
	defer release()
	message := make([]byte, packetBytes)
	var took []time.Duration
	const warm = 10
	for begun := time.Now(); len(took) < warm+1 || time.Since(begun) < m.each; {
		at := time.Now()
		if _, err := conn.Write(message); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, message); err != nil {
			return err
		}
		took = append(took, time.Since(at))
	}
	m.addQuantiles(name+"_round_trip", took[warm:])
	return nil
}

// bytes measures both directions over several connections.
func (m *measuring) bytes(ctx context.Context, name string, to Other) error {
	for _, way := range []struct {
		name string
		want byte
		do   func(net.Conn, time.Time) (float64, error)
	}{{"_sent", wantUpload, upload}, {"_received", wantDownload, download}} {
		var rates []float64
		for range m.repeats {
			rate, err := m.streams(ctx, to, way.want, way.do)
			if err != nil {
				return err
			}
			rates = append(rates, rate/micro)
		}
		m.add(name+way.name, "MB/s", rates...)
	}
	return nil
}

// streams adds up what several connections carry at once, in bytes a second.
func (m *measuring) streams(ctx context.Context, to Other, want byte, do func(net.Conn, time.Time) (float64, error)) (
	float64, error) {
	n := min(m.threads, streamsMost)
	conns := make([]net.Conn, n)
	for i := range n {
		conn, release, err := to.dial(ctx, want, m.each)
		if err != nil {
			return 0, err
		}
		defer release()
		conns[i] = conn
	}
	rates, errs := make([]float64, n), make([]error, n)
	until := time.Now().Add(m.each)
	var wait sync.WaitGroup
	for i, conn := range conns {
		wait.Go(func() { rates[i], errs[i] = do(conn, until) })
	}
	wait.Wait()
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum, errors.Join(errs...)
}

func upload(conn net.Conn, until time.Time) (float64, error) {
	buf := make([]byte, blockBytes/4)
	for time.Now().Before(until) {
		if _, err := conn.Write(buf); err != nil {
			return 0, err
		}
	}
	if tcp, is := conn.(*net.TCPConn); is {
		if err := tcp.CloseWrite(); err != nil {
			return 0, err
		}
	}
	n, took, err := told(conn)
	if err != nil || took <= 0 {
		return 0, err
	}
	return float64(n) / took.Seconds(), nil
}

// told reads how much the other side has received, and in which time.
func told(conn net.Conn) (n int64, took time.Duration, err error) {
	var in [replyBytes]byte
	if _, err := io.ReadFull(conn, in[:]); err != nil {
		return 0, 0, err
	}
	return int64(binary.BigEndian.Uint64(in[:])), time.Duration(binary.BigEndian.Uint64(in[replyBytes/2:])), nil
}

func download(conn net.Conn, until time.Time) (float64, error) {
	buf := make([]byte, blockBytes/4)
	begun, n := time.Now(), 0
	for time.Now().Before(until) {
		got, err := conn.Read(buf)
		if n += got; err != nil {
			return 0, err
		}
	}
	return float64(n) / time.Since(begun).Seconds(), nil
}

// packets sends small packets as fast as it can, and has the other side count those that come.
func (m *measuring) packets(ctx context.Context, name string, to Other) error {
	var rates []float64
	sent, came := int64(0), int64(0)
	for range m.repeats {
		s, n, took, err := m.volley(ctx, to)
		if err != nil {
			return err
		}
		if sent, came = sent+s, came+n; took > 0 {
			rates = append(rates, float64(n)/took.Seconds())
		}
	}
	m.add(name+"_packets", "packets/s", rates...)
	if came == 0 {
		m.miss(name+"_packets", fmt.Sprintf("none of %d packets (UDP) came: a firewall may keep them", sent))
	}
	return nil
}

// volley sends packets for a while over one connected socket by thread.
func (m *measuring) volley(ctx context.Context, to Other) (sent, came int64, took time.Duration, err error) {
	conn, release, err := to.dial(ctx, wantPackets, m.each)
	if err != nil {
		return 0, 0, 0, err
	}
	defer release()
	packet := make([]byte, packetBytes)
	if _, err := io.ReadFull(conn, packet[:keyBytes]); err != nil {
		return 0, 0, 0, err
	}
	n := min(m.threads, streamsMost)
	errs := make([]error, n)
	var count atomic.Int64
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() {
			s, err := m.shoot(ctx, conn.RemoteAddr().String(), packet)
			count.Add(s)
			errs[i] = err
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, 0, 0, err
	}
	if err := m.settle(ctx); err != nil {
		return 0, 0, 0, err
	}
	if _, err := conn.Write([]byte{0}); err != nil {
		return 0, 0, 0, err
	}
	came, took, err = told(conn)
	return count.Load(), came, took, err
}

// settle waits for packets that are still under way.
func (m *measuring) settle(ctx context.Context) error {
	const wait = 50 * time.Millisecond
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

func (m *measuring) shoot(ctx context.Context, addr string, packet []byte) (sent int64, err error) {
	var d net.Dialer
	udp, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = udp.Close() }()
	const batch = 64
	for begun := time.Now(); time.Since(begun) < m.each && ctx.Err() == nil; {
		for range batch {
			if _, err := udp.Write(packet); err == nil {
				sent++ // else a queue is full, or nobody is there: the other side counts
			}
		}
	}
	return sent, ctx.Err()
}
