package benches

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/load"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/cassandratest"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/loadtest"
	"thalweg/internal/test/redistest"
	"thalweg/internal/test/remotetest"
)

// openTest opens a target for a test.
func openTest(t *testing.T, o TargetOptions) load.Target {
	t.Helper()
	target, err := OpenTarget(t.Context(), o)
	require.NoError(t, err)
	return target
}

// inside is the target behind the exporters.
func inside[T load.Target](of load.Target) T { return of.(*target).Target.(T) }

func TestCQLIsATarget(t *testing.T) {
	effort.Unraced(t)
	node := cassandratest.Node(t)
	loadtest.Run(t, loadtest.Facts{Nodes: 1, Wired: true,
		Open: func(t *testing.T) load.Target {
			return openTest(t, TargetOptions{At: "cql://" + node, CQL: CQLOptions{Timeout: time.Minute}})
		},
		Spoil: func(t *testing.T, of load.Target, key uint64) {
			l := inside[*cql](of).lane()
			require.ErrorIs(t, l.do(t.Context(), load.Op{Key: key + 1000}), load.ErrMissing)
			l.key[cqlKeyBytes-1] = byte(key)
			l.key[cqlKeyBytes-2] = 0
			require.NoError(t, l.update.ExecContext(t.Context()))
		},
		Behind: func(t *testing.T, patience time.Duration) (load.Target, *remotetest.Proxy) {
			at, proxy := proxied(t, "cql://", node)
			return openTest(t, TargetOptions{At: at, CQL: CQLOptions{Timeout: patience}}), proxy
		},
	})
}

func TestCQLOfAClusterHasAKeyspaceOfItsOwn(t *testing.T) {
	effort.Unraced(t)
	node := cassandratest.Node(t)
	config := &clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{
		Hosts: []string{node}, Keyspace: "never_made", Replication: map[string]int{"": 1}}}}
	o := TargetOptions{At: "cql", Cluster: config, Name: "bench_goes", Value: 3, CQL: CQLOptions{Columns: 2,
		Consistency: "quorum"}}
	for _, keep := range []bool{true, false} {
		o.Keep = keep
		target := openTest(t, o)
		require.True(t, stays(target), "it is kept, or another has made it")
		c, err := target.Client(t.Context(), 0)
		require.NoError(t, err)
		errs := make([]error, 1)
		if keep { // the second finds what the first has left
			c.Do(t.Context(), []load.Op{{Kind: load.Write, Key: 9}}, errs)
		} else {
			c.Do(t.Context(), []load.Op{{Kind: load.Read, Key: 9}}, errs)
		}
		require.NoError(t, errs[0])
		require.NoError(t, target.Close())
	}
	s := cassandratest.Open(t, cassandra.Config{Hosts: []string{node}, Timeout: time.Minute})
	keeps, err := cassandra.Replication(t.Context(), s, "bench_goes")
	require.NoError(t, err)
	require.NotEmpty(t, keeps, "who has not made it does not remove it")
	require.NoError(t, dropKeyspace(cassandra.Config{Hosts: []string{node}}, "bench_goes"))
	o.Keep = false
	require.NoError(t, openTest(t, o).Close())
	keeps, err = cassandra.Replication(t.Context(), s, "bench_goes")
	require.NoError(t, err)
	require.Empty(t, keeps)
}

