package local_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/cluster"
	"thalweg/internal/local"
)

// Nodes of a broker that swallow everything keep nobody from one that answers.
func TestSilentNodesOfBroker(t *testing.T) {
	t.Parallel()
	broker := os.Getenv(brokerVariable)
	if broker == "" {
		t.Skip(brokerVariable + " names no RabbitMQ")
	}
	u, err := amqp.ParseURI(broker)
	require.NoError(t, err)
	var hosts []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
		require.NoError(t, err)
		t.Cleanup(func() { _ = l.Close() })
		hosts = append(hosts, l.Addr().String())
	}
	hosts = append(hosts, net.JoinHostPort(u.Host, strconv.Itoa(u.Port)))
	cfg := &cluster.Config{Queue: &cluster.RabbitMQ{Hosts: hosts, Username: u.Username, Password: u.Password, VHost: u.Vhost}}
	require.NoError(t, local.CheckBroker(t.Context(), cfg, true))
}
