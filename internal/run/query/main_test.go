package query

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"thalweg/internal/io/files"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tables of the tests: orders(id, customer, amount, weight, paid, bought) and items.
func tables() []script.QueryTable {
	return []script.QueryTable{
		{Name: "orders", Fields: []*script.Field{{Name: "id", Type: expr.Int}, {Name: "customer", Type: expr.String},
			{Name: "amount", Type: expr.Decimal},
			{Name: "weight", Type: expr.Float}, {Name: "paid", Type: expr.Bool}, {Name: "bought",
				Type: expr.DateTime}}},
		{Name: "items", Fields: []*script.Field{{Name: "order_id", Type: expr.Int}, {Name: "sku", Type: expr.String},
			{Name: "user", Type: expr.String}}},
	}
}

// open gives a describer for all queries of a test: none may leave anything
// behind for the next.
func open(t *testing.T) func(t *testing.T, text string) (*script.QueryInfo, []script.QueryProblem) {
	t.Helper()
	d, err := Open(context.Background(), files.Look{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return func(t *testing.T, text string) (*script.QueryInfo, []script.QueryProblem) {
		t.Helper()
		info, problems, err := d.Describe(context.Background(), script.QueryText{Text: text, Tables: tables(),
			Others: []string{"orders", "items", "customers"}})
		require.NoError(t, err)
		return info, problems
	}
}
