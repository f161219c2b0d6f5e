package host

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/progress"
	"thalweg/internal/test/effort"
)

// The calculation is the same on every machine, or rates say nothing.
func TestCalculationIsFixed(t *testing.T) {
	t.Parallel()
	var w work
	for range 3 {
		require.Equal(t, uint64(workResult), w.round())
	}
	require.IsIncreasing(t, w.numbers[:])
}

// A ring goes once through all lines, so that each load misses caches that are smaller.
func TestRingGoesThroughAll(t *testing.T) {
	t.Parallel()
	const lines, step = 1000, lineBytes / wordBytes
	words := make([]uint64, lines*step)
	require.NoError(t, ring(t.Context(), words, lines))
	seen := map[uint64]bool{}
	for at := uint64(0); !seen[at]; at = words[at] {
		require.Zero(t, at%step)
		seen[at] = true
	}
	require.Len(t, seen, lines)
}

func TestPassesTouchAll(t *testing.T) {
	t.Parallel()
	words := make([]uint64, 64)
	for i := range words {
		words[i] = uint64(1 + i)
	}
	require.Equal(t, uint64(64*65/2), readWords(words))
	copyWords(words)
	require.Equal(t, words[:32], words[32:])
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	m := newMeasuring(Options{})
	took := make([]time.Duration, 200)
	for i := range took {
		took[len(took)-1-i] = time.Duration(i+1) * time.Microsecond
	}
	m.addQuantiles("x", took)
	require.InDelta(t, 100, m.Figures["x_p50"].Value, 0)
	require.InDelta(t, 198, m.Figures["x_p99"].Value, 0)
	m.addQuantiles("y", took[:99])
	require.NotContains(t, m.Figures, "y_p99")
	require.Contains(t, m.why(t, "y_p99"), "99 only")
}

// The file has no name from the beginning, so nothing stays however the measurement ends.
func TestNothingStaysOfTheDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty := func() {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	m := newMeasuring(Options{Load: time.Second})
	phases := 0
	ctx := progress.Heard(t.Context(), func(progress.Progress) { phases++; empty() })
	require.NoError(t, m.disk(ctx, dir))
	require.Equal(t, 3, phases)
	for _, name := range []string{"disk_write_cached", "disk_read_cached", "disk_flush_p50"} {
		require.Positive(t, m.Figures[name].Value, name)
	}
	if _, direct := m.Figures["disk_read_direct"]; !direct {
		require.NotEmpty(t, m.why(t, "disk past the cache (direct)"))
	}
	require.Positive(t, m.Disk.Flushes)
	ended, stop := context.WithCancel(t.Context())
	ctx = progress.Heard(ended, func(p progress.Progress) {
		if p.Phase == "disk: direct" {
			stop()
		}
	})
	require.ErrorIs(t, m.disk(ctx, dir), context.Canceled)
	empty()
	require.ErrorContains(t, m.disk(t.Context(), filepath.Join(dir, "nowhere")), "nowhere")
}

// Each step ends when it is told to.
func TestMeasuringEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"clock", "full load", "memory: latency", "memory: bandwidth", "loopback: packets"} {
		ended, stop := context.WithCancel(t.Context())
		ctx := progress.Heard(ended, func(p progress.Progress) {
			if p.Phase == at {
				stop()
			}
		})
		load := 200 * time.Millisecond
		if at == "full load" {
			load = time.Hour
		}
		m := newMeasuring(Options{Load: load})
		m.each = min(m.each, 5*time.Millisecond)
		m.look()
		err := func() error {
			for _, do := range []func(context.Context) error{m.clock, m.fullLoad, m.memory, m.loopback} {
				m.tell(ctx, "clock", 0, 0)
				if err := do(ctx); err != nil {
					return err
				}
			}
			return nil
		}()
		require.ErrorIs(t, err, context.Canceled, at)
		stop()
	}
}

func listening(t *testing.T, token string) *Listener {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0", []byte(token))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := l.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wait.Wait() })
	return l
}

const sharedToken = "0123456789abcdef"

