package budget_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/budget"
)

func TestMeter(t *testing.T) {
	t.Parallel()
	var m budget.Meter
	defer m.Close()
	early := m.Watch()
	dir := t.TempDir()
	w := m.Watch()
	w.Spill(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), make([]byte, 1000), 0o600))
	other := m.Watch()
	other.Spill(dir)
	m.Look()
	memory, spilled := other.Stop()
	require.Equal(t, int64(1000), spilled)
	require.Positive(t, memory)
	m.Look()
	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	m.Look()
	_, spilled = w.Stop()
	require.Equal(t, int64(1000), spilled, "the most that was there at once")
	memory, spilled = early.Stop()
	require.Positive(t, memory)
	require.Zero(t, spilled)
	var none *budget.Meter
	none.Watch().Spill("x")
	memory, spilled = none.Watch().Stop()
	require.Zero(t, memory+spilled)
}
