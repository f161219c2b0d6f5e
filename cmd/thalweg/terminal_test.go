package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
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
		a := &console{stdout: &out, color: color}
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
	require.Equal(t, "a␛[32mb", (&console{}).plain("a\x1b[32mb"))
}

// A failure that quotes what somebody has written has no line that begins as
// one of ours.
func TestFailuresQuoteInTheirLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &console{stderr: &out}
	a.printFailure("table t was invalidated: bad\nerror: \x1b[2Jforged", fault.Place{Value: "x\ny"}, "do\nthis", "")
	require.Equal(t, "error: table t was invalidated: bad\n  error: ␛[2Jforged\n  value: x⏎y\n  hint: do⏎this\n",
		out.String())
}

// A table fits its terminal: columns that matter less are left out and named, and what
// failed is never cut.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	const failure = "in/orders_1.csv:2:35: node read: column freight: \"4.90\" is not an int, and more of it that " +
		"takes several lines"
	for _, width := range []int{0, 40, 60, 80, 200} {
		var out, said bytes.Buffer
		a := &console{stdout: &out, stderr: &said, width: width}
		table := a.newTable("run", "status", "started", "bytes", "script", "what happened").leaves("bytes", "script")
		rightAligned(table, 1, 4)
		table.AppendRow([]any{1, "complete", "2026-11-24 01:58:36", "12 B", "somewhere/orders.yaml", ""})
		table.AppendRow([]any{22, "failed", "2026-11-24 01:58:37", "3 B", "somewhere/orders.yaml", failure})
		table.Render()
		text := out.String()
		if width > 0 {
			for line := range strings.Lines(text) {
				require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), width, text)
			}
		}
		if width != 40 { // there the moment goes on below itself, too
			require.Equal(t, strings.Join(strings.Fields(failure), ""), joinedTail(text, "22  failed"), "width %d: %s",
				width, text)
		}
		whole := width == 0 || width == 200
		require.Equal(t, whole, strings.Contains(text, "12 B"), text)
		require.Equal(t, whole, said.Len() == 0, said.String())
		if !whole {
			require.Contains(t, said.String(), "not shown for lack of room: bytes")
		}
	}
}

// Where leaving out does not do, other columns go on below themselves: no line is wider than
// the terminal, and no character is lost.
func TestWideCellsGoOnBelowThemselves(t *testing.T) {
	t.Parallel()
	cells := []string{"a_node_with_a_name_as_long_as_some_people_like_them", "日本語の状態でとても長いもの", "2026-11-24 01:58:37",
		"in/orders_1.csv:2:35: column 価格: \"日本語テキスト\" is not an int"}
	for _, width := range []int{40, 60, 80, 100} {
		var out bytes.Buffer
		a := &console{stdout: &out, width: width}
		table := a.newTable("node", "status", "started", "what happened").leaves("nothing")
		table.AppendRow([]any{cells[0], cells[1], cells[2], cells[3]})
		table.Render()
		printed := map[rune]int{}
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, text.StringWidthWithoutEscSequences(strings.TrimRight(line, "\n")),
				width, out.String())
			for _, c := range line {
				printed[c]++
			}
		}
		for _, c := range strings.Join(cells, "") {
			printed[c]--
			require.True(t, c == ' ' || printed[c] >= 0, "%c is missing: %s", c, out.String())
		}
	}
}

// joinedTail gives the last column of a row and of what goes on below it, without blanks.
func joinedTail(text, row string) string {
	_, tail, _ := strings.Cut(text, row)
	return strings.Join(strings.Fields(tail[strings.Index(tail, "in/orders"):]), "")
}

func TestColorsAreWhereTheyAreWanted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		terminal bool
		env      map[string]string
		want     bool
	}{
		{true, nil, true}, {false, nil, false},
		{true, map[string]string{"NO_COLOR": "1"}, false},
		{true, map[string]string{"TERM": "dumb"}, false},
		{false, map[string]string{"CLICOLOR_FORCE": "1"}, true},
		{false, map[string]string{"CLICOLOR_FORCE": "0"}, false},
		{true, map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
	} {
		require.Equal(t, tc.want, colored(tc.terminal, func(name string) string { return tc.env[name] }), tc)
	}
}
