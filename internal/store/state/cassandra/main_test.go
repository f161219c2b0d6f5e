package cassandra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/test/effort"
)

// hostVariable names a node for tests.
const hostVariable = "THALWEG_TEST_CASSANDRA"

func TestMain(m *testing.M) {
	// The driver waits ten seconds when a node comes back, and up to 130 ms where it cannot connect, also where its
	// session has been closed meanwhile.
	const driver = "github.com/apache/cassandra-gocql-driver/v2."
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(driver+"(*Session).handleNodeUp"),
		goleak.IgnoreAnyFunction(driver+"(*hostConnPool).fillingStopped"))
}

// clusterVariable asks for the long form against three nodes: see scripts/chaos-cluster.
const clusterVariable = "THALWEG_CHAOS_CLUSTER"

func cluster() bool { return os.Getenv(clusterVariable) == "1" }

func long() bool { return effort.All() || cluster() }

// newKeyspace makes a keyspace that is the test's own.
func newKeyspace(t *testing.T) driver.Config {
	t.Helper()
	host := os.Getenv(hostVariable)
	if host == "" {
		t.Skip(hostVariable + " names no Cassandra node (host:port)")
	}
	copies := 1
	if cluster() {
		copies = 3
	}
	cfg := driver.Config{Hosts: []string{host}, Keyspace: fmt.Sprintf("thalweg_state_%d_%x", os.Getpid(),
		rand.Uint32())} //nolint:gosec // a name
	require.NoError(t, Init(context.Background(), cfg, map[string]int{"": copies}))
	t.Cleanup(func() {
		s, err := driver.Open(driver.Config{Hosts: cfg.Hosts})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Query("DROP KEYSPACE "+cfg.Keyspace).Exec())
	})
	return cfg
}
