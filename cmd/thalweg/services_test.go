package main

import (
	"context"
	"crypto/rand"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"thalweg/internal/cassandra"
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
		session, err := cassandra.Open(cassandra.Config{Hosts: []string{host}})
		ts.Check(err)
		defer session.Close()
		ts.Check(session.Make(context.Background(), []string{"DROP KEYSPACE IF EXISTS " + keyspace}))
	})
}
