package cassandra

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/stretchr/testify/require"

	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest"
	"thalweg/internal/test/statetest/hostile"
)

// Whoever repeats what is not known is served by calls that are lost, done
// twice and late as by others.
func TestConformanceUnderFaults(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	if !long() {
		t.Skip("what it finds is found by TestConformanceUnderLostAnswers; it is of the long form")
	}
	cfg := newKeyspace(t)
	var seed atomic.Uint64
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := Open(context.Background(), Config{Config: cfg})
		require.NoError(t, err)
		return hostile.Insist(hostile.Wrap(s, hostile.Everything(seed.Add(1))))
	})
}

// fates makes conditional batches go wrong: a third of them is not done, or is
// done and not answered, or is not answered and done later, when others may
// have been done.
type fates struct {
	mu   sync.Mutex
	rng  *rand.Rand
	late []func()
}

func (f *fates) suffer(do func() (bool, error)) (bool, error) {
	f.mu.Lock()
	fate := f.rng.IntN(12)
	var now func()
	if n := len(f.late); n > 0 && f.rng.IntN(2) == 0 {
		now, f.late = f.late[n-1], f.late[:n-1]
	}
	if fate == 0 {
		f.late = append(f.late, func() { _, _ = do() })
	}
	f.mu.Unlock()
	if now != nil {
		defer now()
	}
	switch {
	case fate <= 1:
		return false, gocql.ErrTimeoutNoResponse
	case fate <= 3:
		_, _ = do()
		return false, gocql.ErrTimeoutNoResponse
	}
	return do()
}

// The same, of the requests below the calls: a conditional write whose answer
// is lost is found again, and one that comes late does nothing.
func TestConformanceUnderLostAnswers(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	if !effort.Of(false, true, true) {
		t.Skip("not with -short")
	}
	cfg := newKeyspace(t)
	var seed atomic.Uint64
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := Open(context.Background(), Config{Config: cfg})
		require.NoError(t, err)
		f := &fates{rng: rand.New(rand.NewPCG(seed.Add(1), 0))} //nolint:gosec // repeatable
		s.fate = f.suffer
		return hostile.Insist(s)
	})
}

// cutter cuts all connections that it has made.
type cutter struct {
	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		c.mu.Lock()
		c.conns[conn] = true
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
	clear(c.conns)
}

// Connections are cut in the middle of claims and commits: every batch is done
// once, and the events tell of it without gaps.
func TestCutConnections(t *testing.T) {
	t.Parallel()
	cfg := newKeyspace(t)
	c := &cutter{conns: map[net.Conn]bool{}}
	cfg.Dial = c.dial
	s, err := Open(context.Background(), Config{Config: cfg})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	var done atomic.Int64
	cuts := make(chan struct{})
	go func() {
		defer close(cuts)
		for next := int64(40); next < cutBatches; next += 40 {
			until(&done, next)
			c.cut()
		}
	}()
	work(t, hostile.Insist(retrying.New(s, retrying.Config{})), "cut", cutBatches, &done)
	<-cuts
}

const cutBatches = 200

// work does all batches of a node, from eight workers, and looks at what is
// there then.
func work(t *testing.T, s state.Store, workspace string, batches int, done *atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	run, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: workspace}}, []state.NodeSpec{{Name: "n"}})
	require.NoError(t, err)
	key := state.NodeKey{RunKey: run, Node: "n"}
	specs := make([]state.BatchSpec, batches)
	for i := range specs {
		specs[i].Batch = i
	}
	_, err = state.PlanNode(ctx, s, key, 0, state.Plan{Batches: specs}, "planner", time.Now())
	require.NoError(t, err)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() { errs[w] = workSome(ctx, s, key, w, len(errs), batches, done) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	n, err := s.Node(ctx, key)
	require.NoError(t, err)
	require.Equal(t, batches, n.BatchesDone)
	require.Equal(t, int64(2*batches)+1, n.Revision)
	require.NoError(t, statetest.Audit(ctx, s, run))
	parts, err := state.Manifest(ctx, s, key)
	require.NoError(t, err)
	require.Len(t, parts, batches)
}

func workSome(ctx context.Context, s state.Store, key state.NodeKey, worker, workers, batches int,
	done *atomic.Int64) error {
	for b := worker; b < batches; b += workers {
		now := time.Now()
		c, err := s.Claim(ctx, state.ClaimRequest{Offer: state.Offer{BatchKey: state.BatchKey{NodeKey: key, Batch: b}},
			Owner: fmt.Sprint(worker),
			Token: fmt.Sprint(b), Now: now, Lease: now.Add(time.Hour)})
		if err != nil {
			return err
		}
		out := state.Outcome{Parts: []state.Part{{Key: fmt.Sprint("p", b)}}, Stats: state.Stats{RowsOut: 1}}
		if err := s.Commit(ctx, c, out, now); err != nil {
			return err
		}
		done.Add(1)
	}
	return nil
}

// What fails when it is not known what became of a conditional write is not known
// either, also if it is of the kind that does not pass.
func TestUnknownStaysUnknown(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := newKeyspace(t)
	order := state.Command{Kind: state.CommandStop, From: state.Running, Epoch: 1, Mark: state.Mark{Time: time.Now()}}
	for name, call := range map[string]func(s *Store, key state.NodeKey) error{
		"node": func(s *Store, key state.NodeKey) error { return s.ApplyCommand(ctx, key, order) },
		"run":  func(s *Store, key state.NodeKey) error { return s.BeginCommand(ctx, key.RunKey, order) },
	} {
		s, err := Open(ctx, Config{Config: cfg})
		require.NoError(t, err)
		run, err := s.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: name}}, []state.NodeSpec{{Name: "n"}})
		require.NoError(t, err)
		s.fate = func(do func() (bool, error)) (bool, error) {
			_, _ = do()
			s.session.Close() // nothing can be read any more
			return false, errors.New("gocql: heartbeat failed")
		}
		err = call(s, state.NodeKey{RunKey: run, Node: "n"})
		require.ErrorIs(t, err, state.ErrUnknown, name)
		require.ErrorIs(t, err, gocql.ErrSessionClosed, name)
		require.True(t, retrying.Passes(err), name)
		require.NoError(t, s.Close())
	}
	refused := fmt.Errorf("claim: %w", state.ErrNotClaimable)
	require.Equal(t, refused, afterUnknown(gocql.ErrTimeoutNoResponse, refused), "what was decided stands")
	require.NoError(t, afterUnknown(gocql.ErrTimeoutNoResponse, nil))
}
