package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
)

// clusterKind is a place in which commands are tried.
type clusterKind struct {
	name          string
	state, others string // of cluster.yaml; "": a state directory
	needs         []string
	seldom        bool // only in the long forms
}

const inCassandra = `{ cassandra: { hosts: "{env.CASSANDRA}", keyspace: "{env.KEYSPACE}", replication: 1 } }`

// clusterKinds are the kinds of clusters, and what they are measured by.
var clusterKinds = []clusterKind{
	{name: "local"},
	{name: "directory", state: "{ directory: runs }"},
	{name: "cassandra", state: inCassandra, seldom: true, needs: []string{"THALWEG_TEST_CASSANDRA"}},
	{name: "broker", state: inCassandra, others: "queue: { rabbitmq: { url: \"{env.RABBITMQ_URL}\" } }\n",
		needs: []string{"THALWEG_TEST_CASSANDRA", "THALWEG_TEST_RABBITMQ"}},
	{name: "s3", state: inCassandra, seldom: true,
		others: "parts: { s3: { url: \"s3://data/parts\", endpoint: \"{env.S3}\" } }\n",
		needs:  []string{"THALWEG_TEST_CASSANDRA"}},
}

// TestClusterCommands runs testdata/cluster/*.txtar, sessions at the command line,
// in a state directory and against each kind of cluster with two workers: a command does the same.
// Two of the five kinds are left to `make chaos` and `make chaos-cluster`.
func TestClusterCommands(t *testing.T) {
	t.Parallel()
	long := effort.All() || os.Getenv("THALWEG_CHAOS_CLUSTER") != ""
	inClusters(t, "testdata/cluster", slices.DeleteFunc(slices.Clone(clusterKinds),
		func(k clusterKind) bool { return k.seldom && !long }))
}

// TestCommandsAtOneInstant runs testdata/instant/*.txtar, in which commands meet.
func TestCommandsAtOneInstant(t *testing.T) {
	t.Parallel()
	inClusters(t, "testdata/instant", slices.DeleteFunc(slices.Clone(clusterKinds),
		func(k clusterKind) bool { return k.name != "directory" && k.name != "cassandra" }))
}

// inClusters runs the scripts of a directory in clusters of several kinds.
func inClusters(t *testing.T, dir string, kinds []clusterKind) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range kind.needs {
				if os.Getenv(name) == "" {
					t.Skip(name + " is not set")
				}
			}
			testscript.Run(t, testscript.Params{Dir: dir, RequireExplicitExec: true, RequireUniqueNames: true,
				Setup: kind.setup,
				Cmds:  map[string]func(*testscript.TestScript, bool, []string){"waitfile": cmdWaitfile},
				Condition: func(name string) (bool, error) {
					if name == "cluster" {
						return kind.state != "", nil
					}
					return condition(name)
				}})
		})
	}
}

// setup makes the cluster of a script, and starts its workers.
func (k clusterKind) setup(e *testscript.Env) error {
	if k.state == "" {
		return nil
	}
	env := map[string]string{"THALWEG_CLUSTER": "cluster.yaml",
		"CASSANDRA": os.Getenv("THALWEG_TEST_CASSANDRA"), "RABBITMQ_URL": os.Getenv("THALWEG_TEST_RABBITMQ"),
		"KEYSPACE": "commands_" + strings.ToLower(rand.Text()[:12])}
	if strings.Contains(k.others, "s3") {
		tb := setupTB{e}
		s3 := remotetest.NewS3(tb)
		maps.Copy(env, map[string]string{"S3": s3.Endpoint, "AWS_ACCESS_KEY_ID": "id",
			"AWS_SECRET_ACCESS_KEY": "AWS-SECRET", "AWS_CONFIG_FILE": os.DevNull,
			"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"})
	}
	for name, value := range env {
		e.Setenv(name, value)
	}
	config := "version: 1\nstate: " + k.state + "\n" + k.others +
		"worker: { drain: 30s, scratch: scratch, memory: 1GB, cores: 2 }\n"
	if err := os.WriteFile(filepath.Join(e.WorkDir, "cluster.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	if strings.Contains(k.state, "cassandra") {
		e.Defer(func() { dropKeyspace(env["CASSANDRA"], env["KEYSPACE"], env["RABBITMQ_URL"]) })
	}
	if out, err := thalwegIn(e, "cluster", "init").CombinedOutput(); err != nil {
		return fmt.Errorf("cluster init: %w: %s", err, out)
	}
	return startWorkers(e, 2)
}

// startWorkers starts workers that are asked to end when the script has ended, and must end well.
func startWorkers(e *testscript.Env, count int) error {
	for range count {
		worker := thalwegIn(e, "worker")
		var said bytes.Buffer
		worker.Stdout, worker.Stderr = &said, &said
		if err := worker.Start(); err != nil {
			return err
		}
		e.Defer(func() {
			_ = worker.Process.Signal(syscall.SIGTERM)
			err := worker.Wait()
			if text := said.String(); err != nil || strings.Contains(text, "level=ERROR") {
				panic(fmt.Sprintf("a worker has ended with %v and said:\n%s", err, text))
			}
		})
	}
	return nil
}

// thalwegIn is a command line in a script's directory and environment.
func thalwegIn(e *testscript.Env, args ...string) *exec.Cmd {
	path := "thalweg"
	for dir := range strings.SplitSeq(e.Getenv("PATH"), string(os.PathListSeparator)) {
		if at := filepath.Join(dir, "thalweg"); path == "thalweg" {
			if _, err := os.Stat(at); err == nil {
				path = at
			}
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = e.WorkDir, e.Vars
	return cmd
}

// setupTB lets servers live as long as a test script.
type setupTB struct{ e *testscript.Env }

func (t setupTB) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (t setupTB) FailNow()                          { panic("failed") }
func (t setupTB) Cleanup(f func())                  { t.e.Defer(f) }

// dropKeyspace removes what a script has made in Cassandra and at the broker.
func dropKeyspace(host, keyspace, broker string) {
	session, err := cassandra.Open(cassandra.Config{Hosts: []string{host}})
	if err != nil {
		panic(err)
	}
	defer session.Close()
	if err := session.Make(context.Background(), []string{"DROP KEYSPACE IF EXISTS " + keyspace}); err != nil {
		panic(err)
	}
	if broker != "" {
		if err := clearBroker(broker, keyspace); err != nil {
			panic(err)
		}
	}
}
