package fleet

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/remotetest"
)

// Variables by which the services are found; the last is set by scripts/chaos-cluster,
// whose services may be stopped.
const (
	cassandraVariable = "THALWEG_TEST_CASSANDRA"
	rabbitVariable    = "THALWEG_TEST_RABBITMQ"
	servicesVariable  = "THALWEG_SERVICES"
	chaosVariable     = "THALWEG_CHAOS_CLUSTER"
)

// directory is a cluster without services.
func directory(t *testing.T) services {
	return services{config: "state: {directory: " + t.TempDir() + "}\n"}
}

// needed is a variable's value, or the end of the test.
func needed(t *testing.T, variable, what string) string {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		t.Skipf("%s is not set: no %s to test with", variable, what)
	}
	return text
}

// chaos ends the test but for scripts/chaos-cluster.
func chaos(t *testing.T) {
	t.Helper()
	if os.Getenv(chaosVariable) == "" {
		t.Skip("only `make chaos-cluster` does this")
	}
}

// nodesOf are the addresses of the Cassandra nodes: three where the services are
// those of scripts/chaos-cluster.
func nodesOf(t *testing.T) []string {
	t.Helper()
	first := needed(t, cassandraVariable, "Cassandra")
	if os.Getenv(chaosVariable) == "" {
		return []string{first}
	}
	_, port, _ := strings.Cut(first, ":")
	return []string{"127.0.0.1:" + port, "127.0.0.2:" + port, "127.0.0.3:" + port}
}

// inCassandra is a cluster whose state and parts are in a keyspace of its own.
func inCassandra(t *testing.T) services {
	t.Helper()
	return inKeyspace(t, nodesOf(t))
}

func inKeyspace(t *testing.T, nodes []string) services {
	t.Helper()
	keyspace := "fleet_" + strings.ToLower(crand.Text()[:12])
	if os.Getenv(chaosVariable) != "" { // it goes with its nodes, which may not agree on tables yet
		agree(t, nodes)
	} else {
		t.Cleanup(func() { dropped(t, nodes, keyspace) })
	}
	return services{ends: nodes,
		config: fmt.Sprintf("state: {cassandra: {hosts: [%s], keyspace: %s, replication: %d}}\n",
			`"`+strings.Join(nodes, `", "`)+`"`, keyspace, len(nodes))}
}

func dropped(t *testing.T, nodes []string, keyspace string) {
	t.Helper()
	admin, err := cassandra.Open(cassandra.Config{Hosts: nodes, Timeout: time.Minute})
	require.NoError(t, err)
	defer admin.Close()
	require.NoError(t, admin.Make(context.Background(), []string{"DROP KEYSPACE IF EXISTS " + keyspace}))
}

// agreeWithin is for how long nodes that were stopped may have other tables than the rest.
const agreeWithin = 3 * time.Minute

// agree waits until nodes that have been stopped know the tables that were made meanwhile.
func agree(t *testing.T, nodes []string) {
	t.Helper()
	var err error
	for until := time.Now().Add(agreeWithin); time.Now().Before(until); pause(t.Context(), time.Second) {
		var admin *cassandra.Session
		if admin, err = cassandra.Open(cassandra.Config{Hosts: nodes, Timeout: time.Minute}); err != nil {
			continue
		}
		err = admin.AwaitSchemaAgreement(t.Context())
		admin.Close()
		if err == nil {
			return
		}
	}
	require.NoError(t, err, "nodes do not agree on tables")
}

// withBroker adds a broker: the queues go with the test.
func withBroker(t *testing.T, s services) services {
	t.Helper()
	address := needed(t, rabbitVariable, "RabbitMQ")
	u, err := url.Parse(address)
	require.NoError(t, err)
	s.ends = append(s.ends, u.Host)
	s.broker, s.prefix = address, new(string)
	t.Cleanup(func() {
		_, err := s.atBroker(func(ch *amqp.Channel, queue string) (int, error) {
			return ch.QueueDelete(queue, false,
				false, false)
		})
		require.NoError(t, err)
	})
	s.config += fmt.Sprintf("queue: {rabbitmq: {url: %q}}\n", address)
	return s
}

