package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenderControlsAndTabs(t *testing.T) {
	t.Parallel()
	d := Diagnostic{Severity: Error, Pos: Pos{"f", 1, 3}, End: Pos{"f", 2, 1}, Message: "m", Source: "\t\x1b[31mred"}
	require.Equal(t, "f:1:3: error: m\n    \t\ufffd[31mred\n    \t ^^^^^^^\n", d.Render())
	d.Pos.Col, d.End = 900, Pos{}
	d.Source = strings.Repeat("é", 1000)
	lines := strings.Split(d.Render(), "\n")
	require.LessOrEqual(t, len([]rune(lines[1])), maxRenderedLineChars+6)
	require.Equal(t, len([]rune(lines[2])), 4+1+maxRenderedLineChars/3+1)
}
