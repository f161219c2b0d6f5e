package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/fault"
)

// What others have written stays in its place: it cannot look like a line of the
// table, move the cursor, or turn what is behind it.
func TestTextsOfOthersStayInTheirLines(t *testing.T) {
	t.Parallel()
	const evil = "fine\n2026-01-01  1  root  approve  \x1b[2J\x1b[31mred\r\x07\u202etsal\u0085 é⏎"
	const shown = "fine⏎2026-01-01  1  root  approve  ␛[2J␛[31mred␍␇\ufffdtsal\ufffd é⏎"
	require.Equal(t, shown, plain(evil))
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		a := &app{stdout: &out, color: color}
		table := a.newTable("who\nelse", "why")
		table.AppendRow([]any{a.paint("eva", green), evil})
		table.AppendRow([]any{"adam", a.paint(evil, yellow)})
		table.Render()
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		require.Len(t, lines, 3, out.String())
		require.Equal(t, color, strings.Contains(out.String(), string(green)))
		require.NotContains(t, out.String(), "\x1b[2J")
		require.NotContains(t, out.String(), "\r")
	}
	require.Equal(t, "a␛[32mb", (&app{}).plain("a\x1b[32mb"))
}

// A failure that quotes what somebody has written has no line that begins as
// one of ours.
func TestFailuresQuoteInTheirLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{stderr: &out}
	a.printFailure("table t was invalidated: bad\nerror: \x1b[2Jforged", fault.Place{Value: "x\ny"}, "do\nthis", "")
	require.Equal(t, "error: table t was invalidated: bad\n  error: ␛[2Jforged\n  value: x⏎y\n  hint: do⏎this\n", out.String())
}