// What a run has not made it does not remove, whatever the target.
func TestWhatWasThereStays(t *testing.T) {
	server := redistest.Start(t)
	for name, o := range map[string]TargetOptions{
		"redis":              {At: server.URL, Name: "bench_old"},
		"parts":              {At: "parts", Dir: t.TempDir(), Name: "bench_old", Value: 100},
		"parts in Cassandra": {At: "parts", Name: "bench_old_parts", Value: 100},
		"state in Cassandra": {At: "state", Name: "bench_old_state"},
	} {
		t.Run(name, func(t *testing.T) {
			var node string
			if strings.HasSuffix(name, "in Cassandra") {
				node = cassandratest.Node(t)
				o.Cluster = clusterOf(t, node, clusterconfig.Parts{Cassandra: o.At == "parts"})
				if o.At == "state" {
					o.Cluster.Parts.Directory = t.TempDir()
				}
			}
			for _, keep := range []bool{true, false, false} { // the third finds that the second has left it there
				o.Keep = keep
				target := openTest(t, o)
				require.True(t, stays(target))
				require.Equal(t, o.Cluster != nil, ofCassandra(target))
				c, err := target.Client(t.Context(), 0)
				require.NoError(t, err)
				errs := make([]error, 1)
				c.Do(t.Context(), []load.Op{{Kind: load.Write, Key: 9}}, errs)
				require.NoError(t, errs[0])
				require.NoError(t, c.Close())
				require.NoError(t, target.Close())
			}
			if o.Cluster != nil {
				require.NoError(t, dropKeyspace(cassandra.Config{Hosts: []string{node}}, o.Name))
			}
		})
	}
	require.Equal(t, "1", server.Do(t, "DBSIZE"))
	o := TargetOptions{At: server.URL, Name: "bench_new"}
	target := openTest(t, o)
	require.False(t, stays(target), "nothing has that name")
	require.NoError(t, target.Close())
}

// A generator sends, and asks no server what it does: who leads all of them does.
func TestGeneratorsAskNoServer(t *testing.T) {
	server := redistest.Start(t)
	target, err := openForGenerator(t.Context(), json.RawMessage(`{"at": "`+server.URL+`", "name": "bench_sent"}`))
	require.NoError(t, err)
	require.NotImplements(t, (*load.Observer)(nil), target)
	require.Implements(t, (*load.Meter)(nil), target)
	require.NoError(t, target.Close())
}

// proxied is an address of a proxy to a server.
func proxied(t *testing.T, scheme, server string) (string, *remotetest.Proxy) {
	proxy := remotetest.NewProxy(t, server)
	return scheme + proxy.Addr, proxy
}

func TestRedisIsATarget(t *testing.T) {
	server := redistest.Start(t)
	for name, o := range map[string]TargetOptions{
		"values":       {},
		"large values": {Value: 200_000},
		"hashes":       {Redis: RedisOptions{Fields: 10}},
		"large hashes": {Redis: RedisOptions{Fields: 700}},
	} {
		t.Run(name, func(t *testing.T) {
			o.At = server.URL
			loadtest.Run(t, loadtest.Facts{Nodes: 1, Wired: true,
				Open: func(t *testing.T) load.Target { return openTest(t, o) },
				Behind: func(t *testing.T, patience time.Duration) (load.Target, *remotetest.Proxy) {
					o, proxy := o, (*remotetest.Proxy)(nil)
					o.At, proxy = proxied(t, "redis://", "127.0.0.1:"+server.Port)
					o.Redis.Timeout = patience
					return openTest(t, o), proxy
				},
				Spoil: func(t *testing.T, of load.Target, key uint64) {
					c := inside[*redis](of).client(&wire{})
					command := []string{"SETRANGE", string(c.name(key)), "7", "?"}
					if c.t.o.Fields > 0 {
						command = []string{"HSET", string(c.name(key)), "f3", "?"}
					}
					require.NoError(t, c.ask(t.Context(), command, func(r *replies) error { _, err := r.header(':'); return err }))
					require.NoError(t, c.Close())
				},
			})
		})
	}
	require.Equal(t, "0", server.Do(t, "DBSIZE"), "targets that are closed leave no key")
	_, socket, _ := strings.Cut(server.Do(t, "CONFIG", "GET", "unixsocket"), "\n")
	require.NoError(t, openTest(t, TargetOptions{At: "unix://" + socket}).Close())
}

