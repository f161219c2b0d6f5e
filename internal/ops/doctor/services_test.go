package doctor_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	accesscassandra "thalweg/internal/app/access/cassandra"
	"thalweg/internal/app/cluster"
	"thalweg/internal/app/diagnosis"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/store/cassandra"
	partscassandra "thalweg/internal/store/parts/cassandra"
	"thalweg/internal/store/state"
	statecassandra "thalweg/internal/store/state/cassandra"
	"thalweg/internal/store/state/sqlite"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/remotetest"
	"thalweg/internal/test/securetest"
)

// examine looks at a cluster, and gives what was found by service and check.
func examine(t *testing.T, cfg *clusterconfig.Config, limit time.Duration) map[string]doctor.Finding {
	t.Helper()
	if cfg.Worker.Scratch == "" {
		cfg.Worker.Scratch = t.TempDir()
	}
	list, err := diagnosis.Examine(t.Context(),
		diagnosis.Options{Cluster: cfg, Process: runtime.Process{Program: "test", Interpreter: "/nowhere/python3"},
			Limit: limit})
	require.NoError(t, err)
	found := map[string]doctor.Finding{}
	for _, f := range list {
		found[f.Service+" "+f.Check] = f
		require.NotEqual(t, doctor.Ours, f.Verdict, "%s: %s: %s", f.Service, f.Check, f.Seen)
		require.NotContains(t, f.Seen+f.Mend, "rumpelstilz")
	}
	return found
}

// require that a check says something.
func says(t *testing.T, found map[string]doctor.Finding, check string, v doctor.Verdict, seen, mend string) {
	t.Helper()
	f, ok := found[check]
	require.True(t, ok, "%s is not among %v", check, found)
	require.Equal(t, v, f.Verdict, "%+v", f)
	require.Contains(t, f.Seen, seen)
	require.Contains(t, f.Mend, mend)
}

func inCassandra(cfg cassandra.Config) *clusterconfig.Config {
	return &clusterconfig.Config{Path: "cluster.yaml", Parts: clusterconfig.Parts{Cassandra: true},
		State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: cfg.Hosts, Keyspace: cfg.Keyspace,
			Replication: map[string]int{"": 1}}}}
}

func TestCassandra(t *testing.T) {
	t.Parallel()
	keyspace := cassandratest.Keyspace(t, slices.Concat(statecassandra.Statements(), accesscassandra.Statements(),
		partscassandra.Tables()))
	session := cassandratest.Open(t, keyspace)
	require.NoError(t, statecassandra.InitTables(t.Context(), session))
	host := keyspace.Hosts[0]
	cfg := inCassandra(keyspace)

	found := examine(t, cfg, 0)
	says(t, found, "state "+host, doctor.Good, "Cassandra 5.", "")
	says(t, found, "state nodes", doctor.Good, "1 of 1", "")
	says(t, found, "state clocks", doctor.Good, "within", "")
	says(t, found, "state datacenter", doctor.Good, "QUORUM", "")
	says(t, found, "state replication", doctor.Warning, "a node that is away stops all work", "three copies")
	says(t, found, "state tables", doctor.Good, "all are there", "")
	require.Contains(t, []doctor.Verdict{doctor.Good, doctor.Warning}, found["state write and read"].Verdict, "%+v",
		found["state write and read"])
	for _, check := range []string{"parts write", "parts read", "parts read a range", "parts remove", "workers list",
		"workers open runs"} {
		require.Contains(t, []doctor.Verdict{doctor.Good, doctor.Warning}, found[check].Verdict, "%+v", found[check])
	}
	for table, count := range map[string]int{"state_rows": 0, "part_index": 0, "part_chunks": 0} {
		left := -1
		require.NoError(t, session.Query("SELECT count(*) FROM "+table).ScanContext(t.Context(), &left))
		require.Equal(t, count, left, "rows of %s are left", table)
	}

	cfg.State.Cassandra.Datacenter = "elsewhere"
	says(t, examine(t, cfg, 0), "state datacenter", doctor.Bad, "there is no datacenter elsewhere, only datacenter1",
		"nodetool status")
	cfg.Worker.Scratch = t.TempDir()
	require.ErrorContains(t, cluster.Init(t.Context(), cfg), "there is no datacenter elsewhere, only datacenter1")
	// what nodes say of each other may be incomplete
	home, err := instance.OpenCluster(t.Context(), cfg, instance.ClusterOptions{})
	require.NoError(t, err)
	require.NoError(t, home.Close())
	cfg.State.Cassandra.Datacenter = ""

	require.NoError(t, session.Query("UPDATE state_schema SET version = 99 WHERE one = 0").ExecContext(t.Context()))
	says(t, examine(t, cfg, 0), "state tables", doctor.Bad, "version 99", "newer program")
	require.NoError(t, session.Make(t.Context(), []string{"DROP TABLE part_chunks",
		"ALTER TABLE state_notes DROP data"}))
	says(t, examine(t, cfg, 0), "state tables", doctor.Bad, "missing: state_notes.data, part_chunks",
		"{{do cluster-init")
	require.NoError(t, session.Make(t.Context(),
		[]string{"ALTER KEYSPACE " + keyspace.Keyspace +
			" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}"}))
	says(t, examine(t, cfg, 0), "state replication", doctor.Bad,
		"3 copies: 2 nodes are needed for each request, and there are 1",
		"ALTER KEYSPACE")

	cfg.State.Cassandra.Keyspace = "test_nobody"
	found = examine(t, cfg, 0)
	says(t, found, "state replication", doctor.Bad, "there is no keyspace test_nobody", "{{do cluster-init")
	says(t, found, "state tables", doctor.Skipped, "see state, replication", "")
	says(t, found, "parts reach", doctor.Skipped, "see state", "")
	says(t, found, "workers list", doctor.Skipped, "see state", "")
}

