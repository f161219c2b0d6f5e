package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueryWords(t *testing.T) {
	tests := []struct{ said, what, hint string }{
		{"No function matches the given name and argument types '+(VARCHAR, DECIMAL(18,2))'. You might need",
			"+ cannot compute with a text and a decimal(18,2)", "||"},
		{"No function matches the given name and argument types 'substr(VARCHAR)'. You might need to add explicit " +
			"type casts.\n\tCandidate functions:\n\tsubstr(string VARCHAR, \"start\" BIGINT) -> VARCHAR\n",
			"substr does not take a text", "it is substr(string VARCHAR, start BIGINT)"},
		{"Could not convert string 'a' to INT64 when casting from source column name",
			`"a" is not an int, to which column name is converted`, "TRY_CAST"},
		{`Could not convert string "abc" to DECIMAL(5,2)`, `"abc" is not a decimal(5,2)`, "TRY_CAST"},
		{"Conversion Error: Could not convert string 'x' to INT64", `"x" is not an int`, "TRY_CAST"},
		{"Type INT64 with value 9223372036854775807 can't be cast because the value is out of range for the " +
			"destination type INT32 when casting from source column id",
			"9223372036854775807 is more than an INTEGER (32 bits), to which id is converted, can hold", "HUGEINT"},
		{"Type INT32 with value 300 can't be cast because the value is out of range for the destination type INT8",
			"300 is more than a TINYINT (8 bits) can hold", "HUGEINT"},
		{"Overflow in multiplication of INT64 (2 * 9223372036854775807)!",
			"the result of the multiplication 2 * 9223372036854775807 is more than an int can hold", "HUGEINT"},
		{`invalid date field format: "a", expected format is (YYYY-MM-DD) when casting from source column name`,
			`"a" is not a date`, "%d.%m.%Y"},
		{`column "name" must appear in the GROUP BY clause or must be part of an aggregate function.`,
			`column "name" is neither in GROUP BY nor in an aggregate function`, "any_value"},
		{`column id must appear in the GROUP BY clause or be used in an aggregate function`,
			`column "id" is neither in GROUP BY nor in an aggregate function`, "any_value"},
		{`Ambiguous reference to column name "id" (use: "a.id" or "b.id")`, `several tables have a column "id"`,
			"a.id or b.id"},
		{`Column "idd" does not exist on left side of join!`, `the table to the left of JOIN has no column "idd"`,
			"ON a.x = b.y"},
		{"something new\nand more", "something new", ""},
	}
	for _, test := range tests {
		what, hint := QueryWords(test.said)
		require.Equal(t, test.what, what)
		require.Contains(t, hint, test.hint)
	}
}