// Keys that are there already are only read, and stay.
func TestRedisReadsWhatIsThere(t *testing.T) {
	server := redistest.Start(t)
	target := openTest(t, TargetOptions{At: server.URL, Redis: RedisOptions{There: "item:"}})
	server.Do(t, "SET", "item:7", "anything")
	server.Do(t, "HSET", "hash:10", "one", "1234", "two", "56")
	c, err := target.Client(t.Context(), 0)
	require.NoError(t, err)
	errs := make([]error, 3)
	c.Do(t.Context(), []load.Op{{Key: 7}, {Key: 8}, {Kind: load.Write, Key: 7}}, errs)
	require.NoError(t, errs[0])
	require.ErrorIs(t, errs[1], load.ErrMissing)
	require.ErrorIs(t, errs[2], errForeign)
	require.EqualValues(t, len("item:7")+len("anything"), target.(load.Meter).Moved().Payload, "of what was read")
	require.NoError(t, c.Close())
	require.NoError(t, target.Close())
	target = openTest(t, TargetOptions{At: server.URL, Redis: RedisOptions{There: "hash:", Fields: 5}})
	c, err = target.Client(t.Context(), 0)
	require.NoError(t, err)
	c.Do(t.Context(), []load.Op{{Key: 10}, {Key: 9}}, errs)
	require.NoError(t, errs[0])
	require.EqualValues(t, len("hash:10")+len("123456"), target.(load.Meter).Moved().Payload)
	require.NoError(t, c.Close())
	require.NoError(t, target.Close())
	require.Equal(t, "2", server.Do(t, "DBSIZE"))
}

func TestRedisWantsAPassword(t *testing.T) {
	server := redistest.Start(t, "--requirepass", "s3cret-word")
	for _, o := range []TargetOptions{
		{}, {Login: Login{Password: "wrong-word"}}, {Login: Login{Username: "nobody", Password: "s3cret-word"}},
		{At: "redis://:wrong-word@127.0.0.1:" + server.Port},
		{At: "redis://127.0.0.1:" + server.Port, Login: Login{Password: "wrong-word"}, Redis: RedisOptions{There: "a"}},
	} {
		o.At = cmp.Or(o.At, server.URL)
		_, err := OpenTarget(t.Context(), o)
		require.Equal(t, fault.Script, fault.Of(err).Kind, "%v", err)
		require.ErrorContains(t, err, "127.0.0.1:"+server.Port)
		for _, password := range []string{"s3cret-word", "wrong-word"} {
			require.NotContains(t, fmt.Sprintf("%v %+v", err, fault.Of(err)), password)
		}
	}
	require.NoError(t, openTest(t, TargetOptions{At: server.URL, Login: Login{Username: "default",
		Password: "s3cret-word"}}).Close())
}

func TestWhoIsNotLetIn(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{cassandra.Fault("connect", &cassandra.LoginError{Said: "no"}), true},
		{cassandra.Fault("connect", cassandra.ErrNoLogin), true},
		{fmt.Errorf("write: %w", redisError("NOPERM this user has no permissions")), true},
		{redisError("LOADING Redis is loading the dataset in memory"), false},
		{cassandra.Fault("connect", errors.New("no route to host")), false},
	} {
		require.Equal(t, c.want, refused(c.err), "%v", c.err)
	}
}

