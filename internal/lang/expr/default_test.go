package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What DefaultSQL would round or cut is not exact.
func TestDefaultIsExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ          Type
		text, format string
		exact        bool
	}{
		{Decimal, "1.50", "", true}, {Decimal, "1.500", "", true}, {Decimal, "1.005", "", false},
		{Decimal, "1e-5", "", false}, {Decimal, "", "", true},
		{Float, "0.1", "", true}, {Float, "0", "", true}, {Float, "-0.0", "", true}, {Float, "1e300", "", true},
		{Float, "1e23", "", true},
		{Float, "9007199254740992", "", true}, {Float, "9007199254740993", "", false}, {Float, "1e-400", "", false},
		{DateTime, "2024-01-01 00:00:00.5", "2006-01-02 15:04:05", true},
		{DateTime, "2024-01-01 00:00:00.0005", "2006-01-02 15:04:05", false},
		{Int, "7", "", true}, {String, "1.005", "", true}, {Bool, "maybe", "", true},
	} {
		require.Equal(t, c.exact, DefaultIsExact(c.typ, c.text, c.format), "%s %q", c.typ, c.text)
	}
}
