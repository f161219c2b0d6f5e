package api_test

import (
	"maps"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/test/effort"
)

// What is no limit is refused wherever a run takes one, also where it is only asked what would be done; so is a limit
// that is below what is expected, or was taken already, and one of cost without a price.
func TestLimitsOfRuns(t *testing.T) {
	effort.Unraced(t)
	t.Setenv("THALWEG_MACHINE", "") // whatever this machine is
	s := serve(t)
	c := s.as("root", access.Grant{Workspace: "*", Role: access.Manager})
	sum, err := s.app.Run(t.Context(), app.ProcessCaller(), app.RunOptions{Workspace: app.DefaultWorkspace,
		ScriptPath: filepath.Join(s.dir, "script.yaml"), Most: app.LimitAsk{Elapsed: "1ms"}})
	require.NoError(t, err)
	require.Equal(t, view.PausedRun, sum.Status)
	orders := ws + "/runs/1/orders"
	start := body{"script": "script.yaml", "fresh": true}
	with := func(b, more body) body {
		b = maps.Clone(b)
		maps.Copy(b, more)
		return b
	}
	for _, ask := range []struct {
		path string
		body body
	}{{ws + "/runs", start}, {orders, body{"kind": "resume"}}, {orders, body{"kind": "retry"}}} {
		path, b := ask.path, ask.body
		for _, dry := range []bool{true, false} {
			for _, text := range []string{"", "0", "-1", "NaN", "Inf", "1e400", "5 minutes", "soon", "９"} {
				for _, name := range []string{"max_elapsed", "max_cost"} {
					c.send("POST", path, with(b, body{name: text, "dry_run": dry})).problem(http.StatusUnprocessableEntity)
				}
			}
			c.send("POST", path, with(b, body{"max_elapsed": 5, "dry_run": dry})).problem(http.StatusUnprocessableEntity)
			c.send("POST", path, with(b, body{"max_elapsed": "1h", "max_cost": "-1", "dry_run": dry})).
				problem(http.StatusUnprocessableEntity)
		}
	}
	var shown view.RunDetail
	p := c.send("POST", orders, body{"kind": "resume"}).problem(http.StatusConflict)
	require.Contains(t, p.Detail, "run 1 has reached its limit")
	p = c.send("POST", orders, body{"kind": "resume", "max_elapsed": "2ms"}).problem(http.StatusUnprocessableEntity)
	require.Contains(t, p.Detail, "run 1 has reached its limit", "%+v", p)
	p = c.send("POST", orders, body{"kind": "resume", "max_cost": "1", "max_elapsed": "none"}).
		problem(http.StatusUnprocessableEntity)
	require.Contains(t, p.Detail, "max-cost needs the price")
	c.get(ws+"/runs/1").into(http.StatusOK, &shown)
	require.EqualValues(t, view.PausedRun, shown.Status)
	require.EqualValues(t, 1, shown.Limit.Elapsed)
	require.Positive(t, shown.Limit.UsedElapsed)
	require.Equal(t, "max-elapsed", shown.Order.Actor)

	s.run() // from which the next is foreseen
	for name, ask := range map[string]body{"At least expected are": {"max_elapsed": "1ms"},
		"needs the price": {"max_cost": "1000", "max_elapsed": "1h"}} {
		p := c.send("POST", ws+"/runs", with(start, ask)).problem(http.StatusUnprocessableEntity)
		require.Contains(t, p.Detail, name)
		var plan struct{ Planned view.RunPlanned }
		c.send("POST", ws+"/runs", with(with(start, ask), body{"dry_run": true})).into(http.StatusCreated, &plan)
		require.Contains(t, plan.Planned.Refused, name)
	}
	c.get(ws + "/runs/3").problem(http.StatusNotFound)
	var plan struct{ Planned view.RunPlanned }
	c.send("POST", ws+"/runs", with(start, body{"max_elapsed": "1h", "dry_run": true})).into(http.StatusCreated, &plan)
	require.Empty(t, plan.Planned.Refused)
	c.send("POST", orders, body{"kind": "resume", "max_elapsed": "1h"}).into(http.StatusOK, new(map[string]any))
}
