package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/bench/generate"
)

func TestPortfolio(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	var out, talk bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"portfolio", "--accounts", "1", "--out", dir, "--json"}, &out, &talk),
		talk.String())
	var sum generate.Summary
	require.NoError(t, json.Unmarshal(out.Bytes(), &sum))
	require.Equal(t, 1, sum.Accounts)
	require.FileExists(t, filepath.Join(dir, "params.json"))

	out.Reset()
	require.Equal(t, 0, run(t.Context(), []string{"portfolio", "--accounts", "1", "--out", dir, "--format", "csv"},
		&out, &talk), talk.String())
	require.Contains(t, out.String(), "run it: thalweg run examples/portfolio/script_csv.yaml --params "+
		filepath.Join(dir, "params.json"))
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for said, args := range map[string][]string{
		"missing flags: --out=DIR":   {"portfolio"},
		"a directory":                {"portfolio", "--out", ""},
		"must be 1 to 100000, not 0": {"portfolio", "--out", filepath.Join(t.TempDir(), "x"), "--accounts", "0"},
	} {
		var out, talk bytes.Buffer
		require.Equal(t, exitUsers, run(t.Context(), args, &out, &talk))
		require.Contains(t, talk.String(), said)
	}
}
