package expr

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumberFormat(t *testing.T) {
	tests := map[string]struct {
		typ                        Type
		format, text, number, rest string
		no                         bool
	}{
		"all":              {Int, "%d", "12", "12", "", false},
		"blanks around":    {Int, "%d", " 12\t", "12", "", false},
		"thousands":        {Int, "%d", "1,234", "1", ",234", false},
		"point":            {Int, "%d", "12.0", "12", ".0", false},
		"width":            {Int, "%4d", "20240131", "2024", "0131", false},
		"minus behind":     {Decimal, "%f", "5.00-", "5.00", "-", false},
		"dollar":           {Decimal, "$%f", "$1,234.56", "1", ",234.56", false},
		"unit":             {Float, "%f kg", "5 kg", "5", "", false},
		"more than a unit": {Float, "%f kg", "5 kg net", "5", "net", false},
		"exponent":         {Float, "%g", "1e3x", "1e3", "x", false},
		"other text":       {Float, "EUR %f", "USD 5", "", "", true},
		"no number":        {Int, "%d", "x", "", "", true},
		"no format":        {Int, "", "1", "", "", true},
		"no number's type": {DateTime, "2006", "2006", "", "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			number, rest, ok := ParseNumberFormat(test.typ, test.format).Read(test.text)
			require.Equal(t, !test.no, ok)
			require.Equal(t, []string{test.number, test.rest}, []string{number, rest})
		})
	}
}
