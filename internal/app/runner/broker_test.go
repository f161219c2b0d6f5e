package runner_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/cluster"
	"thalweg/internal/ops/clusterconfig"
)

// Nodes of a broker that swallow everything keep nobody from one that answers.
func TestSilentNodesOfBroker(t *testing.T) {
	t.Parallel()
	broker := brokerOf(t)
	var hosts []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		hosts = append(hosts, l.Addr().String())
	}
	broker.Hosts = append(hosts, broker.Hosts...)
	require.NoError(t, cluster.CheckBroker(t.Context(), &clusterconfig.Config{Queue: &broker}, true))
}
