package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/bench/generate"
)

const repoRoot = "../.."

// TestPeerGivesThePublishedResults runs the real peer on the real data: a
// yardstick that is wrong is worth nothing.
func TestPeerGivesThePublishedResults(t *testing.T) {
	t.Parallel()
	if !hasEngine(t.Context(), "python3") {
		t.Skip("python3 has no duckdb " + peerDuckDB)
	}
	dir := os.Getenv("THALWEG_REAL_DATA")
	if dir == "" {
		t.Skip("THALWEG_REAL_DATA is not set: the peer is not compared with published results")
	}
	data := filepath.Join(dir, "portfolio")
	s := &session{config: Config{RealDataDir: dir}}
	in, err := s.ark(data)
	require.NoError(t, err)
	require.NotNil(t, in.params, "%s has no inputs", data)
	for _, plan := range []string{"fused", "staged"} {
		var r Report
		require.NoError(t, published(&r, runPeer(t, *in.params, plan), filepath.Join(data, "expected")))
		require.Len(t, r.Checks, 2)
		require.False(t, r.Missed(), "%s: %v", plan, r.Checks)
	}
}

func TestPeerPlansAgreeOnParquet(t *testing.T) {
	t.Parallel()
	if !hasEngine(t.Context(), "python3") {
		t.Skip("python3 has no duckdb " + peerDuckDB)
	}
	sum, err := generate.Portfolio(t.Context(), generate.Options{Accounts: 3, Dir: filepath.Join(t.TempDir(), "in")})
	require.NoError(t, err)
	var p generate.Params
	require.NoError(t, readJSON(sum.Params, &p))
	how, same, err := alike(runPeer(t, p, "fused"), runPeer(t, p, "staged"))
	require.NoError(t, err)
	require.True(t, same, how)
	require.Equal(t, alikeBytes, how)
}

// runPeer runs the peer and returns the directory of its results.
func runPeer(t *testing.T, p generate.Params, plan string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	params, out, timings := filepath.Join(dir, "params.json"), filepath.Join(dir, "out"), filepath.Join(dir, "timings.json")
	require.NoError(t, os.WriteFile(params, text, 0o600))
	_, err = output(t.Context(), "", "python3", filepath.Join(repoRoot, "bench/peers/portfolio_duckdb.py"),
		"--params", params, "--out", out, "--python", "2", "--plan", plan, "--json", timings)
	require.NoError(t, err)
	result, err := readPeerResult(timings)
	require.NoError(t, err)
	require.Equal(t, plan, result.Plan)
	require.Equal(t, peerDuckDB, result.DuckDB)
	require.EqualValues(t, 90*result.Accounts, result.Rows, "ten periods and nine sectors an account")
	return out
}
