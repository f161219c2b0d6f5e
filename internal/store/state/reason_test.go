package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Failures have the same reason if only values, rows and files differ.
func TestReason(t *testing.T) {
	t.Parallel()
	of := func(change func(f *state.Failure)) string {
		f := state.Failure{Kind: fault.UserData, Message: `column price: "12,5" is not a decimal2`,
			Place: fault.Place{File: "in/a.csv", Line: 7, Column: 3, Field: "price", Value: "12,5"}}
		change(&f)
		return f.Reason()
	}
	like := of(func(*state.Failure) {})
	require.Equal(t, like, of(func(f *state.Failure) {
		f.Message, f.Place.Value = `column price: "a \"b\"" is not a decimal2`, `a "b"`
		f.Place.File, f.Place.Line, f.Batch = "in/b.csv", 12, 4
	}))
	row := func(file string, n int64) string {
		return of(func(f *state.Failure) {
			f.Place.Origin = &fault.Place{File: file, Line: n}
			f.Message = "it divides by zero (row " + string(rune('0'+n)) + " of table t, from " + f.Place.Origin.String() + ")"
		})
	}
	require.Equal(t, row("a.csv", 3), row("b.csv", 5))
	for name, change := range map[string]func(f *state.Failure){
		"kind":       func(f *state.Failure) { f.Kind = fault.Environment },
		"column":     func(f *state.Failure) { f.Place.Field = "tax" },
		"expression": func(f *state.Failure) { f.Place.Expr = "a / b" },
		"message":    func(f *state.Failure) { f.Message = "the record has 1 fields" },
	} {
		require.NotEqual(t, like, of(change), name)
	}
}
