package query

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The place is where the mistake is, which ^ marks, and not where a parser gave up.
func TestSyntaxWords(t *testing.T) {
	const lost = "syntax error at or near"
	tests := map[string]struct{ query, message, hint string }{ // | in the query is where the parser gave up
		"from":    {"SELECT id ^FORM |items", lost, "did you mean FROM?"},
		"select":  {"^|SELEC 1", lost, "did you mean SELECT?"},
		"where":   {"SELECT id FROM items ^WERE |id = 1", lost, "did you mean WHERE?"},
		"order":   {"SELECT id FROM items ^ORDER |id", lost, "write ORDER BY"},
		"group":   {"SELECT id FROM items ^GROUP |id", lost, "write GROUP BY"},
		"a table": {"SELECT * FROM ^order|", lost, `a table of that name is written in double quotes, "order"`},
		"tables": {"SELECT * FROM items, ^Group |WHERE id = 1", lost,
			`a table of that name is written in double quotes, "Group"`},
		"joined": {"SELECT * FROM items JOIN ^|order ON true", lost,
			`a table of that name is written in double quotes, "order"`},
		"a column": {"SELECT id, ^order| FROM items", lost,
			`a column of that name is written in double quotes, "order"`},
		"by": {"SELECT id FROM items ORDER BY ^|desc", lost,
			`a column of that name is written in double quotes, "desc"`},
		"top":     {"SELECT ^TOP |5 id FROM items", lost, "write LIMIT and the number at the end of the query"},
		"bracket": {"SELECT count^(* |FROM items", lost, "close it where what belongs to it ends"},
		"ends open": {"SELECT id FROM ^(SELECT 1", "syntax error at end of input",
			"close it where what belongs to it ends"},
		"ends": {"SELECT id FROM items ^WHERE\n", "syntax error at end of input", "write what belongs behind it"},
		"closed": {"SELECT id ^|) FROM items", lost,
			"see whether it has a bracket that it closes, and whether something is missing before it"},
		"text": {"SELECT ^|'a", "unterminated quoted string", "texts stand between '…'; a ' in them is written twice"},
		"a case": {"SELECT id name ^|price FROM items", lost,
			"the query is SQL as DuckDB understands it: see what stands before that, too"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("^", "", "|", "").Replace(test.query)
			position := len(text)
			if before, _, ok := strings.Cut(strings.ReplaceAll(test.query, "^", ""), "|"); ok {
				position = len(before)
			}
			got := SyntaxWords(text, position, test.message)
			require.Equal(t, strings.Index(strings.ReplaceAll(test.query, "|", ""), "^"), got.At)
			require.Equal(t, test.hint, got.Hint)
		})
	}
}
