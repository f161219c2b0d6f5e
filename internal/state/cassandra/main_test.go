package cassandra

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	driver "thalweg/internal/cassandra"
)

// hostVariable names a node for tests.
const hostVariable = "THALWEG_TEST_CASSANDRA"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// newKeyspace makes a keyspace that is the test's own.
func newKeyspace(t *testing.T) driver.Config {
	t.Helper()
	host := os.Getenv(hostVariable)
	if host == "" {
		t.Skip(hostVariable + " names no Cassandra node (host:port)")
	}
	cfg := driver.Config{Hosts: []string{host}, Keyspace: fmt.Sprintf("thalweg_state_%d_%x", os.Getpid(), rand.Uint32())} //nolint:gosec // a name
	require.NoError(t, Init(context.Background(), cfg, map[string]int{"": 1}))
	t.Cleanup(func() {
		s, err := driver.Open(driver.Config{Hosts: cfg.Hosts})
		require.NoError(t, err)
		defer s.Close()
		require.NoError(t, s.Query("DROP KEYSPACE "+cfg.Keyspace).Exec())
	})
	return cfg
}
