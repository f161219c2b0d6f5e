package coordinator_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/run/job"
	"thalweg/internal/store/queue"
	"thalweg/internal/store/queue/rabbitmq"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/runtest"
)

// realBroker gives queues that share a name of the test's own.
func realBroker(t testing.TB) func() queue.Queue {
	t.Helper()
	address := os.Getenv("THALWEG_TEST_RABBITMQ")
	if address == "" {
		t.Skip("no broker: THALWEG_TEST_RABBITMQ is not set (amqp://user:password@host:port/)")
	}
	prefix := "test-" + rand.Text()
	t.Cleanup(func() {
		conn, err := amqp.Dial(address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		require.NoError(t, err)
		for _, level := range []string{"high", "normal", "low"} {
			_, err := ch.QueueDelete(prefix+".hints."+level, false, false, false)
			require.NoError(t, err)
		}
		require.NoError(t, ch.ExchangeDelete(prefix+".signals", false, false))
	})
	return func() queue.Queue {
		q, err := rabbitmq.Open(context.Background(), rabbitmq.Config{URL: address, Prefix: prefix})
		require.NoError(t, err)
		require.True(t, q.Shared())
		return q
	}
}

// chain is a run of nodes behind each other, as many batches each.
func chain(ctx context.Context, t testing.TB, b runtest.Bundle, nodes int) state.RunKey {
	t.Helper()
	specs := make([]state.NodeSpec, nodes)
	for i := range specs {
		specs[i] = state.NodeSpec{Name: fmt.Sprintf("n%03d", i), Ordinal: i}
		if i > 0 {
			specs[i].Inputs = []string{specs[i-1].Name}
		}
	}
	key, err := b.Store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: "w"}, Created: time.Now()}, specs)
	require.NoError(t, err)
	return key
}

// handovers records when nodes begin and end.
type handovers struct {
	mu         sync.Mutex
	begin, end map[string]time.Time
}

func (h *handovers) observe(e job.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch e.Kind {
	case job.BatchStarted:
		if _, ok := h.begin[e.Node]; !ok {
			h.begin[e.Node] = now
		}
	case job.BatchFinished:
		h.end[e.Node] = now
	}
}

// between gives the times from a node's last commit to the first claim of the next, sorted.
func (h *handovers) between(nodes int) []time.Duration {
	var out []time.Duration
	for i := 1; i < nodes; i++ {
		out = append(out, h.begin[fmt.Sprintf("n%03d", i)].Sub(h.end[fmt.Sprintf("n%03d", i-1)]))
	}
	slices.Sort(out)
	return out
}

// Two processes over a real broker: each hint leads to a claim, and a node begins
// soon after the one before it has ended, wherever that was.
func TestFromCommitToClaim(t *testing.T) {
	t.Parallel()
	const nodes, batches = 40, 4
	join := realBroker(t)
	ctx, b := runtest.Patient(t), runtest.New(t)
	key := chain(ctx, t, b, nodes)
	fake := &runtest.Job{Plans: func(state.Node) (state.Plan, error) { return runtest.Plan(batches), nil }}
	fake.Executes = func(ctx context.Context, c state.Claim) (job.Result, error) {
		runtest.Pause(ctx, time.Duration(5+3*c.Batch)*time.Millisecond)
		return job.Result{}, nil
	}
	times := &handovers{begin: map[string]time.Time{}, end: map[string]time.Time{}}
	var all []*runtest.Process
	var stops []func() error
	for i := range 2 {
		p := runtest.NewProcess(b, fmt.Sprint("process ", i), join(), func(state.RunKey) job.Job { return fake })
		p.Coor.Observe = times.observe
		all = append(all, p)
		stops = append(stops, p.Start(ctx, key))
	}
	for _, p := range all {
		require.Equal(t, state.Complete, <-p.Ended)
	}
	for _, stop := range stops {
		require.NoError(t, stop())
	}
	used, others := runtest.Useless(all...)
	took := times.between(nodes)
	t.Logf("from a node's last commit to the next one's first claim: median %s, p99 %s, most %s; %d hints used (%d "+
		"and %d), %d useless",
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], used, all[0].Hints["used"],
		all[1].Hints["used"], others)
	require.Equal(t, []int{nodes * batches, 0}, []int{used, others})
	require.Less(t, took[len(took)/2], effort.Of(effort.Patience, effort.Patience, time.Second))
}

// The broker's queue is emptied in the middle: the run ends, each batch done once.
func TestPurgedBroker(t *testing.T) {
	t.Parallel()
	join := realBroker(t)
	ctx, b := runtest.Patient(t), runtest.New(t)
	fake := &runtest.Job{Batches: map[string]int{"a": 60, "b": 20, "c": 5}}
	thief, once := join(), sync.Once{}
	fake.Executes = func(ctx context.Context, _ state.Claim) (job.Result, error) {
		if fake.Executed("a") > 10 {
			once.Do(func() { steal(ctx, thief, 20) })
		}
		runtest.Pause(ctx, time.Millisecond)
		return job.Result{}, nil
	}
	p := runtest.NewProcess(b, "process", join(), func(state.RunKey) job.Job { return fake })
	p.Coor.Grace, p.Coor.Follow = 300*time.Millisecond, 50*time.Millisecond
	stop := p.Start(ctx, b.Run)
	require.Equal(t, state.Complete, <-p.Ended)
	require.NoError(t, stop())
	require.NoError(t, thief.Close())
	for _, node := range []string{"a", "b", "c"} {
		for _, batch := range b.Batches(t, node) {
			require.Equal(t, 1, batch.Attempt, "%v", batch.BatchKey)
		}
	}
}

// steal takes hints and tells nobody.
func steal(ctx context.Context, q queue.Queue, most int) {
	for range most {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		d, err := q.Receive(short)
		cancel()
		if err != nil {
			return
		}
		_ = d.Done(ctx)
	}
}
