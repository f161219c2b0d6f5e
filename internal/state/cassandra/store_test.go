package cassandra

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/state"
	"thalweg/internal/state/statetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	cfg := newKeyspace(t)
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := Open(context.Background(), Config{Config: cfg})
		require.NoError(t, err)
		return s
	})
}
