package runner_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/run/executor"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
	"thalweg/internal/test/cassandratest"
)

// brokerVariable names a broker for tests.
const brokerVariable = "THALWEG_TEST_RABBITMQ"

// brokerOf is the broker for tests.
func brokerOf(t *testing.T) clusterconfig.RabbitMQ {
	t.Helper()
	broker := os.Getenv(brokerVariable)
	if broker == "" {
		t.Skip(brokerVariable + " names no RabbitMQ")
	}
	u, err := amqp.ParseURI(broker)
	require.NoError(t, err)
	return clusterconfig.RabbitMQ{Hosts: []string{net.JoinHostPort(u.Host, strconv.Itoa(u.Port))}, Username: u.Username,
		Password: u.Password, VHost: u.Vhost}
}

// TestFleetsOfOneBroker has two fleets at work over one broker, each of a state of its
// own that nothing tells from the other's but its id: no hint goes to the wrong one.
func TestFleetsOfOneBroker(t *testing.T) {
	t.Parallel()
	broker := brokerOf(t)
	for _, runs := range []int{1, 2} { // the other one has no run of number 2
		t.Run(strconv.Itoa(runs), func(t *testing.T) {
			t.Parallel()
			fleetOf(t, runs, broker)
		})
	}
}

// fleetOf executes runs one after another in a fleet of one worker.
func fleetOf(t *testing.T, runs int, broker clusterconfig.RabbitMQ) {
	dir := crashInputs(t)
	cfg := &clusterconfig.Config{Path: filepath.Join(dir, "cluster.yaml"),
		State: clusterconfig.State{Directory: filepath.Join(dir, "runs")}, Queue: &broker}
	ctx := t.Context()
	require.NoError(t, cluster.Init(ctx, cfg))
	home, err := instance.OpenCluster(ctx, cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	prefix, err := instance.QueuePrefix(ctx, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, clearBroker(prefix)) })
	client := remote.New(remote.Config{})
	defer client.Close()
	for range runs {
		_, err := runner.Begin(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
			Workspace: "main", Process: runtime.Process{MemoryBytes: victimBytes, Interpreter: "python3"}})
		require.NoError(t, err)
	}
	var mu sync.Mutex
	log, drain, left, fates := &bytes.Buffer{}, make(chan struct{}), runs, map[executor.Fate]int{}
	require.NoError(t, worker.Serve(ctx, home,
		worker.WorkerOptions{Process: runtime.Process{MemoryBytes: 1 << 30, Cores: 1,
			Interpreter: "python3", Remote: client,
			Logger: slog.New(slog.NewTextHandler(&locked{mu: &mu, Buffer: log},
				&slog.HandlerOptions{Level: slog.LevelWarn})),
			Observe: func(e job.Event) {
				mu.Lock()
				defer mu.Unlock()
				if e.Kind == job.RunFinished {
					if left--; left == 0 {
						close(drain)
					}
				}
			}}, Drain: drain,
			Hinted: func(f executor.Fate) {
				mu.Lock()
				defer mu.Unlock()
				fates[f]++
			},
		}))
	batches := 0
	for run := range runs {
		nodes, err := home.State.Nodes(ctx, state.RunKey{Workspace: "main", Run: int64(run + 1)})
		require.NoError(t, err)
		for _, n := range nodes {
			batches += n.BatchesTotal
		}
	}
	require.Zero(t, left)
	require.Equal(t, map[executor.Fate]int{executor.Used: batches}, fates)
	require.Empty(t, log.String()) // no hint was missing, and the broker there
}

// clearBroker removes what a fleet has made in the broker.
func clearBroker(prefix string) error {
	conn, err := amqp.Dial(os.Getenv(brokerVariable))
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, level := range []string{"high", "normal", "low"} {
		if _, err := ch.QueueDelete(prefix+".hints."+level, false, false, false); err != nil {
			return err
		}
	}
	return ch.ExchangeDelete(prefix+".signals", false, false)
}

// TestFleetIsOne opens a state that has no id several times at once: all get the same.
func TestFleetIsOne(t *testing.T) {
	t.Parallel()
	cfg := &clusterconfig.Config{State: clusterconfig.State{Directory: filepath.Join(t.TempDir(), "runs")}}
	require.NoError(t, cluster.Init(t.Context(), cfg))
	oneFleet(t.Context(), t, cfg)
	other := &clusterconfig.Config{State: clusterconfig.State{Directory: filepath.Join(t.TempDir(), "runs")}}
	require.NoError(t, cluster.Init(t.Context(), other))
	require.NotEqual(t, oneFleet(t.Context(), t, cfg), oneFleet(t.Context(), t, other))
}

// TestFleetIsOneInCassandra is the same of a keyspace.
func TestFleetIsOneInCassandra(t *testing.T) {
	t.Parallel()
	k := cassandratest.Keyspace(t, nil)
	cfg := &clusterconfig.Config{Parts: clusterconfig.Parts{Cassandra: true},
		State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: k.Hosts, Keyspace: k.Keyspace,
			Replication: map[string]int{"": 1}}}}
	require.NoError(t, cluster.Init(t.Context(), cfg))
	require.Regexp(t, "^"+k.Keyspace+"-[a-z2-7]{8}$", oneFleet(t.Context(), t, cfg))
}

func oneFleet(ctx context.Context, t *testing.T, cfg *clusterconfig.Config) string {
	t.Helper()
	const processes = 8
	got, errs := make([]string, processes), make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() { got[i], errs[i] = instance.QueuePrefix(ctx, cfg) })
	}
	all.Wait()
	for i := range processes {
		require.NoError(t, errs[i])
		require.Equal(t, got[0], got[i])
	}
	return got[0]
}
