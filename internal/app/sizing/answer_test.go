package sizing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/budget"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/bill"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/price"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// record is a run of 10 s on a machine of two slots.
func record() forecast.Record {
	size := plan.Size{Rows: 1000, Bytes: 64 << 20, Parts: 8}
	return forecast.Record{Run: state.RunKey{Workspace: "w", Run: 3}, Elapsed: 10 * time.Second, Workers: 1, Slots: 2,
		Cores: 2, Memory: 2400 << 20, Peak: 100 << 20, Machine: "c7g.large",
		Nodes: []forecast.Node{{Name: "load", Kind: script.FileTable, Batches: 8, Files: 64 << 20, Out: size,
			Worked: 20 * time.Second}}}
}

func answer(t *testing.T, w sizing.Wanted, cluster bool, basis bill.Basis) (sizing.Planned, error) {
	t.Helper()
	r := record()
	m, err := forecast.Fit([]forecast.Record{r})
	require.NoError(t, err)
	b, err := budget.Split(r.Memory, r.Cores, r.Cores)
	require.NoError(t, err)
	basis.Book, err = price.Published()
	require.NoError(t, err)
	w.Machines, w.Scale, w.Batches = []string{"c7g.large"}, 1, 1
	return w.Answer(t.Context(), m, r, forecast.LoadOf(b, cluster), basis)
}

// TestPlansSayWhatIsPaid holds services and bring-up of the cluster's file, and what goes before them.
func TestPlansSayWhatIsPaid(t *testing.T) {
	t.Parallel()
	served := bill.Basis{Services: []bill.Service{{Machine: "c7g.large", Count: 3}},
		Others: []bill.Hourly{{Name: "balancer", PerHour: price.Dollar}}, BringUp: new(4 * time.Minute)}
	rate := price.Money(3*72_500) + price.Dollar
	none := time.Duration(0)
	for name, c := range map[string]struct {
		cluster bool
		basis   bill.Basis
		bringUp *time.Duration
		want    time.Duration
		beside  price.Money
		says    string
	}{
		"a state directory has no services": {false, bill.Basis{}, nil, time.Minute, 0,
			"for the run and 1 min of bring-up, which is not in the times. A state directory has no services"},
		"a cluster's are paid": {true, served, nil, 4 * time.Minute, rate,
			"4 min of bring-up, as the cluster's file says, which is not in the times. The cluster's services are paid as " +
				"long: 3 × c7g.large, balancer, $1.22 an hour together."},
		"the flag goes before the file": {true, served, &none, 0, rate, "for the run alone, without bring-up."},
		"nothing is a time":             {true, bill.Basis{BringUp: &none}, nil, 0, 0, "for the run alone, without bring-up."},
		"a file that names none": {true, bill.Basis{}, nil, time.Minute, 0,
			"The cluster's file names no services under cost: they are not in the costs."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := answer(t, sizing.Wanted{Deadline: time.Hour, BringUp: c.bringUp}, c.cluster, c.basis)
			require.NoError(t, err)
			require.Equal(t, c.want.Seconds(), p.BringUp)
			require.Contains(t, strings.Join(p.Notes, "\n"), c.says)
			require.NotNil(t, p.Answer)
			there := time.Duration(p.Answer.Middle*float64(time.Second)) + c.want
			require.Equal(t, (price.Money(72_500).Times(p.Answer.Count) + c.beside).For(there), p.Answer.Cost)
			require.Equal(t, c.beside > 0, p.Beside != nil)
			require.NotContains(t, strings.Join(p.Warnings, " "), "no price")
		})
	}
}

func TestServicesWithoutAPriceAreSaid(t *testing.T) {
	t.Parallel()
	basis := bill.Basis{Services: []bill.Service{{Machine: "rack", Count: 3}}}
	p, err := answer(t, sizing.Wanted{Deadline: time.Hour}, true, basis)
	require.NoError(t, err)
	require.Equal(t, []string{"There is no price for rack of the cluster's services: costs are without them."}, p.Warnings)
	_, err = answer(t, sizing.Wanted{Budget: price.Dollar}, true, basis)
	require.ErrorContains(t, err, "there is no price for rack of the cluster's services: no budget can be kept")
	book, diags := price.Read("prices.yaml", "version: 1\ndate: 2026\nsource: us\nmachines: {rack: {usd_per_hour: 2}}\n")
	require.NoError(t, diags.Err())
	p, err = answer(t, sizing.Wanted{Budget: price.Dollar, Prices: book}, true, basis)
	require.NoError(t, err)
	require.NotContains(t, strings.Join(p.Warnings, " "), "no price")
	require.Equal(t, 6*price.Dollar, *p.Beside)
}