// closedPort is an address at which nobody listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// mute is a service that takes connections and says nothing.
func mute(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended, all := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(all)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { <-ended; _ = c.Close() }()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		close(ended)
		<-all
	})
	return l.Addr().String()
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	cfg := inCassandra(cassandra.Config{Hosts: []string{closedPort(t)}, Keyspace: "test"})
	cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{closedPort(t)}, VHost: "/", Username: "me",
		Password: "rumpelstilz"}
	found := examine(t, cfg, 0)
	says(t, found, "state "+cfg.State.Cassandra.Hosts[0], doctor.Bad, "connection refused", "that the nodes run")
	says(t, found, "state nodes", doctor.Bad, "no node", "")
	says(t, found, "queue "+cfg.Queue.Hosts[0], doctor.Bad, "connection refused", "that RabbitMQ runs")
}

// Services that hang take a check's time, all at once.
func TestServicesThatHang(t *testing.T) {
	t.Parallel()
	cfg := inCassandra(cassandra.Config{Hosts: []string{mute(t)}, Keyspace: "test"})
	cfg.Parts = clusterconfig.Parts{S3: &clusterconfig.S3{URL: "s3://bucket/x", Endpoint: "http://" + mute(t),
		AccessKey: "a",
		SecretKey: "rumpelstilz"}}
	cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{mute(t)}, VHost: "/"}
	begun := time.Now()
	found := examine(t, cfg, time.Second)
	effort.Promised(t, begun, 30*time.Second)
	for _, check := range []string{"state " + cfg.State.Cassandra.Hosts[0], "parts reach", "queue " +
		cfg.Queue.Hosts[0]} {
		says(t, found, check, doctor.Bad, "no answer within 1s", "overloaded")
	}
	says(t, found, "machine cores", doctor.Good, "", "")
}

func brokerURL(t *testing.T) *url.URL {
	address := os.Getenv("THALWEG_TEST_RABBITMQ")
	if address == "" {
		t.Skip("no broker: THALWEG_TEST_RABBITMQ is not set")
	}
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u
}

// sqliteCluster is a cluster in a directory.
func sqliteCluster(t *testing.T) *clusterconfig.Config {
	cfg := &clusterconfig.Config{Path: "cluster.yaml",
		State: clusterconfig.State{Directory: filepath.Join(t.TempDir(), "runs")}}
	require.NoError(t, cluster.Init(t.Context(), cfg))
	return cfg
}

