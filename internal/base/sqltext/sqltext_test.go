package sqltext

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuoting(t *testing.T) {
	t.Parallel()
	require.Equal(t, `"a"`, Ident("a"))
	require.Equal(t, `"a""; DROP TABLE x; --"`, Ident(`a"; DROP TABLE x; --`))
	require.Equal(t, `'it''s'`, String("it's"))
	require.Equal(t, `('a' || chr(0) || 'b')`, String("a\x00b"))
	require.Equal(t, `['a', 'b''']`, Strings([]string{"a", "b'"}))
	require.Equal(t, `[]`, Strings(nil))
	require.Equal(t, `CAST('-9223372036854775808' AS BIGINT)`, Int(math.MinInt64))
	require.Equal(t, `CAST(-5 AS BIGINT)`, Int(-5))
	require.Equal(t, `CAST('1e+300' AS DOUBLE)`, Float(1e300))
	require.Equal(t, `CAST('NaN' AS DOUBLE)`, Float(math.NaN()))
	require.Equal(t, `true`, Bool(true))
}
