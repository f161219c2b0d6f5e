package clusterconfig_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/secret"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/clusterconfig"
)

var environment = map[string]string{"CASSANDRA_PASSWORD": "rumpelstilz",
	"BROKER_URL": "amqps://guest:s3same@rabbit.example/fleet", "STORE_KEY": "open-sesame"}

func parse(t *testing.T, text string) (*clusterconfig.Config, string, *secret.Known) {
	t.Helper()
	known := secret.New()
	cfg, diags := clusterconfig.Parse("cluster.yaml", "/etc/fleet/cluster.yaml", text,
		clusterconfig.Options{Known: known, Environment: func(name string) (string, bool) {
			v, ok := environment[name]
			return v, ok
		}})
	return cfg, diags.Render(), known
}

func TestAll(t *testing.T) {
	t.Parallel()
	cfg, said, known := parse(t, `version: 1
state:
  cassandra:
    hosts: [db1, "db2:9043"]
    keyspace: figures
    datacenter: eu
    replication: {eu: 3, us: 2}
    username: thalweg
    password: "{env.CASSANDRA_PASSWORD}"
    tls: {ca: tls/ca.pem}
parts:
  s3: {url: s3://figures/parts, endpoint: https://store.example:9000, region: eu-1, ca: tls/ca.pem, access_key: figures, secret_key: "{env.STORE_KEY}"}
queue:
  rabbitmq: {url: "{env.BROKER_URL}"}
worker:
  scratch: /fast
  cache: 1.5GB
  memory: 4GiB
  cores: 8
  drain: 90s
  metrics: ":9464"
  machine: c7g.large
cost:
  services: {m8g.large: 2, c7g.large: 3}
  others: {nat: 0.045}
  bring_up: 4m
  prices: prices.yaml
`)
	require.Empty(t, said)
	require.Equal(t, &clusterconfig.Cassandra{Hosts: []string{"db1:9042", "db2:9043"}, Keyspace: "figures",
		Datacenter:  "eu",
		Replication: map[string]int{"eu": 3, "us": 2},
		Username:    "thalweg", Password: "rumpelstilz", TLS: &clusterconfig.TLS{CA: "/etc/fleet/tls/ca.pem"}},
		cfg.State.Cassandra)
	require.Equal(t, clusterconfig.Parts{S3: &clusterconfig.S3{URL: "s3://figures/parts",
		Endpoint: "https://store.example:9000",
		Region:   "eu-1",
		CA:       "/etc/fleet/tls/ca.pem", AccessKey: "figures", SecretKey: "open-sesame"}}, cfg.Parts)
	require.Equal(t, &clusterconfig.RabbitMQ{Hosts: []string{"rabbit.example:5671"}, Username: "guest",
		Password: "s3same", VHost: "fleet", TLS: &clusterconfig.TLS{}}, cfg.Queue)
	require.Equal(t, clusterconfig.Worker{Scratch: "/fast", Cache: 3 << 29, Memory: 4 << 30, Cores: 8,
		Drain:   90 * time.Second,
		Metrics: ":9464", Machine: "c7g.large"}, cfg.Worker)
	require.Equal(t, clusterconfig.Cost{Basis: bill.Basis{
		Services: []bill.Service{{Machine: "m8g.large", Count: 2}, {Machine: "c7g.large", Count: 3}},
		Others:   []bill.Hourly{{Name: "nat", PerHour: 45_000}}, BringUp: new(4 * time.Minute)}, Prices: "/etc/fleet/prices.yaml"},
		cfg.Cost)
	require.NotContains(t, known.Text("a rumpelstilz and a s3same"), "rumpelstilz")
	require.NotContains(t, known.Text("a rumpelstilz and a s3same"), "s3same")
	require.NotContains(t, known.Text("an open-sesame"), "sesame")
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg, said, _ := parse(t, "version: 1\nstate: {directory: runs}\n")
	require.Empty(t, said)
	require.Equal(t, "/etc/fleet/runs", cfg.State.Directory)
	require.Equal(t, "/etc/fleet/runs/parts", cfg.PartsDirectory())
	require.Nil(t, cfg.Queue)
	require.Equal(t, clusterconfig.Worker{Cache: clusterconfig.CacheDefaultBytes, Drain: clusterconfig.DrainDefault},
		cfg.Worker)

	cfg, said, _ = parse(t, "version: 1\nstate: {cassandra: {hosts: db1}}\n")
	require.Empty(t, said)
	require.True(t, cfg.Parts.Cassandra)
	require.Empty(t, cfg.PartsDirectory())
	require.Equal(t, map[string]int{"": 3}, cfg.State.Cassandra.Replication)
	require.Equal(t, clusterconfig.KeyspaceDefault, cfg.State.Cassandra.Keyspace)
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	const head = "version: 1\nstate: {directory: x}\n"
	for text, want := range map[string][]string{
		"":                                    {"not valid YAML"},
		"- a":                                 {"is a map, not a list"},
		"state: {directory: x}\n":             {"the version is missing"},
		"version: 2\nstate: {directory: x}\n": {"cluster.yaml:1:10", `version "2" is not known`},
		"version: 1\n":                        {"where the state is kept is missing"},
		"version: 1\nstate: {}\n":             {"cluster.yaml:2:", "names none of cassandra, directory"},
		"version: 1\nstate: {directory: x, cassandra: {hosts: a}}\n": {"names cassandra and directory"},
		"version: 1\nstat: {directory: x}\n": {"cluster.yaml:2:1", `unknown key "stat"`,
			`did you mean "state"?`},
		head + "worker: {drian: 3s}\n":                           {"cluster.yaml:3:10", `did you mean "drain"?`},
		head + "worker: {drain: soon}\n":                         {`"soon" is not a duration`},
		head + "cost: {others: {nat: 1e3}}\n":                    {"cluster.yaml:3:22", `"1e3" is not a price`},
		head + "cost: {others: {nat: -1}}\n":                     {`"-1" is not a price`},
		head + "cost: {services: {a/b: 1}}\n":                    {`"a/b" cannot be a name here`},
		head + "cost: {services: {a: 1, a: 2}}\n":                {"twice"},
		head + "cost: {services: {a: -1}}\n":                     {"cost.services.a"},
		head + "worker: {drain: 30h}\n":                          {"not between 0 and 24h"},
		head + "worker: {cache: 20}\n":                           {`"20" is not a size`},
		head + "worker: {cache: 20kB}\n":                         {"is too little", "the least is 64MB"},
		head + "worker: {memory: [1GB]}\n":                       {"worker.memory is a text, not a list"},
		head + "worker: {cores: 0}\n":                            {"whole number from 1"},
		head + "worker: {metrics: 9464}\n":                       {"is not HOST:PORT"},
		head + "worker: {machine: my own}\n":                     {`"my own" does not name a type of machine`},
		head + "worker: 7\n":                                     {"worker is a map, not a number"},
		head + "worker: {scratch: \"{env.NOWHERE}\"}\n":          {"the environment has no NOWHERE"},
		head + "parts: {cassandra: {}}\n":                        {"need the state there, too"},
		head + "parts: {s3: {}}\n":                               {"names no url"},
		head + "parts: {s3: {url: bucket}}\n":                    {"not the address of a bucket"},
		head + "parts: {s3: {url: s3://b/x, endpoint: store}}\n": {`"store" is not an address`},
		head + "parts: {s3: {url: s3://b/}}\n":                   {"not the address of a bucket", "s3://BUCKET/PREFIX"},
		head + "parts: {s3: {url: s3://b/x, access_key: me}}\n":  {"one of access_key and secret_key"},
		head +
			"parts: {s3: {url: s3://b/x, access_key: me, secret_key: secret77, secret_key_file: x}}\n": {"secret_key and secret_key_file"},
		head + "queue: {}\n":                                      {"names none of rabbitmq"},
		head + "queue: {rabbitmq: {}}\n":                          {"names no url and no hosts"},
		head + "queue: {rabbitmq: {url: http://a}}\n":             {"not the address of a broker"},
		head + "queue: {rabbitmq: {hosts: [a], url: amqp://b}}\n": {"a url and hosts"},
		head + "queue: {rabbitmq: {hosts: [a], username: me}}\n":  {"a username and no password"},
		"version: 1\nstate: {cassandra: {}}\n":                    {"names no hosts"},
		"version: 1\nstate: {cassandra: {hosts: 'a b'}}\n":        {`"a b" is not a host`},
		"version: 1\nstate: {cassandra: {hosts: 'a:70000'}}\n":    {"no port from 1 to 65535"},
		"version: 1\nstate: {cassandra: {hosts: a, keyspace: A-b}}\n": {"cannot be the name of a " +
			"keyspace"},
		"version: 1\nstate: {cassandra: {hosts: a, replication: 0}}\n":                      {"whole number from 1 to 9"},
		"version: 1\nstate: {cassandra: {hosts: a, replication: {'a;': 2}}}\n":              {"name of a datacenter"},
		"version: 1\nstate: {cassandra: {hosts: a, username: u, password_file: nothing}}\n": {"the password cannot be read"},
		"version: 1\nstate: {cassandra: {hosts: a, password: secret77}}\n":                  {"a password and no username"},
		"version: 1\nstate: {cassandra: {hosts: a, tls: {cert: a.pem}}}\n":                  {"one of cert and key"},
	} {
		cfg, said, _ := parse(t, text)
		require.Nil(t, cfg, text)
		for _, piece := range want {
			require.Contains(t, said, piece, text)
		}
		require.NotContains(t, said, "secret77")
	}
}

