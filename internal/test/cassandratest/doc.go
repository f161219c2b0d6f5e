// Package cassandratest gives tests a keyspace of their own on a real node, and
// a line to it that can be cut. Tests are skipped where THALWEG_TEST_CASSANDRA
// (host:port) is not set.
package cassandratest
