package cassandra_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/effort"
)

func TestPasses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":       {nil, false},
		"silence":        {gocql.ErrTimeoutNoResponse, true},
		"closed":         {gocql.ErrConnectionClosed, true},
		"nobody there":   {gocql.ErrNoConnections, true},
		"no streams":     {gocql.ErrNoStreams, true},
		"heartbeat":      {errors.New("gocql: heartbeat failed"), true},
		"framing":        {errors.New("gocql: crc24 mismatch in frame header, computed: 1, got: 2"), true},
		"half an answer": {fmt.Errorf("gocql: failed to read uncompressed frame, err: %w", io.ErrUnexpectedEOF), true},
		"protocol": {gocql.NewErrProtocol("unexpected protocol version in response: got %d expected %d", 3, 5),
			true},
		"late writing": {&net.OpError{Op: "write", Err: os.ErrDeadlineExceeded}, true},
		// its code cannot be set from here: that of a server's error
		"server":               {&gocql.RequestErrWriteTimeout{}, true},
		"wrapped":              {fmt.Errorf("read: %w", gocql.ErrTimeoutNoResponse), true},
		"who asks has left":    {fmt.Errorf("read: %w", context.Canceled), false},
		"who asks has no time": {context.DeadlineExceeded, false},
		"encoding":             {gocql.MarshalError("can not marshal string into int"), false},
		"decoding": {fmt.Errorf("read: %w", gocql.UnmarshalError("can not unmarshal int into *string")),
			false},
		"session":       {gocql.ErrSessionClosed, false},
		"statements":    {gocql.ErrTooManyStmts, false},
		"size":          {gocql.ErrFrameTooBig, false},
		"nothing found": {gocql.ErrNotFound, false},
		"keyspace":      {gocql.ErrKeyspaceDoesNotExist, false},
		"said already":  {fault.New(fault.Environment, "damaged"), false},
		"said to pass":  {&fault.Error{Kind: fault.Environment, Retryable: true, Message: "later"}, true},
	} {
		require.Equal(t, tc.want, cassandra.Passes(tc.err), name)
	}
}

// A request that too few nodes have answered says how many there are and are needed, and none of the
// driver's words, whatever their texts are.
func TestTooFewNodes(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"too few nodes of Cassandra answer: 1 of the 2 that are needed": &gocql.RequestErrUnavailable{Required: 2,
			Alive: 1},
		"too few nodes of Cassandra answer: 0 of the 2 that are needed": &gocql.RequestErrReadTimeout{BlockFor: 2},
		"too few nodes of Cassandra answer: 2 of the 3 that are needed": &gocql.RequestErrWriteTimeout{BlockFor: 3,
			Received: 2},
		"too few nodes of Cassandra answer: 1 of the 3 that are needed": &gocql.RequestErrCASWriteUnknown{BlockFor: 3,
			Received: 1},
		"no node of Cassandra answers in time": gocql.ErrTimeoutNoResponse,
	} {
		err = cassandra.Fault("read the state", fmt.Errorf("driver: %w", err))
		require.EqualError(t, err, "read the state: "+want)
		f := fault.Of(err)
		require.Equal(t, fault.Environment, f.Kind)
		require.True(t, f.Retryable)
		require.Contains(t, f.Hint, "start the nodes that are down")
	}
}

// Nodes to which a connection can be made and that say nothing are away, as such are that cannot be reached.
func TestSilentNodeIsAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	require.NoError(t, err)
	defer l.Close()
	_, err = cassandra.Open(cassandra.Config{Hosts: []string{l.Addr().String()}, Timeout: 50 * time.Millisecond})
	require.EqualError(t, err, "connect to Cassandra: no node of Cassandra answers in time (away: "+
		l.Addr().String()+")")
	require.Equal(t, fault.Environment, fault.Of(err).Kind)
	require.True(t, fault.Passes(err))
}

// The end of a connection's context is not that of who asks.
func TestAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, cassandra.Asked(ctx, nil))
	require.Equal(t, io.EOF, cassandra.Asked(ctx, io.EOF))
	require.True(t, cassandra.Passes(cassandra.Asked(ctx, context.Canceled)))
	cancel()
	require.False(t, cassandra.Passes(cassandra.Asked(ctx, context.Canceled)))
}

var table = []string{"CREATE TABLE some (a int PRIMARY KEY, b text)"}

