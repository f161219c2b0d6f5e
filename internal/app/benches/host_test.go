package benches_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/benches"
	"thalweg/internal/app/sizing"
	"thalweg/internal/ops/simulate"
)

// What is printed of a host is what those read who ask for its speed, or compare it.
func TestMeasuredHostIsRead(t *testing.T) {
	t.Parallel()
	h, err := benches.MeasureHost(t.Context(), benches.HostOptions{Machine: "c8g.large", Load: 300 * time.Millisecond,
		Dir: t.TempDir()})
	require.NoError(t, err)
	text := func() []byte {
		out, err := json.Marshal(h)
		require.NoError(t, err)
		return out
	}
	// Its speed beside a core that carried out runs is not known, and is not made up.
	_, err = simulate.ReadSpeed("host.json", text())
	require.ErrorContains(t, err, "it has no core_speed")

	slower, err := benches.ReadHost("host.json", text())
	require.NoError(t, err)
	rate := slower.Figures["core_rate_loaded"]
	rate.Value /= 2
	slower.Figures["core_rate_loaded"] = rate
	require.NoError(t, h.Against(slower, "slower.json"))
	speed, err := simulate.ReadSpeed("host.json", text())
	require.NoError(t, err)
	require.InDelta(t, 2, speed.CoreSpeed, 1e-9)
	require.Equal(t, "c8g.large", speed.Machine)
	require.Equal(t, h.Host, speed.Host)
	speeds := map[string]float64{}
	require.NoError(t, sizing.ReadSpeeds("host.json", text(), speeds))
	require.InDelta(t, 2, speeds["c8g.large"], 1e-9)

	m, err := sizing.MeasuredIn("host.json", text(), nil)
	require.NoError(t, err)
	c, err := sizing.Compare(m, m)
	require.NoError(t, err)
	require.Empty(t, c.Notes)
	require.Len(t, c.Ratios, len(h.Figures))
	for _, r := range c.Ratios {
		require.InDelta(t, 1, r.Ratio, 1e-9, r.What)
	}
	for _, name := range []string{"core_rate_alone", "core_rate_loaded", "memory_read_one", "memory_copy_all",
		"memory_latency_32k", "disk_write_cached", "disk_flush_p50", "loopback_round_trip_p50", "loopback_sent",
		"loopback_received", "loopback_packets", "clock_read"} {
		require.Positive(t, h.Figures[name].Value, name)
		require.NotEmpty(t, h.Figures[name].Unit, name)
	}
	requireShown(t, h)
}

// requireShown finds each figure, each rule and whatever could not be seen in what people are shown.
func requireShown(t *testing.T, h benches.Host) {
	t.Helper()
	shown := map[string]bool{}
	for _, table := range benches.HostTables(h) {
		require.NotEmpty(t, table.Rows, table.Title)
		for _, row := range table.Rows {
			require.Len(t, row, len(table.Header), table.Title)
			shown[row[0]] = true
		}
	}
	for name := range h.Figures {
		require.True(t, shown[name], name)
	}
	require.Len(t, h.Rules, 14)
	for _, r := range h.Rules {
		require.True(t, shown[r.Rule], r.Rule)
	}
	require.Len(t, benches.HostAdvice(h), len(h.Rules))
	require.Contains(t, strings.Join(benches.HostUnseen(h), "\n"), "network to another machine: none was named")
}

func TestHostsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	_, err := benches.ReadHost("host.json", []byte("[]"))
	require.ErrorContains(t, err, "host.json")
}
