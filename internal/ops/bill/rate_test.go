package bill_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/price"
)

func TestAnHourOfWorkersAndServicesHasAPrice(t *testing.T) {
	book, err := price.Published()
	require.NoError(t, err)
	line, ok := book.Find("c7g.large")
	require.True(t, ok)
	b := bill.Basis{Book: book}
	rate, why := b.PerHour("c7g.large", 3)
	require.Empty(t, why)
	require.Equal(t, line.PerHour.Times(3), rate)
	b.Services = []bill.Service{{Machine: "c7g.large", Count: 2}}
	b.Others = []bill.Hourly{{Name: "nat", PerHour: 45_000}}
	rate, why = b.PerHour("c7g.large", 3)
	require.Empty(t, why)
	require.Equal(t, line.PerHour.Times(5)+45_000, rate)
	for machine, want := range map[string]string{"": "not known", "my.own": "no price for my.own"} {
		_, why = b.PerHour(machine, 1)
		require.Contains(t, why, want)
	}
	b.Services[0].Machine = "their.own"
	_, why = b.PerHour("c7g.large", 3)
	require.Contains(t, why, "no price for their.own")
}
