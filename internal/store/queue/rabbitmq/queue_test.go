package rabbitmq

import (
	"context"
	"crypto/rand"
	"os"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
	"thalweg/internal/test/queuetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broker is the address of a real one.
func broker(t testing.TB) string {
	t.Helper()
	address := os.Getenv("THALWEG_TEST_RABBITMQ")
	if address == "" {
		t.Skip("no broker: THALWEG_TEST_RABBITMQ is not set (amqp://user:password@host:port/)")
	}
	return address
}

// prefix is a name of the test's own; what is declared under it is removed.
func prefix(t testing.TB) string {
	t.Helper()
	c, err := Config{URL: broker(t), Prefix: "test-" + rand.Text()}.withDefaults()
	require.NoError(t, err)
	t.Cleanup(func() {
		admin(t, func(ch *amqp.Channel) {
			for _, p := range queue.Levels() {
				_, err := ch.QueueDelete(c.hintsOf(p), false, false, false)
				require.NoError(t, err)
			}
			_, err := ch.QueueDelete(c.later(), false, false, false)
			require.NoError(t, err)
			require.NoError(t, ch.ExchangeDelete(c.signals(), false, false))
		})
	})
	return c.Prefix
}

// admin does something at the broker beside the queue that is tested.
func admin(t testing.TB, do func(*amqp.Channel)) {
	t.Helper()
	conn, err := amqp.Dial(broker(t))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	require.NoError(t, err)
	do(ch)
}

func open(t testing.TB, cfg Config) *Queue {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = broker(t)
	}
	q, err := Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

func TestSuite(t *testing.T) {
	t.Parallel()
	broker(t)
	queuetest.Run(t, func(t *testing.T) queue.Queue {
		q := open(t, Config{Prefix: prefix(t)})
		require.True(t, q.Shared())
		return q
	})
}

// Who gives an order and ends signals, too: everybody who takes part hears it.
func TestSendFromOutside(t *testing.T) {
	t.Parallel()
	at := prefix(t)
	want := queue.Signal{RunKey: state.RunKey{Workspace: "w", Run: 7}, Kind: queue.Ordered}
	require.Error(t, Send(t.Context(), Config{URL: broker(t), Prefix: at}, want), "nobody has ever been there")
	for range 2 {
		q := open(t, Config{Prefix: at})
		require.NoError(t, Send(t.Context(), Config{URL: broker(t), Prefix: at}, want))
		got, err := q.Signalled(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Error(t, Send(t.Context(), Config{Hosts: []string{"127.0.0.1:1"}, Prefix: at}, want))
}
