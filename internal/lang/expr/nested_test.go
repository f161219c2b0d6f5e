package expr

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNestedTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ written, name, sql string }{
		{"list(int)", "list(int)", "BIGINT[]"},
		{" list ( decimal( 10, 4 ) ) ", "list(decimal(10,4))", "DECIMAL(10,4)[]"},
		{"list(list(decimal(18,2)))", "list(list(decimal2))", "DECIMAL(18,2)[][]"},
		{"struct(a int,b string)", "struct(a int, b string)", `STRUCT("a" BIGINT, "b" VARCHAR)`},
		{`struct("a b" list(struct(x date)), "q""t" timestamptz)`,
			`struct("a b" list(struct(x date)), "q""t" timestamptz)`,
			`STRUCT("a b" STRUCT("x" DATE)[], "q""t" TIMESTAMP WITH TIME ZONE)`},
	} {
		typ, ok := ParseType(c.written)
		require.True(t, ok, c.written)
		require.Equal(t, c.name, typ.String())
		require.Equal(t, c.sql, typ.SQL())
		again, ok := ParseType(typ.String())
		require.True(t, ok)
		require.Equal(t, typ, again)
		require.True(t, typ.Nested())
	}
	typ, _ := ParseType(`struct(a list(int), b struct(c float, d decimal(9,3)))`)
	require.Equal(t, []Member{{"a", "list(int)"}, {"b", "struct(c float, d decimal(9,3))"}}, typ.Members())
	require.Equal(t, []Type{Int, Float, DecimalOf(9, 3)}, typ.Leaves())
	require.Equal(t, `STRUCT("a" VARCHAR[], "b" STRUCT("c" VARCHAR, "d" VARCHAR))`, typ.TextsSQL())
}

func TestNamesThatAreNoNestedTypes(t *testing.T) {
	t.Parallel()
	for written, problem := range map[string]string{
		"list()":                 `there is no type "" within`,
		"list(int":               "a list is of one type",
		"list(int) x":            "nothing comes behind",
		"list(int, string)":      "a list is of one type",
		"list(text)":             `there is no type "text" within`,
		"list(decimal(50,2))":    "a decimal has 1 to 38 digits",
		"struct(a)":              `no type ""`,
		"struct()":               "members with their types",
		"struct(a int, A int)":   `two members "A"`,
		`struct("a int)`:         "has no end",
		"map(string, int)":       "maps are no types",
		"list(map(string, int))": "maps are no types",
		strings.Repeat("list(", 9) + "int" + strings.Repeat(")", 9): "at most 8 deep",
	} {
		_, ok := ParseType(written)
		require.False(t, ok, written)
		require.Contains(t, TypeProblem(written), problem, written)
	}
	require.Empty(t, TypeProblem("lists"))
}