func TestBroker(t *testing.T) {
	t.Parallel()
	u := brokerURL(t)
	password, _ := u.User.Password()
	cfg := sqliteCluster(t)
	cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{u.Host}, Username: u.User.Username(), Password: password,
		VHost: "/"}
	found := examine(t, cfg, 0)
	says(t, found, "queue "+u.Host, doctor.Good, "RabbitMQ 3.", "")
	says(t, found, "queue publish and receive", found["queue publish and receive"].Verdict, "confirmed", "")

	cfg.Queue.Password = "rumpelstilz"
	says(t, examine(t, cfg, 0), "queue "+u.Host, doctor.Bad, "log in", "username and password")
	cfg.Queue.Password, cfg.Queue.VHost = password, "nobody's"
	says(t, examine(t, cfg, 0), "queue "+u.Host, doctor.Bad, "vhost", "")
	cfg.Queue.VHost, cfg.Queue.TLS = "/", &clusterconfig.TLS{}
	says(t, examine(t, cfg, 0), "queue "+u.Host, doctor.Bad, "agree on encryption", "does not speak TLS at this port")
}

// A queue of ours that is of another type.
func TestQueueOfWrongType(t *testing.T) {
	t.Parallel()
	u := brokerURL(t)
	keyspace := cassandratest.Keyspace(t, nil)
	conn, err := amqp.Dial(u.String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	require.NoError(t, err)
	cfg := inCassandra(keyspace)
	require.NoError(t, cluster.Init(t.Context(), cfg))
	prefix, err := instance.QueuePrefix(t.Context(), cfg)
	require.NoError(t, err)
	name := prefix + ".hints.normal"
	_, err = ch.QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := ch.QueueDelete(name, false, false, false)
		require.NoError(t, err)
	})
	password, _ := u.User.Password()
	cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{u.Host}, Username: u.User.Username(), Password: password,
		VHost: "/"}
	says(t, examine(t, cfg, 0), "queue queues", doctor.Bad, name+" is not as workers need it", "delete the queue")
}

func TestBucket(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	cfg := sqliteCluster(t)
	cfg.Parts.S3 = &clusterconfig.S3{URL: "s3://" + service.Bucket + "/x", Endpoint: service.Endpoint, AccessKey: "me",
		SecretKey: "rumpelstilz"}
	require.NoError(t, cluster.Init(t.Context(), cfg))
	found := examine(t, cfg, 0)
	for _, check := range []string{"reach", "write", "read", "read a range", "remove"} {
		says(t, found, "parts "+check, doctor.Good, "", "")
	}
	cfg.Parts.S3.URL = "s3://nowhere/x"
	says(t, examine(t, cfg, 0), "parts reach", doctor.Bad, "there is no bucket nowhere", "check its name")
	require.ErrorContains(t, cluster.Init(t.Context(), cfg), "there is no bucket nowhere")
	require.Equal(t, fault.Script, fault.Of(cluster.Init(t.Context(), cfg)).Kind)
	cfg.Parts.S3.Endpoint = "http://" + closedPort(t)
	says(t, examine(t, cfg, 0), "parts reach", doctor.Bad, "refused", "")
}

