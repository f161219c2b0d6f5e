package cassandra

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
	"thalweg/internal/test/statetest"
)

func TestConformance(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	cfg := newKeyspace(t)
	statetest.Run(t, func(t *testing.T) state.Store {
		t.Helper()
		s, err := Open(context.Background(), Config{Config: cfg})
		require.NoError(t, err)
		return s
	})
}

// Tables that are missing, or of another version, are refused with what to do.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	cfg := newKeyspace(t)
	require.NoError(t, Init(ctx, cfg, map[string]int{"": 1}), "it may be repeated")
	session, err := driver.Open(cfg)
	require.NoError(t, err)
	defer session.Close()
	for version, hint := range map[int]string{0: "{{do cluster-init", schemaVersion + 1: "newer program"} {
		require.NoError(t, session.Query(`UPDATE state_schema SET version = ? WHERE one = 0`, version).Exec())
		refused(t, cfg, hint)
	}
	require.NoError(t, session.Query(`DROP TABLE state_schema`).Exec())
	refused(t, cfg, "{{do cluster-init")
	cfg.Keyspace += "_not"
	refused(t, cfg, "{{do cluster-init")
}

func refused(t *testing.T, cfg driver.Config, hint string) {
	t.Helper()
	_, err := Open(context.Background(), Config{Config: cfg})
	var f *fault.Error
	require.ErrorAs(t, err, &f)
	require.Equal(t, fault.Environment, f.Kind)
	require.Contains(t, f.Hint, hint)
}
