package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An expression that a comma cuts off is one error with the whole of it; what is no such
// expression is read as before.
func TestFlowComma(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{v: iif(r.q > 1, r.a, r.b)}":          `"iif(r.q > 1, r.a, r.b)"`,
		"{v: iif(r.q > 1, 1, 2.5), w: 3}":      `"iif(r.q > 1, 1, 2.5)"`,
		"{v: f(g(a, b), c), w: r.x}":           `"f(g(a, b), c)"`,
		"{v: f(r.s == \"x\", 1)}":              `'f(r.s == "x", 1)'`,
		"[a, 'unique(a, b)', unique(a, b), c]": `"unique(a, b)"`,
		"{t: decimal(18,4)}":                   `"decimal(18,4)"`,
		"{a: \"f(x\", b: f(\n  x,\n  y)}":      "put the expression in quotes",
		"{x: iif(a, \"b\", 1)}":                `'iif(a, "b", 1)'`,
		"[f(a, \"b, (\", 1)]":                  `'f(a, "b, (", 1)'`,
		"{x: iif(a, 1, \"b\")}":                "put the expression in quotes",
	} {
		_, fail := ReadYAML(NewSource("a.yaml", text))
		require.NotNil(t, fail, text)
		require.Contains(t, fail.hint, want, text)
		require.True(t, fail.off < fail.end && fail.end <= len(text), text)
	}
	for _, text := range []string{
		"{v: f(a), w: (b), c: }", "{v: 'f(a', b): }", "{v: (a, b: c)}", "[(a, (b, (c]", "{a: f(x, b: }", "[a), (b]",
		"[f(a, [b)]]", "v: f(a, b)",
		"[" + strings.Repeat("(, ", 100_000) + "]",
	} {
		_, fail := ReadYAML(NewSource("a.yaml", text))
		require.Nil(t, fail, "%.40s", text)
	}
}
