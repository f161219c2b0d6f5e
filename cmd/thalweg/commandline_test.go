package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProposedCommandsNameTheirPlace: a command that is proposed is typed where the one that proposes it was.
func TestProposedCommandsNameTheirPlace(t *testing.T) {
	t.Parallel()
	all := map[string]bool{"cluster": true, "state": true, "env": true, "workspace": true}
	scripted := map[string]bool{"cluster": true, "state": true, "env": true, "workspace": true, "params": true,
		"param": true}
	takes := map[string]map[string]bool{"resume": all, "runs": all, "sql": all, "worker": all,
		"cluster init": {"cluster": true}, "validate": scripted, "run": scripted}
	p := commandPlace{takes: func() map[string]map[string]bool { return takes },
		script: "a.yaml", typed: []typedFlag{{"param", " --param 'x=1 2'"}, {"param", " --param y=3"},
			{"cluster", " --cluster c.yaml"}, {"env", " --env prod"}}}
	for text, want := range map[string]string{
		"`thalweg resume 3` lets it go on": "`thalweg resume 3 --cluster c.yaml --env prod` lets it " +
			"go on",
		"see `thalweg resume 3`, or `thalweg runs`": "see `thalweg resume 3 --cluster c.yaml --env prod`, or " +
			"`thalweg runs --cluster c.yaml --env prod`",
		"thalweg sql 'FROM run1.t' shows it, thalweg runs": "thalweg sql --cluster c.yaml --env prod 'FROM run1.t' " +
			"shows it, thalweg runs --cluster c.yaml --env prod",
		"the runs: thalweg runs lists them": "the runs: thalweg runs --cluster c.yaml --env prod " +
			"lists them",
		"`thalweg fmt a.yaml`":                         "`thalweg fmt a.yaml`",
		"start one: `thalweg worker --cluster c.yaml`": "start one: `thalweg worker --cluster c.yaml --env prod`",
		"`thalweg cluster init` makes them":            "`thalweg cluster init --cluster c.yaml` makes them",
		"`thalweg runs --state d --workspace w`":       "`thalweg runs --state d --workspace w --env prod`",
		"`thalweg validate a.yaml` says more": "`thalweg validate a.yaml --param 'x=1 2' --param y=3 " +
			"--cluster c.yaml --env prod` says more",
		"`thalweg run b.yaml`, `thalweg run a.yaml --param z=1`": "`thalweg run b.yaml --cluster c.yaml --env prod`, " +
			"`thalweg run a.yaml --param z=1 --cluster c.yaml --env prod`",
		"nothing of that: thalweg is a word, thalwegs, runs": "nothing of that: thalweg is a word, thalwegs, runs",
	} {
		require.Equal(t, want, p.here(text))
		require.Equal(t, text, commandPlace{}.here(text))
	}
	require.Equal(t, `thalweg sql "SELECT * FROM run1.t" --workspace w --cluster c.yaml --env prod`,
		p.line(`thalweg sql "SELECT * FROM run1.t" --workspace w`))
	require.Equal(t, `'a b'\''c.yaml'`, shellWord("a b'c.yaml"))
}

// TestEachCommandHasAGrammarOfItsOwn: it reads what that of all commands reads.
func TestEachCommandHasAGrammarOfItsOwn(t *testing.T) {
	t.Parallel()
	var all cli
	parser, err := newParser(t.Context(), &app{}, &all, func(int) {})
	require.NoError(t, err)
	for _, child := range parser.Model.Children {
		if child.Name == "__complete" {
			continue
		}
		grammar := grammarOf([]string{child.Name})
		require.True(t, grammar.IsValid(), child.Name)
		one, err := newParser(t.Context(), &app{}, grammar.Addr().Interface(), func(int) {})
		require.NoError(t, err)
		require.Len(t, one.Model.Children, 1)
		require.Equal(t, flagsOfAll(parser.Model)[child.Name], flagsOfAll(one.Model)[child.Name], child.Name)
	}
	for _, args := range [][]string{nil, {"nothing"}, {"run", "--help"}, {"sql", "-h"}, {"__complete"},
		{"--env", "prod", "run"}} {
		require.False(t, grammarOf(args).IsValid(), args)
	}
}
