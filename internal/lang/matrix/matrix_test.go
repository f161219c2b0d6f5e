package matrix_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/matrix"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"region=eu,us":                    {"eu", "us"},
		"n=8..11":                         {"8", "9", "10", "11"},
		"n=-1..1":                         {"-1", "0", "1"},
		"m=08..11":                        {"08", "09", "10", "11"},
		"month=2025-11..2026-02":          {"2025-11", "2025-12", "2026-01", "2026-02"},
		"day=2024-02-28..2024-03-01":      {"2024-02-28", "2024-02-29", "2024-03-01"},
		"month=2026-01..2026-02, 2026-06": {"2026-01", "2026-02", "2026-06"},
		"n=9223372036854775807..9223372036854775807": {"9223372036854775807"},
		"url=a=b":         {"a=b"},
		"dir=../a,b/../c": {"../a", "b/../c"},
	} {
		a, err := matrix.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want, a.Values, text)
	}
	for text, want := range map[string]string{
		"month":                    "does not say a parameter",
		"=x":                       "does not say a parameter",
		"m=":                       "does not say a parameter",
		"m=a,,b":                   "empty value",
		"m=a,b,a":                  "the value a more than once",
		"m=1..3,2":                 "the value 2 more than once",
		"m=3..1":                   "leads nowhere",
		"m=2026-02..2026-01":       "leads nowhere",
		"m=2026-13..2027-01":       "there is no 2026-13",
		"d=2026-02-27..2026-02-30": "there is no 2026-02-30",
		"m=2026-01..":              "leads nowhere",
		"m=..2026-01":              "leads nowhere",
		"m=a..c":                   "leads nowhere",
		"m=2026-01..2026-01-05":    "leads nowhere",
		"m=1..100000":              "more than 1000 values",
		"m=1..9223372036854775807": "more than 1000 values",
		"m=0001-01-01..9999-12-31": "more than 1000 values",
	} {
		_, err := matrix.Parse(text)
		require.ErrorContains(t, err, want, text)
		require.Equal(t, fault.Script, fault.Of(err).Kind)
	}
}

func TestCells(t *testing.T) {
	t.Parallel()
	cells, err := matrix.Cells([]matrix.Axis{{"month", []string{"1", "2"}}, {"region", []string{"eu", "us"}}})
	require.NoError(t, err)
	require.Equal(t, "[month=1 region=eu month=1 region=us month=2 region=eu month=2 region=us]", fmt.Sprint(cells))
	_, err = matrix.Cells([]matrix.Axis{{"m", []string{"1"}}, {"m", []string{"2"}}})
	require.ErrorContains(t, err, "given twice")
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	_, err = matrix.Cells([]matrix.Axis{{"a", many}, {"b", many}})
	require.ErrorContains(t, err, "more than 1000 cells")
}