// What a real node refuses, and what the driver does not send to it, does not pass.
func TestRefusalsLast(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := cassandratest.Open(t, cassandratest.Keyspace(t, table))
	require.NoError(t, s.Query("INSERT INTO some (a, b) VALUES (1, 'one')").ExecContext(ctx))
	var a int
	batch := s.Batch(gocql.UnloggedBatch).Query("INSERT INTO some (a, b) VALUES (?, ?)", 1)
	for name, err := range map[string]error{
		"syntax":            s.Query("SELEKT a FROM some").ExecContext(ctx),
		"no such table":     s.Query("SELECT a FROM other").ExecContext(ctx),
		"there is one":      s.Query(table[0]).ExecContext(ctx),
		"no such value":     s.Query("SELECT a FROM some WHERE a = ?", "one").ExecContext(ctx),
		"no such type":      s.Query("SELECT b FROM some WHERE a = ?", 1).ScanContext(ctx, &a),
		"values":            s.Query("SELECT a FROM some WHERE a = ?").ExecContext(ctx),
		"many values":       s.Query("SELECT a FROM some WHERE a = ?", 1, 2).ExecContext(ctx),
		"columns":           s.Query("SELECT a, b FROM some").ScanContext(ctx, &a),
		"values of a batch": batch.ExecContext(ctx),
	} {
		require.Error(t, err, name)
		require.False(t, cassandra.Passes(err), "%s: %T %v", name, err, err)
	}
	s.Close()
	require.False(t, cassandra.Passes(s.Query("SELECT a FROM some").ExecContext(ctx)))
}

// Whatever a connection ends with passes for the requests that are under way on it.
func TestWhatEndsConnectionsPasses(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(answer []byte) int{
		"of no protocol": func(answer []byte) int { clear(answer); return len(answer) },
		"of no sum":      func(answer []byte) int { answer[len(answer)-1] ^= 0xff; return len(answer) },
		"too short":      func(answer []byte) int { return len(answer) - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := &cassandratest.Line{}
			cfg := cassandra.Config{Hosts: []string{cassandratest.Node(t)}, Dial: line.Dial, Timeout: time.Second}
			s := cassandratest.Open(t, cfg)
			defer line.Cut(true) // closing would wait for connections that are being made
			line.Answer(answer)
			untyped := 0
			for range 8 { // more than there are connections
				err := cassandra.Asked(t.Context(), s.Query("SELECT release_version FROM system.local").
					ExecContext(t.Context()))
				require.Error(t, err)
				require.True(t, cassandra.Passes(err), "%T %v", err, err)
				if strings.HasPrefix(err.Error(), "gocql: ") && !errors.Is(err, gocql.ErrNoConnections) {
					untyped++
				}
			}
			t.Logf("%d of 8 ended by the driver itself", untyped)
		})
	}
}

// A node that is silent loses its connections when six heartbeats in a row are not
// answered, and requests under way are told so.
func TestHeartbeatPasses(t *testing.T) {
	t.Parallel()
	if !effort.Of(false, true, true) {
		t.Skip("it takes seven seconds: not with -short")
	}
	// Whether a request is under way at the moment when a heartbeat fails is chance.
	const triesMax = 8
	for range triesMax {
		seen := askSilentNode(t)
		for _, err := range seen {
			require.True(t, cassandra.Passes(err), "%T %v", err, err)
		}
		if _, failed := seen["gocql: heartbeat failed"]; failed {
			return
		}
	}
	t.Fatal("no request was under way when a heartbeat failed, or the driver says it in other words")
}

// askSilentNode asks a node that falls silent until its connections are lost, and gives the failures by their texts.
func askSilentNode(t *testing.T) map[string]error {
	t.Helper()
	line := &cassandratest.Line{}
	cfg := cassandra.Config{Hosts: []string{cassandratest.Node(t)}, Dial: line.Dial, Timeout: 100 * time.Millisecond}
	var s *cassandra.Session
	require.Eventually(t, func() (open bool) { // a busy node may need longer than the timeout
		var err error
		s, err = cassandra.Open(cfg)
		return err == nil
	}, effort.Patience, time.Millisecond)
	defer s.Close()
	defer line.Cut(true)
	line.Answer(func([]byte) int { return 0 })
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var seen sync.Map
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for ctx.Err() == nil {
				err := cassandra.Asked(ctx, s.Query("SELECT release_version FROM system.local").ExecContext(ctx))
				if ctx.Err() != nil {
					return
				}
				seen.Store(fmt.Sprint(err), err)
				if err == nil || strings.Contains(err.Error(), "heartbeat") || errors.Is(err, gocql.ErrNoConnections) {
					stop()
				}
			}
		})
	}
	all.Wait()
	failures := map[string]error{}
	seen.Range(func(text, err any) bool {
		failures[text.(string)], _ = err.(error)
		return true
	})
	return failures
}