func TestStateInADirectory(t *testing.T) {
	t.Parallel()
	cfg := sqliteCluster(t)
	found := examine(t, cfg, 0)
	for _, check := range []string{"state open", "state integrity", "parts write", "parts remove", "workers list"} {
		says(t, found, check, doctor.Good, "", "")
	}
	says(t, found, "workers clocks", doctor.Skipped, "no workers", "")

	// A worker elsewhere, whose clock is a minute behind.
	store, err := sqlite.Open(t.Context(), filepath.Join(cfg.State.Directory, "state.db"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			data, _ := json.Marshal(registry.WorkerEntry{Owner: "elsewhere/1", Host: "elsewhere", PID: 1,
				Engine: "duckdb-0", Python: "none"})
			note := state.Note{Topic: "workers", Name: "elsewhere/1", Data: data, Time: time.Now().Add(-time.Minute)}
			if err := store.PutNote(ctx, "_fleet", note); err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	require.Eventually(t, func() bool {
		notes, err := state.AllNotes(t.Context(), store, "_fleet", "workers")
		return err == nil && len(notes) == 1
	}, effort.Patience, 10*time.Millisecond)
	found = examine(t, cfg, 0)
	cancel()
	<-done
	require.NoError(t, store.Close())
	says(t, found, "workers list", doctor.Warning, "nothing is heard of elsewhere (process 1)", "")
	says(t, found, "workers clocks", doctor.Bad, "behind this machine's", "chrony")

	path := filepath.Join(cfg.State.Directory, "state.db")
	bytes, err := os.ReadFile(path)
	require.NoError(t, err)
	for i := len(bytes) / 2; i < len(bytes)/2+64; i++ {
		bytes[i] ^= 0xff
	}
	require.NoError(t, os.WriteFile(path, bytes, 0o600))
	found = examine(t, cfg, 0)
	bad := found["state open"].Mend + found["state integrity"].Seen
	require.True(t, found["state open"].Verdict == doctor.Bad || found["state integrity"].Verdict == doctor.Bad,
		"%+v", found)
	require.Contains(t, bad, "damaged", "%+v", found["state open"])

	require.NoError(t, os.RemoveAll(cfg.PartsDirectory()))
	require.NoError(t, os.WriteFile(cfg.PartsDirectory(), nil, 0o600))
	says(t, examine(t, cfg, 0), "parts reach", doctor.Bad, "", "")
	require.NoError(t, os.RemoveAll(cfg.State.Directory))
	says(t, examine(t, cfg, 0), "state open", doctor.Bad, "there is no state in", "{{do cluster-init")
}

func TestPython(t *testing.T) {
	t.Parallel()
	list, err := diagnosis.Examine(t.Context(),
		diagnosis.Options{Process: runtime.Process{Interpreter: "/nowhere/python3"}})
	require.NoError(t, err)
	named, err := diagnosis.Examine(t.Context(),
		diagnosis.Options{Process: runtime.Process{Interpreter: "/nowhere/python3"},
			Named: true})
	require.NoError(t, err)
	require.Equal(t, doctor.Bad, named[len(named)-1].Verdict, "no worker begins without it")
	right, err := diagnosis.Examine(t.Context(), diagnosis.Options{Process: runtime.Process{Interpreter: "python3"}})
	require.NoError(t, err)
	require.Equal(t, doctor.Good, right[len(right)-1].Verdict)
	require.Contains(t, right[len(right)-1].Seen, "3.")
	for _, f := range list {
		if f.Service == "python" {
			require.Equal(t, doctor.Warning, f.Verdict)
			require.Contains(t, f.Mend, "only scripts with Python need it")
		}
	}
}

// TLS in front of services, with an authority of its own, and certificates of both sides.
func TestTLS(t *testing.T) {
	t.Parallel()
	u := brokerURL(t)
	password, _ := u.User.Password()
	keyspace := cassandratest.Keyspace(t, nil)
	authority, stranger := securetest.NewAuthority(t), securetest.NewAuthority(t)
	client := authority.Sign("a worker")
	node := securetest.Terminate(t, authority.Server("127.0.0.1"), keyspace.Hosts[0])
	broker := securetest.Terminate(t, authority.Server("127.0.0.1", "mq.example"), u.Host)
	other := securetest.Terminate(t, authority.Server("elsewhere.example"), keyspace.Hosts[0])
	otherBroker := securetest.Terminate(t, authority.Server("elsewhere.example"), u.Host)
	for name, tc := range map[string]struct {
		tls          *clusterconfig.TLS
		node, broker string
		verdict      doctor.Verdict
		mend         string
	}{
		"right": {&clusterconfig.TLS{CA: authority.File, Cert: client.Cert, Key: client.Key}, node, broker,
			doctor.Good, ""},
		"by name": {&clusterconfig.TLS{CA: authority.File, Cert: client.Cert, Key: client.Key,
			ServerName: "elsewhere.example"},
			other,
			otherBroker, doctor.Good, ""},
		"wrong CA": {&clusterconfig.TLS{CA: stranger.File, Cert: client.Cert, Key: client.Key}, node,
			broker, doctor.Bad, "tls: {ca: FILE}"},
		"wrong name": {&clusterconfig.TLS{CA: authority.File, Cert: client.Cert, Key: client.Key}, other, otherBroker,
			doctor.Bad,
			"tls: {server_name: NAME}"},
		"no own": {&clusterconfig.TLS{CA: authority.File}, node, broker, doctor.Bad,
			"tls: {cert: FILE, key: FILE}"},
		"no TLS here": {nil, node, broker, doctor.Bad, ""},
		"none there": {&clusterconfig.TLS{CA: authority.File}, keyspace.Hosts[0], u.Host, doctor.Bad,
			"does not speak TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := inCassandra(cassandra.Config{Hosts: []string{tc.node}, Keyspace: keyspace.Keyspace})
			cfg.State.Cassandra.TLS = tc.tls
			cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{tc.broker}, Username: u.User.Username(),
				Password: password, VHost: "/", TLS: tc.tls}
			found := examine(t, cfg, 0)
			says(t, found, "state "+tc.node, tc.verdict, "", tc.mend)
			says(t, found, "queue "+tc.broker, tc.verdict, "", tc.mend)
			if tc.verdict == doctor.Good {
				require.Contains(t, found["queue "+tc.broker].Seen, "TLS 1.3")
			}
		})
	}
}

