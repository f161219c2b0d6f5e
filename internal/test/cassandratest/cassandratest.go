package cassandratest

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/cassandra"
)

// variable names the node that tests use.
const variable = "THALWEG_TEST_CASSANDRA"

// TB is the part of testing.TB that helpers of tests, benchmarks and examples use.
type TB interface {
	require.TestingT
	Helper()
	Cleanup(f func())
	Skipf(format string, args ...any)
	Logf(format string, args ...any)
}

// Node is the address of the node, or the end of the test.
func Node(t TB) string {
	t.Helper()
	node := os.Getenv(variable)
	if node == "" {
		t.Skipf("%s is not set: no Cassandra node to test with", variable)
	}
	return node
}

// Keyspace makes a keyspace with tables, which goes with the test, and gives a
// configuration for sessions in it.
func Keyspace(t TB, tables []string) cassandra.Config {
	t.Helper()
	// making tables takes long on a busy machine
	cfg := cassandra.Config{Hosts: []string{Node(t)}, Timeout: time.Minute}
	admin, err := cassandra.Open(cfg)
	require.NoError(t, err)
	ctx := context.Background()
	cfg.Keyspace = "test_" + strings.ToLower(rand.Text())
	require.NoError(t, cassandra.MakeKeyspace(ctx, admin, cfg.Keyspace, map[string]int{"": 1}))
	t.Cleanup(func() {
		if err := admin.Make(ctx, []string{"DROP KEYSPACE " + cfg.Keyspace}); err != nil {
			t.Logf("keyspace %s stays: %v", cfg.Keyspace, err)
		}
		admin.Close()
	})
	s, err := cassandra.Open(cfg)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Make(ctx, tables))
	return cfg
}

// Open opens a session that the test closes.
func Open(t TB, cfg cassandra.Config) *cassandra.Session {
	t.Helper()
	s, err := cassandra.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Line connects to nodes (see cassandra.Config.Dial), can be cut, and can spoil answers.
type Line struct {
	mu     sync.Mutex
	down   bool
	open   map[net.Conn]bool
	answer func(answer []byte) (left int)
}

var errCut = &net.OpError{Op: "dial", Net: "tcp", Err: errors.Join(errors.New("the line is cut"), syscall.ECONNREFUSED)}

// Dial is for cassandra.Config.
func (l *Line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	down := l.down
	l.mu.Unlock()
	if down {
		return nil, errCut
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down { // it was cut while this one was being made
		_ = c.Close()
		return nil, errCut
	}
	if l.open == nil {
		l.open = map[net.Conn]bool{}
	}
	l.open[c] = true
	return answered{c, l}, nil
}

// Answer has all that nodes answer from now on changed by a function, which says how much of
// it is left; nil: it stays as it is.
func (l *Line) Answer(by func(answer []byte) (left int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = by
}

// answered is a connection of a line.
type answered struct {
	net.Conn
	l *Line
}

// Read implements net.Conn.
func (a answered) Read(p []byte) (int, error) {
	for {
		n, err := a.Conn.Read(p)
		a.l.mu.Lock()
		by := a.l.answer
		a.l.mu.Unlock()
		if err != nil || by == nil {
			return n, err
		}
		if n = by(p[:n]); n > 0 {
			return n, nil
		}
	}
}

// Cut ends all connections; if it is down, none can be made until it is not.
func (l *Line) Cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for c := range l.open {
		_ = c.Close()
		delete(l.open, c)
	}
}
