package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/lang/expr"
)

// Decimals travel as hundredths: also those whose hundredths times a hundred are more than 18 digits.
func TestDecimalsTravelExactly(t *testing.T) {
	t.Parallel()
	in, err := OpenInstance(context.Background(), InstanceConfig{Threads: 1, SpillDir: t.TempDir()})
	require.NoError(t, err)
	defer in.Close()
	for value, cents := range map[string]string{
		"NULL": "NULL", "0": "0", "-0.01": "-1", "1.10": "110",
		"99999999999999.99": "9999999999999999", "-99999999999999.99": "-9999999999999999",
		"100000000000000.00": "10000000000000000", "-100000000000000.00": "-10000000000000000",
		"9999999999999999.99": "999999999999999999", "-9999999999999999.99": "-999999999999999999",
	} {
		from := fmt.Sprintf(" FROM (SELECT CAST(%s AS DECIMAL(18,2)) AS d, CAST(%s AS BIGINT) AS c FROM range(1))",
			value, cents)
		var there, back bool
		var kind string
		query := fmt.Sprintf("SELECT %s IS NOT DISTINCT FROM c, %s IS NOT DISTINCT FROM d, typeof(%[2]s)%s",
			TransportSQL(expr.Decimal, "d"), untransportSQL(expr.Decimal, "c"), from)
		require.NoError(t, in.conn.QueryRowContext(context.Background(), query).Scan(&there, &back, &kind), value)
		require.True(t, there, value)
		require.True(t, back, value)
		require.Equal(t, "DECIMAL(18,2)", kind)
	}
}