// What is found to be wrong later has a place, too.
func TestPlaces(t *testing.T) {
	t.Parallel()
	cfg, said, _ := parse(t, "version: 1\nstate:\n  cassandra:\n    hosts: [a]\n    replication: {eu: 3}\n")
	require.Empty(t, said)
	for want, keys := range map[string][]string{
		"cluster.yaml:4:12": {"state.cassandra.hosts"},
		"cluster.yaml:5:23": {"state.cassandra.replication.eu"},
		"cluster.yaml:5:18": {"state.cassandra.replication.us"},
		"cluster.yaml:4:5":  {"state.cassandra.password", "state.cassandra.username"},
		"cluster.yaml":      {"queue.rabbitmq.url"},
	} {
		require.Equal(t, want, cfg.Place(keys...).String(), keys)
	}
	require.Equal(t, "x.yaml", (&clusterconfig.Config{Path: "x.yaml"}).Place("state").String())
}

func TestPasswordFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pass"), []byte("open sesame\n"), 0o600))
	path := filepath.Join(dir, "cluster.yaml")
	require.NoError(t, os.WriteFile(path,
		[]byte("version: 1\nstate: {cassandra: {hosts: a, username: u, password_file: pass}}\n"), 0o600))
	known := secret.New()
	cfg, diags, err := clusterconfig.Load(path, clusterconfig.Options{Known: known})
	require.NoError(t, err)
	require.Empty(t, diags)
	require.Equal(t, "open sesame", cfg.State.Cassandra.Password)
	require.NotContains(t, known.Text("says open sesame"), "sesame")
	_, _, err = clusterconfig.Load(filepath.Join(dir, "other.yaml"), clusterconfig.Options{})
	require.ErrorContains(t, err, "there is no cluster configuration")
}
