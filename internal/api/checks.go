package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
)

// checkRows is the number of failing rows of each check where a request does not say it.
const checkRows = 5

func (s *Server) registerChecks() {
	add(s, operation{id: "check", method: http.MethodPost, path: "/v1/workspaces/{workspace}/checks", tag: "data",
		summary: "Make the checks of a script or, for authors, of a text over the tables that a run has left: a job.",
		needs:   access.Operate, status: http.StatusAccepted, bytes: textBodyBytes}, s.check)
}

type checkIn struct {
	OfWorkspace
	Body struct {
		GivenParams
		Run   string   `json:"run,omitempty" pattern:"^(last(~[0-9]{1,3})?|[1-9][0-9]{0,17})$" doc:"None: the latest of the script, else the last."`
		Nodes []string `json:"nodes,omitempty" maxItems:"1000" doc:"None: all that have checks."`
		Limit int      `json:"limit,omitempty" minimum:"1" maximum:"1000" doc:"Failing rows of each check; none: 5."`
	}
}

// checked is what checks found.
type checked struct {
	Checked  view.Checked     `json:"checked"`
	Warnings view.Diagnostics `json:"warnings,omitempty" doc:"Of the script."`
}

func (s *Server) check(ctx context.Context, by asker, in *checkIn) (*reply[Job], error) {
	b := in.Body
	n, err := s.givenParams(ctx, by, "check", b.GivenParams)
	if err != nil {
		return nil, err
	}
	return s.job(by, operation{id: "check"}, func(ctx context.Context) (any, error) {
		script, diags, err := s.app.Scripts.Valid(ctx, n)
		if err != nil {
			return nil, errAsGiven(b.Given, n, err)
		}
		run, is, err := s.app.Data.LatestOf(ctx, in.Workspace, script, n.Path)
		if err == nil && (b.Run != "" || !is) {
			run, err = s.app.Runs.Find(ctx, in.Workspace, cmp.Or(b.Run, app.LastRun))
		}
		if err != nil {
			return nil, err
		}
		found, err := s.app.Data.Check(ctx, by.caller(), script, run, app.CheckOptions{ScriptPath: n.Path, Named: n,
			Nodes: b.Nodes, RowsMax: cmp.Or(b.Limit, checkRows)})
		s.note(ctx, by, access.RowsSeen,
			fmt.Sprintf("checks of %s over run %d", cmp.Or(b.Script, b.Name, "a text"), run.Run), err)
		if err != nil {
			return nil, err
		}
		out, err := app.CheckedView(run, found)
		return checked{out, asGiven(b.Given, n, diags.Warnings())}, err
	})
}
