package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/run/sheet"
)

// A run has the sums of its time sheets, and lists them; one that comes late makes the run another one.
func TestTimeSheets(t *testing.T) {
	t.Parallel()
	s := serve(t)
	run := s.run()
	c := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	var got view.RunWorkers
	c.get(ws+"/runs/1/workers").into(http.StatusOK, &got)
	require.Len(t, got.Workers, 1)
	one := got.Workers[0]
	require.InEpsilon(t, one.Presence*float64(one.Slots), one.SlotTime().Seconds(), 0.005)
	var shown view.RunDetail
	before := c.get(ws + "/runs/1")
	before.into(http.StatusOK, &shown)
	require.Equal(t, got.Total, shown.Workers)
	require.Equal(t, 1, shown.Workers.Workers)

	now := time.Now()
	m := sheet.NewMeter(sheet.Config{Worker: "late/1/1", Host: "late", Slots: 2, Now: func() time.Time { return now }})
	m.Open(run.Key)
	now = now.Add(time.Hour)
	require.NoError(t, sheet.NewKeeper(m, s.app.Runs.Home.State).Close(t.Context(), run.Key))
	after := c.get(ws + "/runs/1")
	after.into(http.StatusOK, &shown)
	require.NotEqual(t, before.header.Get("ETag"), after.header.Get("ETag"))
	require.Equal(t, 2, shown.Workers.Workers)
	require.Greater(t, shown.Workers.SlotTime, 7200.0)
	c.get(ws+"/runs/1/workers").into(http.StatusOK, &got)
	require.Equal(t, "late/1/1", got.Workers[1].Worker)
	c.get(ws + "/runs/9/workers").problem(http.StatusNotFound)
}

// Runs have bills, by which lists are priced if that is asked for; costs are put together, for viewers of the
// workspace.
func TestCosts(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.run()
	s.run()
	c := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	now := time.Now()
	m := sheet.NewMeter(sheet.Config{Worker: "paid/1/1", Host: "paid", Slots: 2, Machine: "c7g.large",
		Now: func() time.Time { return now }})
	key := view.RunKey{Workspace: "main", Run: 1}
	m.Open(key)
	now = now.Add(time.Hour)
	require.NoError(t, sheet.NewKeeper(m, s.app.Runs.Home.State).Close(t.Context(), key))

	var shown view.RunDetail
	c.get(ws+"/runs/1").into(http.StatusOK, &shown)
	require.Equal(t, view.Money(72_500), *shown.Bill.Total)
	require.Equal(t, shown.Bill.Total, shown.Cost.USD)
	require.True(t, shown.Cost.Partial, "the first worker's machine is not known")
	var page struct{ Runs []view.ListedRun }
	c.get(ws+"/runs?priced=true").into(http.StatusOK, &page)
	require.Equal(t, shown.Cost, page.Runs[1].Cost)
	require.Nil(t, page.Runs[0].Cost.USD)
	page.Runs = nil
	c.get(ws+"/runs").into(http.StatusOK, &page)
	require.Nil(t, page.Runs[1].Cost.USD)

	var costs view.Costs
	c.get(ws+"/costs?by=script").into(http.StatusOK, &costs)
	require.Len(t, costs.Groups, 1)
	require.Equal(t, 2, costs.Groups[0].Runs)
	require.Equal(t, view.Money(72_500), *costs.Total.Total)
	costs = view.Costs{}
	c.get(ws+"/costs?run=2&run=2").into(http.StatusOK, &costs)
	require.Len(t, costs.Groups, 1)
	require.EqualValues(t, 2, costs.Groups[0].Run)
	require.Nil(t, costs.Total.Total)
	c.get(ws + "/costs?run=9").problem(http.StatusNotFound)
	c.get(ws + "/costs?by=month").problem(http.StatusUnprocessableEntity)
}
