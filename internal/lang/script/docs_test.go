package script

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of the reference page loads, and without a warning.
func TestDocsExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/scripts.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 3)
	s, diags := memory{"script.yaml": string(blocks[0][1]), "params.yaml": string(blocks[1][1])}.load(t)
	require.Empty(t, diags, diags.Render())
	require.Equal(t, "read_orders read_items value_of_orders write_values", nodeNames(s.Topological()))

	example, err := os.ReadFile("../../../examples/orders/short.yaml")
	require.NoError(t, err)
	require.Contains(t, string(example), string(blocks[2][1]), "what the page shows is what the tests run")
}

// So does that of the page about checks.
func TestChecksExample(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/checks.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.Len(t, blocks, 1)
	s, diags := memory{"script.yaml": string(blocks[0][1])}.load(t)
	require.Empty(t, diags, diags.Render())
	seen := map[CheckKind]bool{}
	for _, n := range s.Nodes {
		for _, c := range n.Checks {
			seen[c.Kind] = true
		}
	}
	for _, kind := range checkKinds() {
		require.True(t, seen[CheckKind(kind)], "the page shows %s", kind)
		require.Contains(t, string(page), "| `"+kind+":", "and explains it")
	}
}
