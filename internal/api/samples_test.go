package api_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/ops/samples"
	"thalweg/internal/store/state"
	"thalweg/internal/test/effort"
)

// Who may view a run sees what its workers used, also of one that was killed, and not those of other runs. What was
// spent on a run is in its lists, sums and nodes.
func TestSamplesAndCost(t *testing.T) {
	effort.Unraced(t)
	t.Parallel()
	s := serve(t)
	run := s.run()
	c := s.as("eve", access.Grant{Workspace: "main", Role: access.Viewer})
	at := ws + "/runs/1/samples"
	var got view.Samples
	c.get(at).into(http.StatusOK, &got)
	require.Empty(t, got.Workers, "it has not taken so long")

	now := time.Now().Add(-time.Minute).Truncate(time.Second)
	var used samples.Reading
	for name, key := range map[string]state.RunKey{"killed/1/1": run.Key, "other/1/1": {Workspace: "other", Run: 1}} {
		used.Cores = 2
		w := samples.New(s.app.Runs.Home.State, name, func() time.Time { return now },
			func() (samples.Reading, bool) { return used, true })
		for range 4 {
			require.NoError(t, w.Take(t.Context(), []state.RunKey{key}))
			now = now.Add(samples.Every)
			used.Self.CPU += 5 * time.Second
		}
		now = now.Add(-4 * samples.Every)
	}
	window := "?from=" + url.QueryEscape(now.Format(time.RFC3339Nano)) + "&to=" +
		url.QueryEscape(now.Add(time.Hour).Format(time.RFC3339Nano))
	c.get(at+window).into(http.StatusOK, &got)
	require.Len(t, got.Workers, 1)
	require.Equal(t, "killed/1/1", got.Workers[0].Worker)
	require.Equal(t, []int64{10_000, 20_000, 30_000}, got.Workers[0].At)
	require.Equal(t, []int64{5_000, 5_000, 5_000}, got.Workers[0].CPU)
	require.Equal(t, []int64{2, 2, 2}, got.Workers[0].Cores)
	c.get(at+window+"&points=1").into(http.StatusOK, &got)
	require.Equal(t, []int64{15_000}, got.Workers[0].CPU)
	c.get(at + "?points=0").problem(http.StatusUnprocessableEntity)

	var shown view.RunDetail
	c.get(ws+"/runs/1").into(http.StatusOK, &shown)
	var list struct{ Runs []view.ListedRun }
	c.get(ws+"/runs").into(http.StatusOK, &list)
	require.Positive(t, shown.Cost.Worked)
	require.Zero(t, shown.Cost.Lost)
	require.Equal(t, shown.Cost, list.Runs[0].Cost)
	sum := int64(0)
	for _, n := range shown.Nodes {
		sum += n.Cost.Worked
	}
	require.Equal(t, shown.Cost.Worked, sum)

	var first, second view.Expectation
	c.get(ws+"/runs/1/expectation").into(http.StatusOK, &first)
	require.Nil(t, first.Last)
	s.run()
	c.get(ws+"/runs/2/expectation").into(http.StatusOK, &second)
	require.Equal(t, int64(1), second.Last.Run)
	require.Equal(t, shown.Cost, second.Last.Cost)
}
