package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/action"
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
		action.Do("resume", "run", 3).String() +
			" lets it go on": "`thalweg resume 3 --cluster c.yaml --env prod` lets it go on",
		action.Do("resume", "run", 3).String(): "thalweg resume 3 --cluster c.yaml --env prod",
		"see " + action.Do("resume", "run", 3).String() + ", or " + action.Do("runs").
			String(): "see `thalweg resume 3 " +
			"--cluster c.yaml --env prod`, or `thalweg runs --cluster c.yaml --env prod`",
		"with `thalweg runs`, thalweg sql 'FROM t'": "with `thalweg runs --cluster c.yaml --env prod`, " +
			"thalweg sql --cluster c.yaml --env prod 'FROM t'",
		"see " + action.Do("fmt", "file", "a b.yaml").String(): "see `thalweg fmt 'a b.yaml'`",
		action.Do("worker", "cluster", "c.yaml").String():      "thalweg worker --cluster c.yaml --env prod",
		action.Do("cluster-init").String() + " makes them": "`thalweg cluster init --cluster " +
			"c.yaml` makes them",
		action.Do("runs", "state", "d", "workspace", "w").String(): "thalweg runs --state d --workspace w --env prod",
		action.Do("validate", "script", "a.yaml").String() + " says more": "`thalweg validate a.yaml --param 'x=1 2' " +
			"--param y=3 --cluster c.yaml --env prod` says more",
		action.Do("run", "script", "b.yaml").String(): "thalweg run b.yaml --cluster c.yaml --env prod",
		action.Do("run", "script", "a.yaml", "param", "z=1").
			String(): "thalweg run a.yaml --param z=1 --cluster c.yaml " + "--env prod",
		"leave " + action.Setting("tag", "") + " out, or say " +
			action.Setting("run", "N"): "leave --tag out, or say --run N",
		"nothing of that: thalweg is a word, thalwegs, runs": "nothing of that: thalweg is a word, thalwegs, runs",
	} {
		require.Equal(t, want, p.text(text))
	}
	require.Equal(t, "thalweg show 3 --node a", commandPlace{}.text(action.Do("show", "run", 3, "node", "a").String()))
	p.within = withinJSON
	require.Equal(t, `{"do":"thalweg sql 'FROM \"a\"' --cluster c.yaml --env prod"}`,
		p.text(`{"do":"`+action.Do("sql", "query", `FROM "a"`).String()+`"}`))
	require.Equal(t, `'a b'\''c.yaml'`, shellWord("a b'c.yaml"))
}

// TestEachCommandHasAGrammarOfItsOwn: it reads what that of all commands reads.
func TestEachCommandHasAGrammarOfItsOwn(t *testing.T) {
	t.Parallel()
	var all cli
	parser, err := newParser(t.Context(), &console{}, &all, func(int) {})
	require.NoError(t, err)
	for _, child := range parser.Model.Children {
		if child.Name == "__complete" {
			continue
		}
		grammar := grammarOf([]string{child.Name})
		require.True(t, grammar.IsValid(), child.Name)
		one, err := newParser(t.Context(), &console{}, grammar.Addr().Interface(), func(int) {})
		require.NoError(t, err)
		require.Len(t, one.Model.Children, 1)
		require.Equal(t, flagsOfAll(parser.Model)[child.Name], flagsOfAll(one.Model)[child.Name], child.Name)
	}
	for _, args := range [][]string{nil, {"nothing"}, {"run", "--help"}, {"sql", "-h"}, {"__complete"},
		{"--env", "prod", "run"}} {
		require.False(t, grammarOf(args).IsValid(), args)
	}
}