func TestPartsAreATarget(t *testing.T) {
	dir := t.TempDir()
	loadtest.Run(t, loadtest.Facts{
		Open: func(t *testing.T) load.Target {
			return openTest(t, TargetOptions{At: "parts", Dir: dir, Value: 700_000})
		},
		Spoil: func(t *testing.T, of load.Target, key uint64) {
			p := inside[*partsTarget](of)
			path, release, err := p.Parts.Fetch(t.Context(), partKey(key), "")
			require.NoError(t, err)
			defer release()
			require.NoError(t, os.Chmod(path, 0o600))
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			require.NoError(t, err)
			_, err = f.WriteAt([]byte("?"), 600_000)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
	})
	requireEmpty(t, dir)
}

func TestPartsInCassandraAreATarget(t *testing.T) {
	config := clusterOf(t, cassandratest.Node(t), clusterconfig.Parts{Cassandra: true})
	loadtest.Run(t, loadtest.Facts{Nodes: 1, Stubborn: true,
		Open: func(t *testing.T) load.Target {
			return openTest(t, TargetOptions{At: "parts", Cluster: config, Value: 100_000})
		},
		Behind: func(t *testing.T, _ time.Duration) (load.Target, *remotetest.Proxy) {
			at, proxy := proxied(t, "", cassandratest.Node(t))
			return openTest(t, TargetOptions{At: "parts", Value: 100_000,
				Cluster: clusterOf(t, at, clusterconfig.Parts{Cassandra: true})}), proxy
		},
	})
}

func TestPartsInS3AreATarget(t *testing.T) {
	service := remotetest.NewS3(t)
	config := func(t *testing.T, endpoint string) *clusterconfig.Config {
		return &clusterconfig.Config{State: clusterconfig.State{Directory: t.TempDir()},
			Parts: clusterconfig.Parts{S3: &clusterconfig.S3{URL: "s3://" + service.Bucket + "/bench", Endpoint: endpoint,
				AccessKey: "me", SecretKey: "s3cret-word"}},
			Worker: clusterconfig.Worker{Scratch: t.TempDir(), Cache: clusterconfig.CacheDefaultBytes}}
	}
	loadtest.Run(t, loadtest.Facts{Stubborn: true,
		Open: func(t *testing.T) load.Target {
			return openTest(t, TargetOptions{At: "parts", Cluster: config(t, service.Endpoint), Value: 100_000})
		},
		Behind: func(t *testing.T, _ time.Duration) (load.Target, *remotetest.Proxy) {
			at, proxy := proxied(t, "http://", strings.TrimPrefix(service.Endpoint, "http://"))
			return openTest(t, TargetOptions{At: "parts", Cluster: config(t, at), Value: 100_000}), proxy
		},
	})
	left, err := service.Backend.ListBucket(service.Bucket, nil, gofakes3.ListBucketPage{})
	require.NoError(t, err)
	require.Empty(t, left.Contents, "what was measured is removed")
	require.Empty(t, service.OpenUploads(t))
}

// clusterOf is a cluster whose own keyspace is not there, and is not needed.
func clusterOf(t *testing.T, node string, parts clusterconfig.Parts) *clusterconfig.Config {
	return &clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{
		Hosts: []string{node}, Keyspace: "never_made", Replication: map[string]int{"": 1}}}, Parts: parts,
		Worker: clusterconfig.Worker{Scratch: t.TempDir(), Cache: clusterconfig.CacheDefaultBytes}}
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Runs are used up in the middle of the tests.
func TestStateIsATarget(t *testing.T) {
	dir := t.TempDir()
	loadtest.Run(t, loadtest.Facts{Open: func(t *testing.T) load.Target {
		return openTest(t, TargetOptions{At: "state", Dir: dir, Batches: 7})
	}})
	requireEmpty(t, dir)
}

func TestStateInCassandraIsATarget(t *testing.T) {
	config := clusterOf(t, cassandratest.Node(t), clusterconfig.Parts{Directory: t.TempDir()})
	loadtest.Run(t, loadtest.Facts{Nodes: 1, Stubborn: true,
		Open: func(t *testing.T) load.Target {
			return openTest(t, TargetOptions{At: "state", Cluster: config, Batches: 50})
		},
		Behind: func(t *testing.T, _ time.Duration) (load.Target, *remotetest.Proxy) {
			at, proxy := proxied(t, "", cassandratest.Node(t))
			return openTest(t, TargetOptions{At: "state", Batches: 50,
				Cluster: clusterOf(t, at, clusterconfig.Parts{Directory: t.TempDir()})}), proxy
		},
	})
	requireEmpty(t, config.Parts.Directory)
}

