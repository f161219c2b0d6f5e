package instance

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/store/cassandra"
)

// Leases go by the clock of the state, and by the time that passes.
func TestClockOfTheState(t *testing.T) {
	c := &Clock{}
	require.WithinDuration(t, time.Now(), c.Now(), time.Second, "without a state's clock it is the machine's")
	here := time.Now()
	c.at.Store(&moment{here: here, there: here.Round(0).Add(-time.Minute)})
	require.WithinDuration(t, time.Now().Add(-time.Minute), c.Now(), time.Second)

	address := os.Getenv("THALWEG_TEST_CASSANDRA")
	if address == "" {
		t.Skip("THALWEG_TEST_CASSANDRA is not set: no Cassandra to test with")
	}
	session, err := cassandra.Open(cassandra.Config{Hosts: []string{address}})
	require.NoError(t, err)
	defer session.Close()
	require.NoError(t, c.Follow(t.Context(), session))
	require.WithinDuration(t, time.Now(), c.Now(), 5*time.Second, "Cassandra is on this machine here")
}
