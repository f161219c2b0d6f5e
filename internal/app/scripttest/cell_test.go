package scripttest

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/lang/expr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCanonicalText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ        expr.Type
		text, want string // want "": no value of the type
	}{
		{expr.String, `a"b`, `"a\"b"`},
		{expr.String, "NULL", `"NULL"`},
		{expr.Int, "007", "7"},
		{expr.Int, "1.0", ""},
		{expr.Int, "9223372036854775808", ""},
		{expr.Float, "1e3", "1000"},
		{expr.Float, "0.1", "0.1"},
		{expr.Bool, "true", "true"},
		{expr.Bool, "yes", ""},
		{expr.Decimal, "10", "10.00"},
		{expr.Decimal, "-0.5", "-0.50"},
		{expr.Decimal, "1.234", ""},
		{expr.Decimal, "1/2", ""},
		{expr.Decimal, "1e9", ""},
		{expr.Decimal, "1234567890123456789012345678901234567890.12", ""},
		{expr.DateTime, "2024-01-31", "2024-01-31 00:00:00.000"},
		{expr.DateTime, "2024-01-31 10:00:00.5", "2024-01-31 10:00:00.500"},
		{expr.DateTime, "2024-01-31T10:00:00+02:00", "2024-01-31 08:00:00.000"},
		{expr.DateTime, "31.1.2024", ""},
	} {
		got, ok := canonicalText(c.typ, c.text)
		require.Equal(t, c.want != "", ok, "%s %s", c.typ, c.text)
		if ok {
			require.Equal(t, c.want, got)
		}
	}
}
