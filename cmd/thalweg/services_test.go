package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/rogpeppe/go-internal/testscript"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
)

// cmdCassandra names a keyspace of the script's own in its environment, and removes
// what becomes of it: cassandra.
func cmdCassandra(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: cassandra")
	}
	host, keyspace := os.Getenv("THALWEG_TEST_CASSANDRA"), "script_"+strings.ToLower(rand.Text()[:12])
	ts.Setenv("CASSANDRA", host)
	ts.Setenv("KEYSPACE", keyspace)
	ts.Setenv("RABBITMQ_URL", os.Getenv("THALWEG_TEST_RABBITMQ"))
	ts.Defer(func() {
		ctx := context.Background()
		prefix, absent := instance.QueuePrefix(ctx,
			&clusterconfig.Config{State: clusterconfig.State{Cassandra: &clusterconfig.Cassandra{Hosts: []string{host},
				Keyspace: keyspace}}})
		session, err := cassandra.Open(cassandra.Config{Hosts: []string{host}})
		ts.Check(err)
		defer session.Close()
		ts.Check(session.Make(ctx, []string{"DROP KEYSPACE IF EXISTS " + keyspace}))
		// else the script has made no cluster
		if broker := os.Getenv("THALWEG_TEST_RABBITMQ"); broker != "" && absent == nil {
			ts.Check(clearBroker(broker, prefix))
		}
	})
}

// clearBroker removes what workers have declared under a prefix.
func clearBroker(broker, prefix string) error {
	conn, err := amqp.Dial(broker)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, level := range []string{"high", "normal", "low"} {
		if _, err := ch.QueueDelete(prefix+".hints."+level, false, false, false); err != nil { // none is no error
			return err
		}
	}
	return ch.ExchangeDelete(prefix+".signals", false, false)
}
