package sources

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

func TestTypesOfTables(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]expr.Type{
		"date": expr.Date, "timestamptz": expr.Instant, "decimal(18,2)": expr.Decimal,
		"decimal(20,4)": expr.DecimalOf(20, 4), "decimal(38,37)": expr.DecimalOf(38, 37),
		"decimal(2,2)": expr.DecimalOf(3, 2), "decimal(9,9)": expr.DecimalOf(10, 9), "decimal(38,38)": expr.Invalid,
		"decimal(65,30)": expr.Invalid, "decimal": expr.Invalid, "json": expr.Invalid,
	} {
		got, ok := typeOfTable(name)
		require.Equal(t, want != expr.Invalid, ok, name)
		if ok {
			require.Equal(t, want, got, name)
		}
	}
}
