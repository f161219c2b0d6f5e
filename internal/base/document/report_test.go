package document

import (
	"encoding/json"
	"errors"
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

// What was written as JSON is read again, the cause as its text.
func TestDiagnosticsAreReadAgain(t *testing.T) {
	t.Parallel()
	d := Diagnostic{Severity: Error, Pos: Pos{File: "a.yaml", Line: 2, Col: 3}, End: Pos{File: "a.yaml", Line: 2, Col: 5},
		Path: "nodes.a", Message: "no", Hint: "yes", Params: []string{"p"}, Source: "a: b",
		Cause: errors.New("it is not there")}
	text, err := json.Marshal(Diagnostics{d})
	require.NoError(t, err)
	var again Diagnostics
	require.NoError(t, json.Unmarshal(text, &again))
	require.Equal(t, Diagnostics{d}, again)
}
