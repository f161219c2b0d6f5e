package api

import (
	"context"
	"net/http"
	"os"
	"strconv"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func (s *Server) registerScripts() {
	const w = "/v1/workspaces/{workspace}"
	add(s, operation{id: "list-scripts", method: http.MethodGet, path: w + "/scripts", tag: "scripts",
		summary: "List the scripts that may be started.", needs: access.View}, s.listScripts)
	add(s, operation{id: "list-script-runs", method: http.MethodGet, path: w + "/scripts/{script}/runs", tag: "scripts",
		summary: "List the latest runs of a script that may be started.", needs: access.View}, s.listScriptRuns)
	add(s, operation{id: "start-run", method: http.MethodPost, path: w + "/runs", tag: "runs", status: http.StatusCreated,
		summary: "Start a script or, for authors, a text; or say what a run of it would do.", needs: access.Operate,
		bytes: textBodyBytes}, s.startRun)
}

// script is a script that may be started.
type script struct {
	Script string `json:"script" doc:"Name, as start-run takes it."`
}

func (s *Server) listScripts(_ context.Context, _ asker, in *OfWorkspace) (*reply[[]script], error) {
	found, err := s.serving.ScriptsOf(in.Workspace)
	out := []script{}
	for _, one := range found { // what has no nodes is a configuration, or parameters
		if text, err := one.Text(); err == nil && len(app.NodesOf(text)) > 0 {
			out = append(out, script{one.Name})
		}
	}
	return body(out, err)
}

type scriptRunsIn struct {
	OfScript
	Limit int `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Runs at most."`
}

func (s *Server) listScriptRuns(ctx context.Context, by asker, in *scriptRunsIn) (*reply[[]view.ListedRun], error) {
	one, err := s.serving.ScriptOf(in.Workspace, in.Script)
	if err != nil {
		return nil, err
	}
	text, err := one.Text()
	if err != nil {
		return nil, err
	}
	name, known := app.ScriptNameOf(text)
	return body(s.runs(by).OfScript(ctx, in.Workspace, name, known, one.Path, in.Limit))
}

type startIn struct {
	OfWorkspace
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"A start that is repeated with it is one run."`
	Body struct {
		GivenParams
		Start    []string `json:"start,omitempty" maxItems:"1000" doc:"Nodes to start with."`
		From     []int64  `json:"from,omitempty" maxItems:"100" doc:"Runs to read tables from."`
		Note     string   `json:"note,omitempty" maxLength:"4000" doc:"A description to keep with the run."`
		Deadline string   `json:"deadline,omitempty" maxLength:"100" doc:"When it is to be over: 2h, 06:30, or a moment."`
		Priority string   `json:"priority,omitempty" enum:"high,normal,low"`
		AskedLimit
		Fresh  bool `json:"fresh,omitempty" doc:"Run all nodes, also those that an earlier run has done."`
		DryRun bool `json:"dry_run,omitempty" doc:"Only say what the run would do."`
	}
}

// started is a run that was started, or what one would do.
type started struct {
	Run      int64            `json:"run,omitempty"`
	Planned  *view.RunPlanned `json:"planned,omitempty" doc:"Of a dry run."`
	Warnings view.Diagnostics `json:"warnings,omitempty" doc:"Of the script."`
}

func (s *Server) startRun(ctx context.Context, by asker, in *startIn) (*reply[started], error) {
	b := in.Body
	n, err := s.givenParams(ctx, by, "start-run", b.GivenParams)
	if err == nil && b.Text != "" {
		err = s.mayRun(in.Workspace, b.Name, n.Dir)
	}
	if err != nil {
		return nil, err
	}
	priority, _ := app.ParsePriority(b.Priority) // the schema takes no others
	o := app.RunOptions{Workspace: in.Workspace, ScriptPath: n.Path, ParamsPath: n.ParamsPath, Dir: n.Dir, Texts: n.Texts,
		Params: n.Params, Lenient: n.Lenient,
		Start: b.Start, From: b.From, Description: s.known.Text(b.Note), Deadline: b.Deadline, Priority: priority,
		Most:  b.ask(),
		Reuse: !b.Fresh, Policy: n.Policy, Literal: n.Literal}
	caller := by.caller()
	if b.DryRun {
		plan, err := s.app.Operations.Plan(ctx, caller, o)
		return body(started{Planned: &plan}, errAsGiven(b.Given, n, err))
	}
	o.Token = requestToken(by, in.Key, in.Workspace, b)
	key, warnings, err := s.app.Submit(ctx, caller, o)
	if err != nil {
		return nil, errAsGiven(b.Given, n, err)
	}
	return &reply[started]{Location: "/v1/workspaces/" + key.Workspace + "/runs/" + strconv.FormatInt(key.Run, 10),
		Body: started{Run: key.Run, Warnings: asGiven(b.Given, n, warnings)}}, nil
}

// mayRun refuses a run of a text that has the name of a script, because a retry of the run would take the script's
// text, or a directory that is not there.
func (s *Server) mayRun(workspace, name, dir string) error {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: "the directory that the name of the text has is not there", Hint: "give the text a name without it"}
	}
	_, err := s.serving.ScriptOf(workspace, name)
	switch {
	case name == "" || fault.CodeOf(err) == fault.NotFound:
		return nil
	case err != nil:
		return err
	}
	return &fault.Error{Kind: fault.Script, Code: fault.Conflict,
		Message: "a script has the name of the text, and a retry of the run would take that",
		Hint:    "give the text another name, or none"}
}
