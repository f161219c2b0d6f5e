// Package cluster makes the place of a fleet that is measured: a keyspace and queues of its own in services of this
// machine, or a directory. Close removes what was made in services.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/app/instance"
	"thalweg/internal/base/settings"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
)

// Options say where a cluster is.
type Options struct {
	Cassandra string `default:"127.0.0.1:9042" env:"THALWEG_TEST_CASSANDRA" help:"A node."`
	Broker    string `default:"" env:"THALWEG_TEST_RABBITMQ" help:"The broker's address."`
	Directory bool   `help:"State and parts are in a directory: no service is used."`
}

// Cluster is the place of a fleet.
type Cluster struct {
	Options
	dir      string
	admin    *cassandra.Session // nil: there is no service
	keyspace string
}

// Open makes a cluster whose configurations and scratch space are in dir.
func (o Options) Open(ctx context.Context, thalweg, dir string) (*Cluster, error) {
	c := &Cluster{Options: o, dir: dir, keyspace: "bench_" + strings.ToLower(rand.Text()[:12])}
	if !o.Directory {
		var err error
		if c.admin, err = cassandra.Open(cassandra.Config{Hosts: []string{o.Cassandra}}); err != nil {
			return nil, err
		}
	}
	config, err := c.Config("cluster")
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	text, err := exec.CommandContext(ctx, thalweg, "cluster", "init", "--cluster", config).CombinedOutput()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the cluster: %w: %s", err, text), c.Close(ctx))
	}
	return c, nil
}

// Config writes a configuration with scratch space of its own, as on machines of their own, and returns its path.
func (c *Cluster) Config(name string) (string, error) {
	text := fmt.Sprintf("version: 1\nstate: {directory: %q}\n", filepath.Join(c.dir, "state"))
	if c.admin != nil {
		text = fmt.Sprintf("version: 1\nstate: {cassandra: {hosts: [%q], keyspace: %s, replication: 1}}\n",
			c.Cassandra, c.keyspace)
	}
	if c.Broker != "" && c.admin != nil {
		text += fmt.Sprintf("queue: {rabbitmq: {url: %q}}\n", c.Broker)
	}
	text += fmt.Sprintf("worker: {scratch: %q}\n", filepath.Join(c.dir, name))
	path := filepath.Join(c.dir, name+".yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// Close removes what was made in services, even if ctx has ended.
func (c *Cluster) Close(ctx context.Context) error {
	if c.admin == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	defer c.admin.Close()
	prefix, err := instance.QueuePrefix(ctx,
		&clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: []string{c.Cassandra},
			Keyspace: c.keyspace}}})
	if err == nil {
		err = forget(c.Broker, prefix)
	}
	return errors.Join(c.admin.Make(ctx, []string{"DROP KEYSPACE IF EXISTS " + c.keyspace}), err)
}

// forget removes the queues of the broker.
func forget(broker, prefix string) error {
	if broker == "" {
		return nil
	}
	conn, err := amqp.Dial(broker)
	if err != nil {
		return fmt.Errorf("reach the broker: %w", err)
	}
	ch, err := conn.Channel()
	for _, level := range []string{".hints.high", ".hints.normal", ".hints.low"} {
		if err == nil {
			_, err = ch.QueueDelete(prefix+level, false, false, false)
		}
	}
	if err == nil {
		err = ch.ExchangeDelete(prefix+".signals", false, false)
	}
	return errors.Join(err, conn.Close())
}

// Statements returns the number of statements that the database has executed since it was started; 0: there is none.
// It counts no batches of statements, which most conditional writes are.
func (c *Cluster) Statements(ctx context.Context) (n float64, err error) {
	if c.admin == nil {
		return 0, nil
	}
	for _, name := range []string{"prepared_statements_executed", "regular_statements_executed"} {
		var v float64
		if err := c.admin.Query("SELECT value FROM system_views.cql_metrics WHERE name = ?", name).ScanContext(ctx,
			&v); err != nil {
			return 0, cassandra.Fault("count statements", err)
		}
		n += v
	}
	return n, nil
}

// Within calls do with the cluster of a configuration, open meanwhile.
func Within(ctx context.Context, config string, do func(home *instance.Instance) error) (err error) {
	cfg, err := instance.LoadCluster(config, settings.Options{})
	if err != nil {
		return err
	}
	home, err := instance.OpenCluster(ctx, cfg, instance.ClusterOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.Close()) }()
	return do(home)
}
