package metrics_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/keeper"
	"thalweg/internal/base/settings"
	"thalweg/internal/io/remote"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/metrics"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

const rabbitVariable = "THALWEG_TEST_RABBITMQ"

// clusterOf is a cluster over real services, with names of its own there.
func clusterOf(t *testing.T, dir string) (config string) {
	t.Helper()
	host, broker := os.Getenv(cassandraVariable), os.Getenv(rabbitVariable)
	if host == "" || broker == "" {
		t.Skipf("%s and %s are not both set: no Cassandra and RabbitMQ to test with", cassandraVariable, rabbitVariable)
	}
	keyspace := "metrics_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		admin, err := cassandra.Open(cassandra.Config{Hosts: []string{host}, Timeout: time.Minute})
		require.NoError(t, err)
		defer admin.Close()
		prefix, err := instance.QueuePrefix(context.Background(),
			&clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: []string{host},
				Keyspace: keyspace}}})
		require.NoError(t, err)
		require.NoError(t, errors.Join(admin.Make(context.Background(),
			[]string{"DROP KEYSPACE IF EXISTS " + keyspace}),
			clearBroker(broker, prefix)))
	})
	config = filepath.Join(dir, "cluster.yaml")
	text := fmt.Sprintf("version: 1\nstate: {cassandra: {hosts: [%q], keyspace: %s, replication: 1}}\nqueue: "+
		"{rabbitmq: {url: %q}}\nworker: {scratch: scratch}\n", host, keyspace, broker)
	require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	return config
}

// clearBroker removes what workers have declared under a prefix.
func clearBroker(broker, prefix string) error {
	conn, err := amqp.Dial(broker)
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	for _, level := range []string{"high", "normal", "low"} {
		if err == nil {
			_, err = ch.QueueDelete(prefix+".hints."+level, false, false, false) // none is no error
		}
	}
	if err == nil {
		err = ch.ExchangeDelete(prefix+".signals", false, false)
	}
	return errors.Join(err, conn.Close())
}

// measuredCluster has a worker whose slots are processes work on a run in a cluster, over
// which everything goes wrong once: a slot dies, an attempt fails, a lease is lost.
func measuredCluster(t *testing.T, m *metrics.Metrics, look func()) {
	t.Helper()
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	cfg, err := instance.LoadCluster(clusterOf(t, dir), settings.Options{Known: nil})
	require.NoError(t, err)
	require.NoError(t, cluster.Init(t.Context(), cfg))
	for name, text := range map[string]string{"script.yaml": measuredScript, "orders.csv": "id,price\n1,10\n2,20\n",
		"double.py": fmt.Sprintf("import os, time\n\ndef double(x):\n    if not os.path.exists(%[1]q):\n        "+
			"open(%[1]q, 'w').close()\n        time.sleep(60)\n    return 2 * x\n", started)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	home, err := instance.OpenCluster(t.Context(), cfg,
		instance.ClusterOptions{Observers: instance.Observers{Cassandra: m.Requests("cassandra"), S3: m.Requests("s3"),
			RabbitMQ: m.Requests("rabbitmq"),
			Cache:    m.Copies(), Parts: m.Backend}})
	require.NoError(t, err)
	defer func() { require.NoError(t, home.Close()) }()
	home.State = m.State(&hostileOnce{Store: home.State})
	client := remote.New(remote.Config{})
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	var slots atomic.Int32
	command := func() keeper.Program {
		p := keeper.Program{Path: os.Args[0], Args: []string{sandbox.Command}, Env: keeper.All()}
		if slots.Add(1) == 1 {
			p.Env = append(p.Env, diesWhen+"="+started)
		}
		return p
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		err := worker.Serve(ctx, home,
			worker.WorkerOptions{Process: runtime.Process{MemoryBytes: memoryOfTest, Cores: 1,
				Lease: leaseOfTest, Interpreter: "python3", Remote: client, Program: "test",
				Observe: func(e job.Event) {
					m.Observe(e)
					look()
				}}, Isolate: &worker.Isolation{Command: command}, Hinted: m.Hinted, SlotEnded: m.SlotEnded,
				Decided: m.Decided, Introspect: func(i worker.Introspection) {
					m.Watch(metrics.Sources{Waiting: i.Queue.Waiting, Budget: i.Budget, AtOnce: i.AtOnce})
				}})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer stop()
	key, _, err := runner.Submit(ctx, home, runner.Options{ScriptPath: filepath.Join(dir, "script.yaml"), Dir: dir,
		Workspace: "main", Process: runtime.Process{MemoryBytes: memoryOfTest, Cores: 1, Interpreter: "python3",
			Remote: client}})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		look()
		run, err := home.State.Run(ctx, key)
		return err == nil && run.Status == state.Complete && saysEnded(m)
	}, effort.Patience, 20*time.Millisecond)
	look()
}

// Every metric of the inventory moves while a cluster's worker works.
func TestEveryMetricOfAClusterMoves(t *testing.T) {
	m := metrics.New("test")
	seen := &sight{t: t, m: m, moved: map[string]bool{}}
	// Decisions take longer than a test may: the test of package concurrency makes them.
	m.Decided(concurrency.Decision{Class: "load", Knob: "batches", From: 2, To: 3})
	measuredCluster(t, m, seen.look)
	for _, i := range m.Inventory() {
		require.True(t, seen.moved[i.Name], "%s has not moved", i.Name)
	}
	for _, c := range []struct{ name, label, value string }{
		{"thalweg_requests_total", "service", "cassandra"}, {"thalweg_requests_total", "service", "rabbitmq"},
		{"thalweg_conditional_writes_total", "outcome", "done"},
		{"thalweg_queue_deliveries_total", "fate", "used"}, {"thalweg_part_copies_total", "outcome", "written"},
		{"thalweg_parts_bytes_total", "operation", "put"},
		{"thalweg_batch_cpu_seconds_total", "stage", "engine"}, {"thalweg_batch_cpu_seconds_total", "stage", "python"},
		{"thalweg_slot_ends_total", "why", string(sandbox.Died)},
		{"thalweg_batches_total", "outcome", "retried"}, {"thalweg_concurrency", "class", "python"},
	} {
		require.Positive(t, labelled(t, m, c.name, c.label, c.value), "%v", c)
	}
}

// labelled sums up the samples of a metric that have a label.
func labelled(t *testing.T, m *metrics.Metrics, name, label, value string) (sum float64) {
	t.Helper()
	for _, s := range family(t, m, name).Samples {
		if s.Labels[label] == value {
			sum += *s.Value
		}
	}
	return sum
}
