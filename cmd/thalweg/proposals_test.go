package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// proposalSession is a directory in which commands are run whose proposals are looked at.
type proposalSession struct {
	t     *testing.T
	flags map[string]map[string]bool
	seen  map[string]bool // commands that were proposed
}

// newProposalSession makes a project whose runs fail in several ways.
func newProposalSession(t *testing.T) *proposalSession {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"good.yaml": "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {a: int}}, w: t}\n",
		"bad.yaml":  "nodes:\n  read: {type: file_table, r: {urls: [bad.csv], columns: {a: int}}, w: u}\n",
		"gone.yaml": "nodes:\n  read: {type: file_table, r: {urls: [gone.csv], columns: {a: int}}, w: v}\n",
		"gate.yaml": "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {a: int}}, w: {name: g, " +
			"approval: {message: look}}}\n",
		"check.yaml": "nodes:\n  read: {type: file_table, r: {urls: [in.csv], types: {a: int}}, w: c, checks: " +
			"[{range: {field: a, max: 0}}]}\n",
		"in.csv": "a\n1\n", "bad.csv": "a\nx\n",
		"thalweg.yaml": "environments:\n  prod: {state: prod.state}\n  late: {flags: {priority: low}}\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	k, err := newParser(t.Context(), &console{stdout: io.Discard, stderr: io.Discard}, &cli{}, func(int) {})
	require.NoError(t, err)
	return &proposalSession{t: t, flags: flagsOfAll(k.Model), seen: map[string]bool{}}
}

// run runs a command, and wants that what it proposes has all words.
func (s *proposalSession) run(command string, words ...string) {
	s.t.Helper()
	var out bytes.Buffer
	args := strings.Fields(command)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "~", " ")
	}
	run(s.t.Context(), args, &console{stdout: &out, stderr: &out})
	for line := range strings.Lines(out.String()) {
		s.look(command, line, words)
	}
}

// look wants all words in the commands of a line.
func (s *proposalSession) look(command, line string, words []string) {
	s.t.Helper()
	if strings.HasPrefix(line, "{") || strings.HasPrefix(line, "[") {
		words = slices.Clone(words)
		for i := range words {
			words[i] = withinJSON(words[i])
		}
		require.True(s.t, json.Valid([]byte(line)), "%s: %s", command, line)
	}
	for _, m := range proposed.FindAllStringSubmatchIndex(line, -1) {
		name, text := "", line[m[0]:m[1]]
		if m[2] >= 0 {
			name = line[m[2]:m[3]]
		} else {
			name, text = line[m[4]:m[5]], line[m[0]:]
		}
		if s.flags[name] == nil {
			continue
		}
		s.seen[name] = true
		for _, word := range words {
			flag, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), " ")
			if s.flags[name][flag] && !strings.HasPrefix(text, "thalweg cluster ") {
				require.Contains(s.t, text, word, "%s proposes %q in %q", command, text, line)
			}
		}
	}
}

// TestProposalsActWhereTheyWereMade: what any command proposes names the place that was named to it.
func TestProposalsActWhereTheyWereMade(t *testing.T) {
	s := newProposalSession(t)
	commands := []string{
		"run good.yaml", "run bad.yaml", "run bad.yaml --json", "run gone.yaml --tries 1", "run gate.yaml",
		"run gate.yaml --json", "run check.yaml", "run check.yaml --json",
		"resume 1", "resume 1 --json", "resume 2 --json", "resume 99", "retry 99 --json", "retry 1", "retry 2",
		"show 99 --json", "show 2", "show 2 --json", "why 1", "why 2", "why 2 --json",
		"runs", "history", "approvals", "approvals --json", "approve 4 nothing", "approve last v", "nodes --run 2",
		"batches read --run 2", "checks --run 6", "events", "audit",
		"sql SELECT~*~FROM~nothing", "sql SELECT~*~FROM~u", "sql SELECT~*~FROM~run2.u --json", "diff 1 2 t",
		"trace nothing", "trace t", "trace u --json", "lineage t.a", "drop 4 --reason old", "stop 1 --json",
		"pause 1", "invalidate 1 --node nothing --dry-run", "run good.yaml --node nothing", "run good.yaml --resume",
		"run good.yaml --resume --json", "run good.yaml --from 99",
		"matrix", "matrix none", "schedules", "explain bad.yaml", "validate bad.yaml --json", "check good.yaml",
		"check bad.yaml --json", "gc --dry-run", "doctor", "doctor --json",
		"drop 1 --reason old", "resume 1", "show 1", "why 1", "retry 1",
	}
	for _, at := range [][]string{{"--state my~\"state"}, {"--state here", "--workspace other"}, {"--env prod"}} {
		for _, command := range commands {
			verb, _, _ := strings.Cut(command, " ")
			var words []string
			for _, flag := range at {
				name, value, _ := strings.Cut(flag, " ")
				if s.flags[verb][strings.TrimPrefix(name, "--")] {
					command += " " + flag
					words = append(words, name+" "+shellWord(strings.ReplaceAll(value, "~", " ")))
				}
			}
			s.run(command, words...)
		}
	}
	for _, name := range []string{"approve", "reject", "resume", "retry", "runs", "sql", "checks", "nodes"} {
		require.True(t, s.seen[name], "nothing has proposed %s", name)
	}
}

// TestHooksProposeWhatWorksWhereTheyAreRead: who reads a message is in no directory, and has no variables, of the run.
func TestHooksProposeWhatWorksWhereTheyAreRead(t *testing.T) {
	s := newProposalSession(t)
	got := make(chan map[string]any, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m map[string]any
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			got <- m
		}
	}))
	t.Cleanup(server.Close)
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("hooks.yaml", []byte("notify: [{on: [failed, waiting], url: \""+
		server.URL+"\"}]\n"),
		0o600))
	t.Setenv("THALWEG_WORKSPACE", "other")
	for _, c := range []struct{ command, variable, value, want string }{
		{"run bad.yaml --hooks hooks.yaml", "THALWEG_STATE", "by variable", "--workspace other --state " +
			shellWord(filepath.Join(dir, "by variable"))},
		{"run bad.yaml --hooks hooks.yaml", "THALWEG_ENV", "prod", "--workspace other --env prod"},
		{"run gate.yaml --hooks hooks.yaml --env late", "X", "", "--workspace other --state " +
			filepath.Join(dir, ".thalweg") + " --env late"},
		{"run bad.yaml --hooks hooks.yaml --state .", "X", "", "--workspace other --state " + dir},
	} {
		t.Run(c.command+" "+c.value, func(t *testing.T) {
			t.Setenv(c.variable, c.value)
			s.run(c.command)
			m := <-got
			commands := m["commands"].(map[string]any)
			require.NotEmpty(t, commands)
			for _, line := range commands {
				require.True(t, strings.HasSuffix(line.(string), c.want), "%s: %s", c.want, line)
			}
			if m["event"] == "failed" {
				require.Contains(t, commands, "retry", "a run whose data was wrong goes on in no other way")
				require.NotContains(t, commands, "resume")
			}
		})
	}
}
