// Command thalweg-fleet measures a run of a script by workers of one machine. State and parts are in Cassandra, with
// RabbitMQ where it is told of one, or in a directory. It makes a keyspace, starts workers, runs the script as a user
// does, and passes its events on. It writes the counts of services and workers where the benchmark looks for them,
// and removes what it has made.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
)

type options struct {
	Thalweg   string `required:"" type:"path" help:"Command under test."`
	Script    string `required:"" type:"path" help:"Script to run."`
	Params    string `required:"" type:"path" help:"Its parameters."`
	Python    string `default:"python3" help:"Interpreter."`
	Dir       string `required:"" type:"path" help:"Directory for configuration and scratch space."`
	Workers   int    `default:"2" help:"Workers."`
	Cores     int    `default:"1" help:"Of each worker."`
	Memory    string `default:"2GB" help:"Of each worker."`
	Directory bool   `help:"State and parts are in a directory: no service is used."`
	Plan      string `help:"Memory for which the run is planned; default: the machine's."`
	Half      bool   `help:"Hold each worker to half a core (control groups of version 1, as root)."`
	Cassandra string `default:"127.0.0.1:9042" env:"THALWEG_TEST_CASSANDRA" help:"A node."`
	Broker    string `default:"" env:"THALWEG_TEST_RABBITMQ" help:"The broker's address."`
	Figures   string `required:"" type:"path" help:"File for the figures."`
}

const (
	workspace  = "bench"
	stopWithin = time.Minute
	tryEvery   = 50 * time.Millisecond
)

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-fleet"), kong.Description("Measure a run of a fleet."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	with, err := o.services()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, with.close(context.WithoutCancel(ctx))) }()
	keyspace := with.keyspace
	shared, err := o.config("cluster", keyspace)
	if err != nil {
		return err
	}
	if text, err := exec.CommandContext(ctx, o.Thalweg, "cluster", "init", "--cluster",
		shared).CombinedOutput(); err != nil {
		return fmt.Errorf("make the cluster: %w: %s", err, text)
	}
	var workers []*worker
	defer func() {
		for _, w := range workers {
			err = errors.Join(err, w.stop())
		}
	}()
	for i := range o.Workers {
		w, err := o.start(ctx, i, keyspace)
		if err != nil {
			return err
		}
		workers = append(workers, w)
	}
	out := figures{Steps: map[string]float64{}, Counts: map[string]float64{"useless deliveries": 0}}
	for _, w := range workers {
		if err := w.ready(ctx); err != nil {
			return err
		}
	}
	before, err := with.statements(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, o.Thalweg, "run", o.Script, "--params", o.Params, "--workspace", workspace,
		"--cluster", shared, "--json", "--python", o.Python)
	if o.Plan != "" {
		cmd.Args = append(cmd.Args, "--memory", o.Plan)
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run the script: %w", err)
	}
	out.Steps["run"] = time.Since(began).Seconds()
	after, err := with.statements(ctx)
	if err != nil {
		return err
	}
	out.Counts["statements"] = after - before
	for _, w := range workers {
		if err := w.count(ctx, out.Counts); err != nil {
			return err
		}
		if err := w.peaks(out.Counts); err != nil {
			return err
		}
	}
	if err := out.look(ctx, shared, o.Workers*(o.Cores+1)); err != nil {
		return err
	}
	return out.write(o.Figures)
}

// services are those that the workers use.
type services struct {
	admin                  *cassandra.Session // nil: none
	host, keyspace, broker string
}

func (o options) services() (services, error) {
	if o.Directory {
		return services{}, nil
	}
	admin, err := cassandra.Open(cassandra.Config{Hosts: []string{o.Cassandra}})
	return services{admin: admin, host: o.Cassandra, keyspace: "bench_" + strings.ToLower(rand.Text()[:12]),
		broker: o.Broker}, err
}

// close removes what the workers have made there.
func (s services) close(ctx context.Context) error {
	if s.admin == nil {
		return nil
	}
	defer s.admin.Close()
	prefix, err := instance.QueuePrefix(ctx,
		&clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: []string{s.host},
			Keyspace: s.keyspace}}})
	if err == nil {
		err = forget(s.broker, prefix)
	}
	return errors.Join(s.admin.Make(ctx, []string{"DROP KEYSPACE IF EXISTS " + s.keyspace}), err)
}

// statements returns the number of statements that the database has executed.
func (s services) statements(ctx context.Context) (float64, error) {
	if s.admin == nil {
		return 0, nil
	}
	return statements(ctx, s.admin)
}

// config writes a configuration with scratch space of its own, as on machines of their own.
func (o options) config(name, keyspace string) (string, error) {
	text := fmt.Sprintf("version: 1\nstate: {directory: %q}\n", filepath.Join(o.Dir, "state"))
	if !o.Directory {
		text = fmt.Sprintf("version: 1\nstate: {cassandra: {hosts: [%q], keyspace: %s, replication: 1}}\n",
			o.Cassandra, keyspace)
	}
	if o.Broker != "" && !o.Directory {
		text += fmt.Sprintf("queue: {rabbitmq: {url: %q}}\n", o.Broker)
	}
	text += fmt.Sprintf("worker: {scratch: %q}\n", filepath.Join(o.Dir, name))
	path := filepath.Join(o.Dir, name+".yaml")
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (f *figures) write(path string) error {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
