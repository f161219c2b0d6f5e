package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProposedCommandsNameTheirPlace: a command that is proposed is typed where the one that proposes it was.
func TestProposedCommandsNameTheirPlace(t *testing.T) {
	t.Parallel()
	p := commandPlace{words: " --cluster c.yaml", takes: map[string]bool{"resume": true, "runs": true, "sql": true, "worker": true}}
	for text, want := range map[string]string{
		"thalweg resume 3":                                   "thalweg resume 3 --cluster c.yaml",
		"`thalweg resume 3` lets it go on":                   "`thalweg resume 3 --cluster c.yaml` lets it go on",
		"see `thalweg resume 3`, or `thalweg runs`":          "see `thalweg resume 3 --cluster c.yaml`, or `thalweg runs --cluster c.yaml`",
		`thalweg sql "SELECT * FROM run1.t" --workspace w`:   `thalweg sql "SELECT * FROM run1.t" --workspace w --cluster c.yaml`,
		"the runs: thalweg runs lists them":                  "the runs: thalweg runs --cluster c.yaml lists them",
		"`thalweg fmt a.yaml`":                               "`thalweg fmt a.yaml`",
		"start one: `thalweg worker --cluster c.yaml`":       "start one: `thalweg worker --cluster c.yaml`",
		"start one: thalweg worker --cluster c.yaml":         "start one: thalweg worker --cluster c.yaml",
		"nothing of that: thalweg is a word, thalwegs, runs": "nothing of that: thalweg is a word, thalwegs, runs",
	} {
		require.Equal(t, want, p.here(text))
		require.Equal(t, text, commandPlace{}.here(text))
	}
	require.Equal(t, `'a b'\''c.yaml'`, shellWord("a b'c.yaml"))
}
