package script

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
)

const oneNode = `nodes:
  read:
    type: file_table
    r: {urls: [in.csv], columns: {id: {col_type: int}}}
    w: {name: src, fields: {id: {expression: r.id, type: int}}}
`

// graph writes a script from lines "node policy [source [lookup]]".
func graph(lines ...string) string {
	var b strings.Builder
	b.WriteString("nodes:\n")
	indexed := map[string]bool{}
	for _, line := range lines {
		if f := strings.Fields(line); len(f) == 4 {
			indexed[f[3]] = true
		}
	}
	for _, line := range lines {
		f := strings.Fields(line)
		index := ""
		if indexed[f[0]] {
			index = fmt.Sprintf(", indexes: {idx_%s: unique(id)}", f[0])
		}
		fmt.Fprintf(&b, "  %s:\n    start_policy: %s\n    w: {name: t_%s, fields: {id: {expression: r.id, "+
			"type: int}}%s}\n", f[0], f[1], f[0], index)
		switch len(f) {
		case 2:
			b.WriteString("    type: file_table\n    r: {urls: [x], columns: {id: {col_type: int}}}\n")
		case 3:
			fmt.Fprintf(&b, "    type: table_table\n    r: {table: t_%s}\n", f[2])
		case 4:
			fmt.Fprintf(&b, "    type: table_lookup_table\n    r: {table: t_%s}\n    l: {index_name: idx_%s, "+
				"join_on: r.id, join_type: left}\n", f[2], f[3])
		}
	}
	return b.String()
}

func nodeNames(nodes []*Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return strings.Join(names, " ")
}

func TestAffected(t *testing.T) {
	t.Parallel()
	// The order of the script is not that of the data, on purpose.
	diamond := []string{"join auto left right", "left auto a", "right manual b", "a auto", "b auto", "end auto join",
		"other auto a"}
	tests := []struct {
		name, start, want string
		lines             []string
	}{
		{"default start: roots", "", "a b left other", diamond},
		{"empty names are passed over", "a,,", "a left other join end",
			append([]string{"x manual"}, strings.Split(strings.Join(diamond, "\n"), "\n")...)},
		{"a manual node that is named, and what follows", "right", "right join end", diamond},
		{"named beside the root", "a,b,right", "a b left right other join end", diamond},
		{"behind a manual node on one path is behind it on all", "a,b", "a b left other", diamond},
		{"one side of the join is enough", "left", "left join end", diamond},
		{"manual root is not started by default", "", "b", []string{"a manual", "b auto", "c auto a"}},
		{"manual child of a manual start", "a", "a", []string{"a manual", "b manual a", "c auto b"}},
		{"children of a named manual node that is below another start", "a,b", "a b c",
			[]string{"a auto", "b manual a", "c auto b"}},
		{"start below start", "c,a", "a b c d", []string{"a auto", "b auto a", "c auto b", "d auto c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, diags := memory{"script.yaml": graph(tt.lines...)}.load(t)
			require.Empty(t, diags)
			got, err := s.Affected(strings.Split(tt.start, ","))
			require.NoError(t, err)
			require.Equal(t, tt.want, nodeNames(got))
		})
	}
}

func TestAffectedErrors(t *testing.T) {
	t.Parallel()
	s, diags := memory{"script.yaml": graph("first manual", "second auto first")}.load(t)
	require.Empty(t, diags)
	_, err := s.Affected([]string{"frist"})
	require.Equal(t, fault.Script, fault.Of(err).Kind)
	require.Equal(t, `did you mean "first"?`, fault.Of(err).Hint)
	_, err = s.Affected(nil)
	require.ErrorContains(t, err, "no node starts by itself")
	require.Equal(t, "first second", nodeNames(s.Topological()))
}

func TestSourcesOfNode(t *testing.T) {
	t.Parallel()
	s, diags := memory{"script.yaml": graph("a auto", "b auto", "c auto a b")}.load(t)
	require.Empty(t, diags)
	require.Equal(t, "a b", nodeNames(s.Node("c").Sources(s)))
	require.Same(t, s.Node("b"), s.byIndex["idx_b"].Node)
	require.Same(t, s.Node("b"), s.byTable["t_b"])
	require.Nil(t, s.Node("x"))
}
