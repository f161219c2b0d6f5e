package inspect

import (
	"math/big"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/stretchr/testify/require"
)

func TestDecimalsShowAllDigitsOfTheirType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value int64
		scale uint8
		want  string
	}{{4080, 2, "40.80"}, {-5, 2, "-0.05"}, {0, 2, "0.00"}, {100, 0, "100"}, {-12, 1, "-1.2"}, {1, 4, "0.0001"}} {
		require.Equal(t, c.want, plainCell(duckdb.Decimal{Width: 18, Scale: c.scale, Value: big.NewInt(c.value)}))
	}
}
