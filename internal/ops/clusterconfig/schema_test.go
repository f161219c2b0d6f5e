package clusterconfig_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/document"
	"thalweg/internal/ops/clusterconfig"
)

func schema(t *testing.T) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	text, err := clusterconfig.JSONSchema()
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("cluster.json", value))
	s, err := c.Compile("cluster.json")
	require.NoError(t, err)
	return s, value.(map[string]any)
}

func valid(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	root, problems := document.Read(document.NewSource("cluster.yaml", text))
	require.Nil(t, problems)
	return s.Validate(plainly(t, root))
}

// plainly is a value as the validator takes it.
func plainly(t *testing.T, v *document.Value) any {
	switch v.Kind {
	case document.Map:
		out := map[string]any{}
		for _, e := range v.Entries {
			out[e.Name] = plainly(t, e.Value)
		}
		return out
	case document.List:
		out := []any{}
		for _, item := range v.Items {
			out = append(out, plainly(t, item))
		}
		return out
	case document.String:
		return v.Text
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(v.Text))
	require.NoError(t, err)
	return out
}

// What loads is valid, and what is not valid does not load.
func TestSchemaAgreesWithTheLoader(t *testing.T) {
	t.Parallel()
	s, _ := schema(t)
	const head = "version: 1\nstate: {directory: x}\n"
	for _, text := range []string{
		head, "version: \"1\"\nstate: {cassandra: {hosts: db1}}\n",
		"version: 1\nstate: {cassandra: {hosts: [db1, \"db2:9043\"], replication: 2}}\n",
		"version: 1\nstate: {cassandra: {hosts: a, keyspace: k, datacenter: eu, replication: {eu: 3}, username: u, " +
			"password: p, tls: true}}\nparts: {cassandra: {}}\n",
		head + "parts: {directory: y}\nworker: {scratch: s, cache: 20GB, memory: 4GiB, cores: 8, drain: 1m30s, " +
			"metrics: \":9464\", python: pypy3}\n",
		head + "worker: {concurrency: 3}\n",
		head + "worker: {concurrency: {load: 2, join: {batches: 1, threads: 2, writers: 4}, write: {threads: 1}}}\n",
		head + "parts: {s3: {url: s3://b/x, endpoint: \"https://s:9000\", region: eu, ca: c, access_key: a, " +
			"secret_key: b}}\n",
		head + "cost: {services: {c7g.large: 3}, others: {nat: 0.045, lb: \"0.0225\"}, bring_up: 4m, prices: p.yaml}\n",
		head + "queue: {rabbitmq: {url: \"amqp://h/\"}}\n", head + "queue: {rabbitmq: {url: \"{env.BROKER_URL}\"}}\n",
		head + "queue: {rabbitmq: {hosts: [h], username: u, password: p, vhost: v, tls: {ca: a, cert: b, key: c, " +
			"server_name: d}}}\nworker: {drain: 0}\n",
	} {
		_, said, _ := parse(t, text)
		require.Empty(t, said, text)
		require.NoError(t, valid(t, s, text), text)
	}
	for _, text := range []string{
		"version: 2\nstate: {directory: x}\n", "version: 1\n", "version: 1\nstate: {}\n",
		"version: 1\nstate: {directory: x, cassandra: {hosts: a}}\n",
		"version: 1\nstate: {cassandra: {}}\n", "version: 1\nstate: {cassandra: {hosts: []}}\n",
		"version: 1\nstate: {cassandra: {hosts: a, replication: 0}}\n",
		"version: 1\nstate: {cassandra: {hosts: a, tls: {cert: c}}}\n", "version: 1\nstat: {directory: x}\n",
		head + "worker: {drain: soon}\n", head + "worker: {cache: 20}\n", head + "worker: {cores: 0}\n",
		head + "worker: 7\n", head + "worker: {scratch: [a]}\n",
		head + "parts: {s3: {}}\n", head + "parts: {s3: {url: bucket}}\n",
		head + "parts: {s3: {url: s3://b/x, endpoint: store}}\n",
		head + "queue: {}\n",
		head + "cost: {services: {}}\n", head + "cost: {services: {c7g.large: 0}}\n", head + "cost: {services: [a]}\n",
		head + "cost: {services: {a b: 1}}\n", head + "cost: {others: {nat: [1]}}\n", head + "cost: {bring_up: soon}\n",
		head + "cost: {service: {a: 1}}\n",
		head + "worker: {concurrency: 0}\n", head + "worker: {concurrency: {all: 2}}\n",
		head + "worker: {concurrency: {python: {threads: 2}}}\n",
		head + "queue: {rabbitmq: {url: http://a}}\n",
	} {
		cfg, _, _ := parse(t, text)
		require.Nil(t, cfg, text)
		require.Error(t, valid(t, s, text), text)
	}
}

// The example for containers is valid.
func TestSchemaOfTheExample(t *testing.T) {
	t.Parallel()
	s, _ := schema(t)
	text, err := os.ReadFile("../../../deploy/cluster.yaml")
	require.NoError(t, err)
	require.NoError(t, valid(t, s, string(text)))
	printed, err := clusterconfig.JSONSchema()
	require.NoError(t, err)
	kept, err := os.ReadFile("../../../" + clusterconfig.SchemaID)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(printed), "write it anew: thalweg schema cluster >"+clusterconfig.SchemaID)
}

// Each key of the schema is known to the loader, which names all that it knows when one is not.
func TestSchemaHasTheKeysOfTheLoader(t *testing.T) {
	t.Parallel()
	_, root := schema(t)
	tls := root["$defs"].(map[string]any)["tls"].(map[string]any)["oneOf"].([]any)[1].(map[string]any)
	var look func(path string, at map[string]any)
	looked := 0
	look = func(path string, at map[string]any) {
		if at["$ref"] == "#/$defs/tls" {
			at = tls
		}
		properties, ok := at["properties"].(map[string]any)
		if !ok {
			return
		}
		looked++
		require.Equal(t, clusterconfig.KeysOf(path), slices.Sorted(maps.Keys(properties)), "keys of %q", path)
		for name, below := range properties {
			look(strings.TrimPrefix(path+"."+name, "."), below.(map[string]any))
		}
	}
	look("", root)
	require.Equal(t, 12, looked)
}
