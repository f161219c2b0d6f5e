package script

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A literal brace stays one, also where a parameter has the name.
func TestLiteralBraces(t *testing.T) {
	t.Parallel()
	s, diags := memory{"script.yaml": `nodes:
  read:
    type: file_table
    r: {urls: ["in.csv"], columns: {id: int}}
    w: {name: t, fields: [r.id, {text: '"{region}: {region|literal} {other | literal}"'}]}
  write:
    type: table_file
    r: t
    w: {url_template: out.csv}
`, "params.yaml": "region: eu\n"}.load(t)
	require.Empty(t, diags, diags.Render())
	require.Equal(t, `"eu: {region} {other}"`, s.Nodes[0].Table.Fields[1].Expr.Source())
}