func TestWhatCannotBeMeasured(t *testing.T) {
	for _, c := range []struct {
		o    TargetOptions
		says string
	}{
		{TargetOptions{At: "ftp://a:secret-word@b"}, "cannot measure ftp://b"},
		{TargetOptions{At: "cql"}, "which Cassandra?"},
		{TargetOptions{At: "parts"}, "name a state directory"},
		{TargetOptions{At: "state", Dir: "x", Batches: -1}, "1 to 1000000 batches"},
		{TargetOptions{At: "state", Dir: "x", Name: "A;B"}, `"A;B" cannot be the name`},
		{TargetOptions{At: "state", Dir: "x", Name: "prod"}, "bench_ and 1 to 42"},
		{TargetOptions{At: "u:secret-word@b"}, "cannot measure b"},
		{TargetOptions{At: "ftp://u:?secret-word@b"}, "cannot measure ftp://b"},
		{TargetOptions{At: "cql://u:%zzsecret-word@b"}, "cannot read the user and the password before b"},
		{TargetOptions{At: "redis://u:secret-word@:99"}, "cannot read the address redis://:99"},
		{TargetOptions{At: "redis://h:1/x"}, "cannot read the address"},
		{TargetOptions{At: "redis://h:1/0?secret-word"}, "cannot read the address"},
		{TargetOptions{At: "cql://h", CQL: CQLOptions{Consistency: "MOST"}}, `no consistency "MOST"`},
		{TargetOptions{At: "cql://h", CQL: CQLOptions{Columns: -1}}, "1 to 1000 columns"},
		{TargetOptions{At: "cql://h", Value: -1}, "values have"},
		{TargetOptions{At: "parts", Dir: "x", Exporters: []string{"file:///etc"}}, "cannot read the exporter"},
	} {
		_, err := OpenTarget(t.Context(), c.o)
		require.ErrorContains(t, err, c.says, "%+v", c.o)
		require.NotContains(t, err.Error(), "secret-word")
	}
	require.NoDirExists(t, "x")
}

// metrics answers like an exporter.
func metrics(t *testing.T, text func() string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "u" || password != "secret-word" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = fmt.Fprint(w, text())
	}))
	t.Cleanup(server.Close)
	return strings.Replace(server.URL, "http://", "http://u:secret-word@", 1)
}

const ofAMachine = `# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
node_cpu_seconds_total{cpu="0",mode="iowait"} 500
node_cpu_seconds_total{cpu="0",mode="user"} 7
node_cpu_seconds_total{cpu="1",mode="system"} 3
# TYPE node_network_receive_bytes_total counter
node_network_receive_bytes_total{device="lo"} 99
node_network_receive_bytes_total{device="eth0"} 11
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 1
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="1"} 0.5
go_gc_duration_seconds_sum 2
go_gc_duration_seconds_count 4
# TYPE odd gauge
odd NaN
odd{a="b"} +Inf
odd{a="c"} 4
odd{a="d"} 1.7e308
odd{a="e"} 1.7e308
`

const ofJava = `# TYPE jvm_gc_collection_seconds summary
jvm_gc_collection_seconds_count{gc="G1 Young Generation"} 10
jvm_gc_collection_seconds_sum{gc="G1 Young Generation"} 1.5
jvm_gc_collection_seconds_count{gc="G1 Old Generation"} 1
jvm_gc_collection_seconds_sum{gc="G1 Old Generation"} 0.5
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 42
`

func TestExportersSayWhatServersDo(t *testing.T) {
	text := ofAMachine
	exporter := metrics(t, func() string { return text })
	target := openTest(t, TargetOptions{At: "parts", Dir: t.TempDir(), Exporters: []string{exporter}})
	defer func() { require.NoError(t, target.Close()) }()
	readings, err := target.(load.Observer).Observe(t.Context())
	require.NoError(t, err)
	require.Len(t, readings, 1)
	got := readings[0]
	require.InDelta(t, 10, got.Counters[load.CPUSeconds], 0, "neither idle nor waiting, and not the exporter's own")
	require.InDelta(t, 11, got.Counters[load.NetworkIn], 0)
	require.InDelta(t, 2, got.Gauges[load.Cores], 0)
	require.NotContains(t, got.Counters, load.PauseSecs, "the exporter's own collector stops nobody else")
	require.InDelta(t, 1.7e308, got.Gauges["odd"], 1e300)

	text = ofJava
	readings, err = target.(load.Observer).Observe(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 2, readings[0].Counters[load.PauseSecs], 0)
	require.InDelta(t, 42, readings[0].Counters[load.CPUSeconds], 0)

	for says, wrong := range map[string]string{
		"more than 16 MiB": strings.Repeat("# nothing\n", 2<<20), "or 200000 lines": strings.Repeat("a 1\n", 200_001),
		"parsing":           "a{ " + strings.Repeat("7", 1<<20),
		"2000 are the most": strings.Join(numbered("m%d 1\n", 2001), ""),
	} {
		text = wrong
		_, err = target.(load.Observer).Observe(t.Context())
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "secret-word")
		require.Less(t, len(err.Error()), 1000)
	}
}