// The same against services that speak TLS themselves, and a Cassandra that wants a password.
func TestClusterChaosTLS(t *testing.T) {
	if os.Getenv("THALWEG_CHAOS_CLUSTER") == "" {
		t.Skip("it starts services of its own: make chaos-cluster")
	}
	authority, stranger := securetest.NewAuthority(t), securetest.NewAuthority(t)
	server, client := authority.Sign("127.0.0.1", "localhost"), authority.Sign("a worker")
	dir := t.TempDir()
	for name, from := range map[string]string{"ca.pem": authority.File, "cert.pem": server.Cert,
		"key.pem": server.Key} {
		text, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	services := func(args ...string) string {
		cmd := exec.Command("../../../scripts/services", args...)
		for _, v := range os.Environ() { // a cluster of its own, whatever the caller's is like
			if name, _, _ := strings.Cut(v, "="); !slices.Contains([]string{"NODES", "PORTS", "ONLY",
				"WATCH", "CQL_PORT", "AMQP_PORT",
				"THALWEG_SERVICES"}, name) {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, "THALWEG_SERVICES="+filepath.Join(dir, "services"), "PORTS=free", "TLS="+dir,
			"WATCH="+strconv.Itoa(os.Getpid()))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	t.Cleanup(func() { services("clean") })
	services("up")
	text, err := os.ReadFile(filepath.Join(dir, "services", "settings"))
	require.NoError(t, err)
	port := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(\d+)$`).FindStringSubmatch(string(text))
		require.NotNil(t, m, name)
		return "127.0.0.1:" + m[1]
	}
	node, broker := port("CQL_PORT"), port("AMQPS_PORT")
	right := &clusterconfig.TLS{CA: authority.File, Cert: client.Cert, Key: client.Key}
	config := func(tls *clusterconfig.TLS, password string) *clusterconfig.Config {
		cfg := inCassandra(cassandra.Config{Hosts: []string{node}, Keyspace: "secured"})
		cfg.State.Cassandra.TLS, cfg.State.Cassandra.Username, cfg.State.Cassandra.Password = tls, "cassandra", password
		cfg.Queue = &clusterconfig.RabbitMQ{Hosts: []string{broker}, Username: "guest", Password: "guest",
			VHost: "/", TLS: tls}
		cfg.Worker.Scratch = t.TempDir()
		return cfg
	}
	require.Eventually(t, func() bool { // the first user is made a moment after the port is open
		return cluster.Init(t.Context(), config(right, "cassandra")) == nil
	}, effort.Patience, time.Second)
	testBroker(t, services, config(right, "cassandra"))
	found := examine(t, config(right, "cassandra"), 0)
	says(t, found, "state "+node, doctor.Good, "Cassandra 5.", "")
	says(t, found, "state tables", doctor.Good, "", "")
	says(t, found, "queue "+broker, doctor.Good, "TLS 1.", "")
	require.Contains(t, found["queue publish and receive"].Seen, "confirmed")

	require.Equal(t, fault.Script, fault.Of(cluster.Init(t.Context(), config(right, "rumpelstilz"))).Kind)
	says(t, examine(t, config(right, "rumpelstilz"), 0), "state "+node, doctor.Bad,
		"do not accept the user name and the password",
		"check username and password")
	unnamed := config(right, "")
	unnamed.State.Cassandra.Username = ""
	says(t, examine(t, unnamed, 0), "state "+node, doctor.Bad, "wants a user name and a password", "password_file")
	for mend, tls := range map[string]*clusterconfig.TLS{
		"tls: {ca: FILE}": {CA: stranger.File, Cert: client.Cert, Key: client.Key},
		"tls: {server_name: NAME}": {CA: authority.File, Cert: client.Cert, Key: client.Key,
			ServerName: "elsewhere.example"},
		"tls: {cert: FILE, key: FILE}": {CA: authority.File},
	} {
		found := examine(t, config(tls, "cassandra"), 0)
		says(t, found, "state "+node, doctor.Bad, "", mend)
		says(t, found, "queue "+broker, doctor.Bad, "", mend)
	}
}

// Services whose port is taken say which way is free, and their status that they are not up.
func TestServicesWhosePortIsTaken(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(mute(t))
	require.NoError(t, err)
	services := func(want int, arg string) string {
		cmd := exec.Command("../../../scripts/services", arg)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "THALWEG_SERVICES=" + filepath.Join(t.TempDir(), "services"),
			"ONLY=rabbitmq", "AMQP_PORT=" + port}
		out, _ := cmd.CombinedOutput()
		require.Equal(t, want, cmd.ProcessState.ExitCode(), "%s", out)
		return string(out)
	}
	require.Contains(t, services(2, "up"), "PORTS=free scripts/services up")
	require.Contains(t, services(1, "status"), "rabbitmq: not running")
}

// testBroker has the broker accept nothing, and refuse what a user wants.
func testBroker(t *testing.T, services func(args ...string) string, cfg *clusterconfig.Config) {
	services("rabbitmqctl", "set_vm_memory_high_watermark", "absolute", "1MB")
	require.Eventually(t, func() bool { return examine(t, cfg, 0)["queue publish and receive"].Verdict == doctor.Bad },
		effort.Patience,
		100*time.Millisecond)
	says(t, examine(t, cfg, 0), "queue publish and receive", doctor.Bad, "the broker accepts nothing: low on memory",
		"vm_memory_high_watermark")
	services("rabbitmqctl", "set_vm_memory_high_watermark", "0.4")
	services("rabbitmqctl", "add_user", "weak", "rumpelstilz")
	services("rabbitmqctl", "set_permissions", "-p", "/", "weak", "^$", ".*", ".*")
	cfg.Queue.Username, cfg.Queue.Password = "weak", "rumpelstilz"
	says(t, examine(t, cfg, 0), "queue publish and receive", doctor.Bad, "declare a quorum queue: ", "set_permissions")
}

// A bucket behind TLS, by an authority of its own.
func TestBucketWithTLS(t *testing.T) {
	t.Parallel()
	service := remotetest.NewS3(t)
	authority, stranger := securetest.NewAuthority(t), securetest.NewAuthority(t)
	with := authority.Server("127.0.0.1")
	with.ClientAuth = tls.NoClientCert
	cfg := sqliteCluster(t)
	cfg.Parts.S3 = &clusterconfig.S3{URL: "s3://" + service.Bucket + "/x", CA: authority.File, AccessKey: "me",
		SecretKey: "rumpelstilz",
		Endpoint:  "https://" + securetest.Terminate(t, with, strings.TrimPrefix(service.Endpoint, "http://"))}
	says(t, examine(t, cfg, 0), "parts remove", doctor.Good, "", "")
	cfg.Parts.S3.CA = stranger.File
	says(t, examine(t, cfg, 0), "parts reach", doctor.Bad, "certificate", "")
	with = authority.Server("elsewhere.example")
	with.ClientAuth = tls.NoClientCert
	cfg.Parts.S3.CA = authority.File
	cfg.Parts.S3.Endpoint = "https://" + securetest.Terminate(t, with, strings.TrimPrefix(service.Endpoint, "http://"))
	says(t, examine(t, cfg, 0), "parts reach", doctor.Bad, "certificate", "")
}
