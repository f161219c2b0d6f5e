package sqltext

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	require.Equal(t, `SELECT a, 'x  y' || "b c", count(*) FILTER (WHERE a IS DISTINCT FROM 1)
FROM (
  SELECT *
  FROM read_parquet(['/1', … 3 more], x = ['/5', '/6'])
  WHERE z
) AS r
LEFT JOIN t ON r.a = t.a
ORDER BY a`,
		Format("SELECT a,   'x  y' || \"b c\", count(*) FILTER (WHERE a IS DISTINCT FROM 1) -- why\nFROM (SELECT * "+
			"FROM read_parquet(['/1', '/2', '/3', '/4'], x = ['/5', '/6']) WHERE z) AS r LEFT JOIN t ON r.a = "+
			"t.a ORDER BY a"))
	require.Equal(t, 3, strings.Count(Format("SELECT "+strings.Repeat("somewhat_long_name, ", 10)+"x"), "\n")+1)
}

// TestFormatKeepsTheTokens: whatever the text, layout changes blanks only.
func TestFormatKeepsTheTokens(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"SELECT", "FROM", "(", ")", "[", "]", "'a'", "'it''s'", `"b"`, ",", "x", "1.5",
		"JOIN", "ORDER", "BY", "$$q'$$", "--c\n", "/*d*/", "e'\\''", "::", " "})
	rapid.Check(t, func(t *rapid.T) {
		sql := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "pieces"), " ")
		if strings.Count(sql, "', '") > 0 || strings.Count(sql, "' , '") > 0 {
			return // a list may be shortened
		}
		require.Equal(t, texts(sql), texts(Format(sql)))
	})
}

func texts(sql string) []string {
	out := []string{}
	for _, tok := range Tokens(sql) {
		out = append(out, sql[tok.Start:tok.End])
	}
	return out
}