func numbered(format string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf(format, i))
	}
	return out
}

// What an exporter says of a host joins what the server on it says, whatever their ports.
func TestReadingsOfOneHostAreOne(t *testing.T) {
	servers := []load.Reading{{Node: "10.0.0.1:9042", Counters: map[string]float64{"a": 1}, Gauges: map[string]float64{}}}
	exporters := []load.Reading{{Node: "10.0.0.1:9100", Counters: map[string]float64{"b": 2}},
		{Node: "10.0.0.2:9100", Counters: map[string]float64{"b": 3}}}
	got := join(servers, exporters)
	require.Len(t, got, 2)
	require.Equal(t, map[string]float64{"a": 1, "b": 2}, got[0].Counters)
	require.Equal(t, "10.0.0.2:9100", got[1].Node)
}

// The cores of a server are those that it tells of, or those of this host if it is on it.
func TestCoresOfServers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		node  string
		told  float64
		cores float64
	}{
		{"127.0.0.1:6379", 0, float64(runtime.NumCPU())}, {"[::1]:6379", 0, float64(runtime.NumCPU())},
		{"localhost:6379", 0, float64(runtime.NumCPU())}, {"/run/redis.sock", 0, float64(runtime.NumCPU())},
		{"192.0.2.1:6379", 0, 0}, {"192.0.2.1:6379", 96, 96}, {"a.example:9042", 0, 0},
		{"127.0.0.1:6379", 1000, 1000},
	} {
		r := load.Reading{Node: c.node, Gauges: map[string]float64{}}
		if c.told > 0 {
			r.Gauges[load.Cores] = c.told
		}
		localCores([]load.Reading{r})
		require.InDelta(t, c.cores, r.Gauges[load.Cores], 0, c.node)
	}
	for want, n := range map[string]load.NodeUse{
		"unknown: how many cores":    {Rates: map[string]float64{load.CPUSeconds: 1}},
		"unknown: no exporter tells": {},
		"75 % of 2 cores": {Rates: map[string]float64{load.CPUSeconds: 1.5},
			Gauges: map[string]float64{load.Cores: 2}},
		"unknown: how many cores; main thread 97 % of one": {Rates: map[string]float64{load.CPUSeconds: 1,
			load.MainThread: 0.97}},
	} {
		require.Equal(t, want, usedText(n))
	}
}

// A part that another generator has written already is written beside it, and then removed.
func TestPartsOfSeveralGenerators(t *testing.T) {
	o := TargetOptions{At: "parts", Dir: t.TempDir(), Name: "bench_shared", Value: 1000, Keep: true}
	first, second := openTest(t, o), openTest(t, o)
	for _, target := range []load.Target{first, second} {
		c, err := target.Client(t.Context(), 0)
		require.NoError(t, err)
		errs := make([]error, 2)
		c.Do(t.Context(), []load.Op{{Kind: load.Write, Key: 4}, {Kind: load.Write, Key: 4}}, errs)
		require.Equal(t, make([]error, 2), errs)
		c.Do(t.Context(), []load.Op{{Key: 4}, {Key: 4}}, errs)
		require.Equal(t, make([]error, 2), errs)
		require.NoError(t, c.Close())
	}
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	again := openTest(t, o)
	defer func() { require.NoError(t, again.Close()) }()
	var there []string
	for part, err := range inside[*partsTarget](again).Parts.List(t.Context(), "", "") {
		require.NoError(t, err)
		there = append(there, part.Key)
	}
	require.Equal(t, []string{partKey(4)}, there, "what nobody reads is removed at once, and what is kept is not")
}
