package cassandra

import (
	"fmt"
	"os"
	"testing"

	"thalweg/internal/store/cassandra"
	"thalweg/internal/test/cassandratest"
)

// shared is the keyspace of all tests, each of which has a space of its own in it.
var shared cassandra.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var main once
	defer main.end()
	if os.Getenv("THALWEG_TEST_CASSANDRA") != "" {
		shared = cassandratest.Keyspace(&main, Tables())
	}
	return m.Run()
}

// once stands in for a test, for helpers that make what all tests share.
type once struct{ cleanups []func() }

func (o *once) Helper()                   {}
func (o *once) Cleanup(f func())          { o.cleanups = append(o.cleanups, f) }
func (o *once) Skipf(f string, a ...any)  { panic(fmt.Sprintf(f, a...)) }
func (o *once) Logf(f string, a ...any)   { fmt.Printf(f+"\n", a...) }
func (o *once) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (o *once) FailNow()                  { panic("failed") }

func (o *once) end() {
	for _, f := range o.cleanups {
		f()
	}
}
