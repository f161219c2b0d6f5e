package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/bench/generate"
)

// Each case measures what it says, at a small size.
func TestCases(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds two programs")
	}
	bin, root := t.TempDir(), filepath.Join("..", "..", "..")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./bench/cmd/thalweg-serve", "./cmd/thalweg")
	build.Dir = root
	said, err := build.CombinedOutput()
	require.NoError(t, err, string(said))
	sum, err := generate.Portfolio(t.Context(), generate.Options{Accounts: 2, Dir: filepath.Join(t.TempDir(), "in"), Seed: 1})
	require.NoError(t, err)
	var params map[string]any
	text, err := os.ReadFile(sum.Params)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &params))
	params["dir_out"] = t.TempDir()
	text, err = json.Marshal(params)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(sum.Params, text, 0o600))
	script, err := filepath.Abs(filepath.Join(root, "examples", "portfolio", "script.yaml"))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		args   []string
		steps  []string
		counts []string
	}{
		"news": {[]string{"--size", "400000", "--streams", "5"}, []string{"line, one core", "line, all cores"},
			[]string{"server MB"}},
		"rows": {[]string{"--size", "1000"}, []string{"row 1", "row 9,000,000"}, nil},
		"runs": {[]string{"--size", "400"}, []string{"first", "middle", "status", "matrix"}, []string{"server MB"}},
		"node": {[]string{"--size", "200"}, []string{"node", "batches", "timeline"}, []string{"server MB"}},
		"cost": {[]string{"--script", script, "--params", sum.Params, "--rounds", "1", "--streams", "5"},
			[]string{"alone", "read", "a page meanwhile"}, []string{"read over alone", "idle MB", "most MB",
				"lines that the streams got a run", "pages that the reader got a run"}},
		"children": {[]string{"--size", "1000", "--spin", "1s"}, []string{"run alone", "run while it crashes",
			"an answer while it eats memory"}, []string{"server MB"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "figures.json")
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "thalweg-serve"), append([]string{"--case", name,
				"--thalweg", filepath.Join(bin, "thalweg"), "--dir", dir, "--times", "3", "--figures", file}, c.args...)...)
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, string(said))
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var f figures
			require.NoError(t, json.Unmarshal(text, &f))
			for _, step := range c.steps {
				require.Positive(t, f.Steps[step], "%s: %s", step, text)
			}
			for _, count := range c.counts {
				require.Positive(t, f.Counts[count], "%s: %s", count, text)
			}
		})
	}
	// Whoever looks at pages is told where they are, and is gone at once here.
	for name, places := range map[string]int{"news": 2, "rows": 1, "runs": 1} {
		t.Run("pages of "+name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "thalweg-serve"), "--pages", "--case", name,
				"--thalweg", filepath.Join(bin, "thalweg"), "--dir", t.TempDir(), "--times", "3", "--streams", "5",
				"--size", "400000")
			if name == "runs" {
				cmd.Args = append(cmd.Args, "--size", "400")
			}
			said, err := cmd.Output()
			require.NoError(t, err, string(said))
			lines := json.NewDecoder(bytes.NewReader(said))
			for range places {
				var p place
				require.NoError(t, lines.Decode(&p))
				require.Contains(t, p.Address, "http://127.0.0.1:")
				require.NotEmpty(t, p.Cookie)
			}
			require.False(t, lines.More())
		})
	}
}

func TestHundredth(t *testing.T) {
	t.Parallel()
	values := make([]float64, 50)
	for i := range values {
		values[i] = float64(50 - i)
	}
	require.InDelta(t, 48, hundredth(values, 95), 0)
	require.InDelta(t, 1, hundredth(values, 0), 0)
	require.InDelta(t, 50, hundredth(values, 100), 0)
	require.InDelta(t, 25.5, median(values), 0)
}
