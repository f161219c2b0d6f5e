package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/bench/generate"
)

const repoRoot = "../../.."

// TestPeerGivesThePublishedResults runs the real peer on the real data: a
// yardstick that is wrong is worth nothing.
func TestPeerGivesThePublishedResults(t *testing.T) {
	t.Parallel()
	if _, err := output(t.Context(), "", "python3", "-c", "import duckdb"); err != nil {
		t.Skip("python3 has no duckdb")
	}
	dir := os.Getenv("THALWEG_REAL_DATA")
	if dir == "" {
		t.Skip("THALWEG_REAL_DATA is not set: the peer is not compared with published results")
	}
	data := filepath.Join(dir, "portfolio")
	s := &session{config: Config{RealDataDir: dir}}
	in, why := s.ark()
	require.Empty(t, why)
	baselines, err := filepath.Glob(filepath.Join(data, "expected", "*_baseline.csv"))
	require.NoError(t, err)
	require.Len(t, baselines, 2)
	for _, plan := range []string{"fused", "staged"} {
		out := runPeer(t, in.params, plan)
		for _, path := range baselines {
			difference, err := firstDifference(filepath.Join(out, strings.Replace(filepath.Base(path),
				"_baseline", "", 1)),
				path)
			require.NoError(t, err)
			require.Empty(t, difference, plan)
		}
	}
}

func TestPeerPlansAgreeOnParquet(t *testing.T) {
	t.Parallel()
	if _, err := output(t.Context(), "", "python3", "-c", "import duckdb"); err != nil {
		t.Skip("python3 has no duckdb")
	}
	sum, err := generate.Portfolio(t.Context(), generate.Options{Accounts: 3, Dir: filepath.Join(t.TempDir(), "in")})
	require.NoError(t, err)
	var p map[string]any
	require.NoError(t, readJSON(sum.Params, &p))
	how, same, err := alike(runPeer(t, p, "fused"), runPeer(t, p, "staged"))
	require.NoError(t, err)
	require.True(t, same, how)
	require.Equal(t, alikeBytes, how)
}

// runPeer runs the peer and returns the directory of its results.
func runPeer(t *testing.T, p map[string]any, plan string) string {
	t.Helper()
	dir := t.TempDir()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	params, out, timings := filepath.Join(dir, "params.json"), filepath.Join(dir, "out"),
		filepath.Join(dir, "timings.json")
	require.NoError(t, os.WriteFile(params, text, 0o600))
	_, err = output(t.Context(), "", "python3", filepath.Join(repoRoot, "bench/peers/duckdb/portfolio_duckdb.py"),
		"--params", params, "--out", out, "--python", "2", "--plan", plan, "--json", timings)
	require.NoError(t, err)
	var result peerResult
	require.NoError(t, readJSON(timings, &result))
	require.Equal(t, plan, result.Plan)
	require.EqualValues(t, 90*result.Accounts, result.Rows, "ten periods and nine sectors an account")
	return out
}
