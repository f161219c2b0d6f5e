package query

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSQLTypesAreTakenApart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{ // the members, as NAME:TYPE
		"INTEGER":                                nil,
		"DECIMAL(38,3)":                          nil,
		"TIMESTAMP WITH TIME ZONE":               nil,
		"INTEGER[]":                              {":INTEGER"},
		"INTEGER[3][]":                           {":INTEGER[3]"},
		"MAP(STRUCT(a INTEGER), DECIMAL(4,1)[])": {":STRUCT(a INTEGER)", ":DECIMAL(4,1)[]"},
		"STRUCT(a INTEGER, b DECIMAL(4,1))":      {"a:INTEGER", "b:DECIMAL(4,1)"},
		`STRUCT("a ""b, (" INTEGER, "c" ENUM('x, (', 'y'')'), d T)`: {`a "b, (:INTEGER`,
			`c:ENUM('x, (', 'y'')')`, "d:T"},
		"STRUCT(INTEGER, TIMESTAMP WITH TIME ZONE, STRUCT(a DATE))": {":INTEGER", ":TIMESTAMP WITH TIME ZONE",
			":STRUCT(a DATE)"},
		"STRUCT(timestamp TIMESTAMP WITH TIME ZONE)":      {"timestamp:TIMESTAMP WITH TIME ZONE"},
		"STRUCT(MAP(INTEGER, VARCHAR), ENUM('a b', 'c'))": {":MAP(INTEGER, VARCHAR)", ":ENUM('a b', 'c')"},
		"UNION(num DECIMAL(5,2), str VARCHAR)":            {"num:DECIMAL(5,2)", "str:VARCHAR"},
	} {
		var got []string
		for _, m := range ParseSQLType(name).Members {
			got = append(got, m.Name+":"+m.Type.Name)
		}
		require.Equal(t, want, got, name)
	}
}