func TestNetworkToAPeer(t *testing.T) {
	t.Parallel()
	l := listening(t, sharedToken)
	m := newMeasuring(Options{Load: 3 * time.Second, Peer: &Other{l.Addr(), []byte(sharedToken)}})
	require.NoError(t, m.toPeer(t.Context()))
	for _, name := range []string{"peer_round_trip_p50", "peer_sent", "peer_received", "peer_packets"} {
		require.Positive(t, m.Figures[name].Value, name)
	}
	require.Equal(t, "peer", m.Interrupts[0].During)
}

// Packets count that have the key of who measures, and no others.
func TestPacketsAreCounted(t *testing.T) {
	t.Parallel()
	l := listening(t, sharedToken)
	conn, release, err := Other{l.Addr(), []byte(sharedToken)}.dial(t.Context(), wantPackets, time.Minute)
	require.NoError(t, err)
	defer release()
	packet := make([]byte, packetBytes)
	_, err = conn.Read(packet[:keyBytes])
	require.NoError(t, err)
	udp, err := net.Dial("udp", l.Addr())
	require.NoError(t, err)
	defer func() { require.NoError(t, udp.Close()) }()
	send := func(b []byte) {
		_, err := udp.Write(b)
		require.NoError(t, err)
	}
	for range 7 {
		send(packet)
	}
	send(packet[:40])
	send(make([]byte, packetBytes))
	send(append(packet, 0))
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.packets[[keyBytes]byte(packet[:keyBytes])].n.Load() == 7
	}, effort.Patience, time.Millisecond)
	send(packet)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.packets[[keyBytes]byte(packet[:keyBytes])].n.Load() == 8
	}, effort.Patience, time.Millisecond)
	_, err = conn.Write([]byte{0})
	require.NoError(t, err)
	n, took, err := told(conn)
	require.NoError(t, err)
	require.EqualValues(t, 8, n)
	require.Positive(t, took)
}

func TestPeersWithAnotherToken(t *testing.T) {
	t.Parallel()
	l := listening(t, sharedToken)
	m := newMeasuring(Options{Load: time.Second, Peer: &Other{l.Addr(), []byte("another token, as long")}})
	require.ErrorContains(t, m.toPeer(t.Context()), "does not take the token")
	_, err := Listen(t.Context(), "127.0.0.1:0", []byte("short"))
	require.ErrorContains(t, err, "16 at least")

	other, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for _, answer := range []string{"HTTP/1.1 400 Bad Request\r\n\r\nsome more text, so that it is long enough",
			greeting + "a nonce of a side that has no token\n" + "and a code that is none of what it ought to be"} {
			conn, err := other.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write([]byte(answer))
			_, _ = conn.Read(make([]byte, 256))
			_ = conn.Close()
		}
	})
	defer wait.Wait()
	defer func() { require.NoError(t, other.Close()) }()
	m.peer.Addr = other.Addr().String()
	require.ErrorContains(t, m.toPeer(t.Context()), "nothing answers there as")
	require.ErrorContains(t, m.toPeer(t.Context()), "does not know the token itself")
}

func TestSpeedBesideAReference(t *testing.T) {
	t.Parallel()
	of := func(rate float64) Result {
		m := newMeasuring(Options{Machine: "c8g.large"})
		m.add("core_rate_loaded", "rounds/s", rate)
		return m.Result
	}
	r, was := of(1500), of(1000)
	require.NoError(t, r.Against(was, "a.json"))
	require.InDelta(t, 1.5, r.CoreSpeed, 1e-12)
	was.Facts.Compiler = "go1.2"
	require.NoError(t, r.Against(was, "a.json"))
	require.Contains(t, r.Unseen[0].Why, "go1.2")
	was.Calculation++
	require.ErrorContains(t, r.Against(was, "a.json"), "they cannot be compared")
	require.ErrorContains(t, r.Against(Result{}, "a.json"), "form 0")
	none := of(0)
	require.ErrorContains(t, r.Against(none, "a.json"), "no figure core_rate_loaded")
}