// service starts or stops a service of scripts/chaos-cluster.
func service(ctx context.Context, verb, name string) error {
	text, err := exec.CommandContext(ctx, "../../../scripts/services", verb, name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", verb, name, err, text)
	}
	return nil
}

// levels are the queues of hints, as workers name them below the prefix.
func levels() []string { return []string{".hints.high", ".hints.normal", ".hints.low"} }

// atBroker does something with each queue of hints.
func (s services) atBroker(do func(ch *amqp.Channel, queue string) (int, error)) (int, error) {
	conn, err := amqp.Dial(s.broker)
	if err != nil {
		return 0, fmt.Errorf("reach the broker: %w", err)
	}
	defer conn.Close()
	n := 0
	for _, level := range levels() {
		ch, err := conn.Channel()
		if err != nil {
			return n, err
		}
		k, _ := do(ch, *s.prefix+level) // there may be no such queue yet, or a message too many
		n += k
	}
	return n, nil
}

// purge empties the queues of hints.
func (s services) purge() (int, error) {
	return s.atBroker(func(ch *amqp.Channel, queue string) (int, error) { return ch.QueuePurge(queue, false) })
}

// twisted is in messages that have been doubled.
const (
	twisted      = "x-twisted"
	twistedTimes = 10
	twistedMost  = 50 // at once
)

// twist takes what waits, and puts it back ten times in reverse.
func (s services) twist() (int, error) {
	return s.atBroker(func(ch *amqp.Channel, queue string) (int, error) {
		var taken []amqp.Delivery
		for len(taken) < twistedMost {
			d, ok, err := ch.Get(queue, false)
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			if d.Headers[twisted] != nil {
				_ = d.Nack(false, true)
				break
			}
			taken = append(taken, d)
		}
		n := 0
		for range twistedTimes {
			for _, d := range slices.Backward(taken) {
				headers := amqp.Table{twisted: true}
				maps.Copy(headers, d.Headers)
				if err := ch.PublishWithContext(context.Background(), "", queue, false, false,
					amqp.Publishing{Headers: headers, ContentType: d.ContentType, DeliveryMode: d.DeliveryMode,
						Body: d.Body, Type: d.Type, MessageId: d.MessageId, CorrelationId: d.CorrelationId,
						Timestamp: d.Timestamp, Expiration: d.Expiration}); err != nil {
					return n, err
				}
				n++
			}
		}
		for _, d := range taken {
			_ = d.Ack(false)
		}
		return n, nil
	})
}

// inS3 is a cluster with all services whose parts are in a bucket.
func inS3(t *testing.T, intercept func(http.ResponseWriter, *http.Request) bool) services {
	store := remotetest.NewS3(t)
	if intercept != nil {
		store.Intercept(intercept)
	}
	s := everything(t)
	s.config += fmt.Sprintf("parts: {s3: {url: %q, endpoint: %q, region: eu-1}}\n", "s3://"+store.Bucket+"/parts",
		store.Endpoint)
	s.ends = append(s.ends, strings.TrimPrefix(store.Endpoint, "http://"))
	return s
}

// moody is an S3 store that fails, is slow, and answers in another order.
func moody() func(http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(1, 2))
	return func(w http.ResponseWriter, q *http.Request) bool {
		mu.Lock()
		mood, slow := r.IntN(100), time.Duration(r.IntN(300))*time.Millisecond
		mu.Unlock()
		switch {
		case mood < 5:
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		case mood < 8:
			w.WriteHeader(http.StatusInternalServerError)
			return true
		case mood < 10:
			panic(http.ErrAbortHandler)
		case mood < 50:
			pause(q.Context(), slow)
		}
		return false
	}
}
