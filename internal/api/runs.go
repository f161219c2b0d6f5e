package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Limits of pages.
const (
	runsPageDefault = 100
	runsPageMax     = 1_000
)

// OfRun is the input of operations of a run.
type OfRun struct {
	OfWorkspace
	Run string `path:"run" pattern:"^(last(~[0-9]{1,3})?|[1-9][0-9]{0,17})$" doc:"Number of the run; last for the latest one, last~1 for the one before it."`
}

// OfNode is the input of operations of a node.
type OfNode struct {
	OfRun
	Node string `path:"node" maxLength:"256" doc:"Name of the node."`
}

// runs returns the service that an asker sees runs by: without values for who may not read them.
func (s *Server) runs(by asker) *app.RunService {
	if by.may(access.Read) {
		return s.app.Runs
	}
	return s.discreet
}

// key finds the run that a request names.
func (s *Server) key(ctx context.Context, in OfRun) (view.RunKey, error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	return run.RunKey, err
}

// epochTag is the ETag of a run behind an order: the number of its latest order.
func epochTag(epoch int64) string { return strconv.Quote(strconv.FormatInt(epoch, 10)) }

// versionTag is the ETag of a run that is shown: that number, and what of the run may change without an order.
func versionTag(epoch int64, version string) string { return fmt.Sprintf("\"%d.%s\"", epoch, version) }

// isEpoch reports whether an ETag of a run is of its latest order.
func isEpoch(tag string, epoch int64) bool {
	of, _, _ := strings.Cut(strings.Trim(tag, `"`), ".")
	return of == strconv.FormatInt(epoch, 10)
}

// runsPage is a page of a list of runs, the latest first.
type runsPage struct {
	Runs []view.ListedRun `json:"runs"`
	Next string           `json:"next,omitempty" doc:"Cursor of the next page; none: this is the last one."`
}

func (s *Server) registerRuns() {
	const w, r = "/v1/workspaces/{workspace}", "/v1/workspaces/{workspace}/runs/{run}"
	get := func(id, path, summary string) operation {
		return operation{id: id, method: http.MethodGet, path: path, summary: summary, tag: "runs", needs: access.View}
	}
	add(s, get("list-runs", w+"/runs", "List runs, the latest first."), s.listRuns)
	add(s, get("list-open-runs", w+"/open-runs", "List the runs that are not over, the one first that orders mean."), s.listOpen)
	add(s, get("show-run", r, "Show a run with its nodes."), s.showRun)
	add(s, get("list-run-workers", r+"/workers",
		"List the workers that were there for a run, with their time sheets: what their slots' time went to."),
		s.listRunWorkers)
	add(s, get("costs", w+"/costs", "Say what runs cost: worked, waited, lost and services apart."), s.costs)
	add(s, get("why", r+"/why", "Say what a run waits for, or what is slow in it."), s.why)
	add(s, get("causes", r+"/causes",
		"Say what limited a run, or limits it now: causes for each node, with the time of slots that each took."), s.causes)
	add(s, get("list-events", r+"/events", "List what has happened to a run."), s.listEvents)
	add(s, get("summary", r+"/summary", "Say how a run is, with what its nodes have done: what is told at its end."), s.summary)
	add(s, get("standing", r+"/standing", "Say whether more happens to a run by itself."), s.standing)
	add(s, get("expectation", r+"/expectation",
		"Say when a run is expected to end, from what earlier runs of its script took."), s.expectation)
	add(s, get("needs", w+"/needs", "List what needs people: gates, failures, late runs, broken schedules."), s.needs)
	add(s, get("audit-run", r+"/audit", "List what people have ordered of a run."), s.auditRun)
	add(s, get("audit", w+"/audit", "List what people have ordered in a workspace."), s.auditAll)
	add(s, get("list-checks", r+"/checks", "List what the checks of a run found."), s.listChecks)
	draw := get("draw-run", r+"/graph.svg", "Draw a run.")
	draw.media = []string{pictureType}
	add(s, draw, s.drawRun)
	add(s, get("graph", r+"/graph", "Say where the nodes, files and gates of a run are in its picture, and how they are."),
		s.graph)
	add(s, get("matrix", w+"/matrix", "Say what became of each node in the latest runs."), s.matrix)
	add(s, get("list-nodes", r+"/nodes", "List the nodes of a run with what they did."), s.listNodes)
	add(s, get("show-node", r+"/nodes/{node}", "Show a node with the batches that stand out."), s.showNode)
	add(s, get("list-batches", r+"/nodes/{node}/batches", "List the batches of a node."), s.listBatches)
	add(s, get("timeline", r+"/nodes/{node}/timeline",
		"Say when the batches of a node were worked on: one by one, or in spans if they are many."), s.timeline)
	add(s, get("samples", r+"/samples",
		"Say what the workers of a run used of processors, memory and disks: a sample every 10 s, kept for a day."), s.samples)
	add(s, get("list-attempts", r+"/nodes/{node}/attempts", "List the tries at the batches of a node, by batch."),
		s.listAttempts)
	add(s, get("show-batch", r+"/nodes/{node}/batches/{batch}", "Show a batch with the tries at it."), s.showBatch)
}

// SelectRuns says which runs of a workspace are meant.
type SelectRuns struct {
	OfWorkspace
	Cursor  string    `query:"cursor" pattern:"^[1-9][0-9]{0,17}$" doc:"Next of the page before."`
	Dropped bool      `query:"dropped" doc:"Also those that were dropped."`
	Status  string    `query:"status" maxLength:"24" doc:"Only those of this status."`
	Script  string    `query:"script" maxLength:"1024" doc:"Only those of scripts whose path contains this text."`
	Text    string    `query:"text" maxLength:"256" doc:"Only those whose description contains this text, in letters of either case."`
	Since   time.Time `query:"since" doc:"Only those that began then or later."`
	Until   time.Time `query:"until" doc:"Only those that began before then."`
}

// runStatuses are those that lists of runs have.
var runStatuses = []string{"running", "waiting", "paused", "interrupted", "complete", "failed", "stopped", "invalidated",
	"dropped"}

// checkStatus refuses a status that no run has. "": none is asked for.
func checkStatus(status string) error {
	if status == "" || slices.Contains(runStatuses, status) {
		return nil
	}
	return fault.New(fault.Script, "no run has the status %q", status).Suggest(status, runStatuses)
}

// page returns the selection as the services know it.
func (in SelectRuns) page(limit int) (app.RunsPage, error) {
	before, err := cursorNumber(in.Cursor)
	if err == nil {
		err = checkStatus(in.Status)
	}
	return app.RunsPage{From: before, Limit: limit, Dropped: in.Dropped, Status: in.Status, Script: in.Script,
		Text: in.Text, Since: in.Since, Until: in.Until}, err
}

type listRunsIn struct {
	SelectRuns
	Limit  int  `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Runs of a page."`
	Priced bool `query:"priced" doc:"With what they cost in money, where it is known."`
}

func (s *Server) listRuns(ctx context.Context, by asker, in *listRunsIn) (*reply[runsPage], error) {
	page, err := in.page(in.Limit)
	if err != nil {
		return nil, err
	}
	page.Priced = in.Priced
	found, next, err := s.runs(by).Page(ctx, in.Workspace, page)
	if err != nil {
		return nil, err
	}
	out := runsPage{Runs: found}
	if next > 0 {
		out.Next = strconv.FormatInt(next, 10)
	}
	return body(out, nil)
}

func (s *Server) listOpen(ctx context.Context, by asker, in *OfWorkspace) (*reply[[]view.ListedRun], error) {
	return body(s.runs(by).ListOpen(ctx, in.Workspace))
}

// cursorNumber reads a cursor; 0: none.
func cursorNumber(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, &fault.Error{Kind: fault.Script, Message: "the cursor is none that this server has given",
			Hint: "begin without a cursor"}
	}
	return n, nil
}

type showRunIn struct {
	OfRun
	IfNoneMatch string `header:"If-None-Match" maxLength:"4096" doc:"ETag of the run, or several: 304 if it is as it was, but for the times of what is under way."`
}

// shownRun is a run, or nothing where it is as it was.
type shownRun struct {
	Status int
	ETag   string `header:"ETag"`
	Body   *view.RunDetail
}

func (s *Server) showRun(ctx context.Context, by asker, in *showRunIn) (*shownRun, error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	version, err := s.runs(by).Version(ctx, run)
	if err != nil {
		return nil, err
	}
	tag := versionTag(run.Epoch, version)
	if matchesNone(in.IfNoneMatch, tag) {
		return &shownRun{Status: http.StatusNotModified, ETag: tag}, nil
	}
	d, err := s.runs(by).Show(ctx, run.RunKey)
	return &shownRun{Status: http.StatusOK, ETag: tag, Body: &d}, err
}

func (s *Server) listRunWorkers(ctx context.Context, by asker, in *OfRun) (*reply[view.RunWorkers], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Workers(ctx, run.RunKey))
}

type costsIn struct {
	OfWorkspace
	By    string    `query:"by" enum:"run,node,script,day,workspace" default:"run" doc:"What costs are put together by."`
	Since time.Time `query:"since" doc:"Only runs that began then or later."`
	Runs  []int64   `query:"run,explode" maxItems:"1000" doc:"Only runs of these numbers."`
}

func (s *Server) costs(ctx context.Context, by asker, in *costsIn) (*reply[view.Costs], error) {
	return body(s.runs(by).Costs(ctx, in.Workspace, app.CostOptions{By: in.By, Since: in.Since, Runs: in.Runs}))
}

func (s *Server) why(ctx context.Context, by asker, in *OfRun) (*reply[view.Why], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	out, err := s.runs(by).Why(ctx, run)
	if err == nil { // the answers are texts
		s.noteFailures(ctx, by, operation{id: "why"}, run)
	}
	return body(out, err)
}

func (s *Server) causes(ctx context.Context, by asker, in *OfRun) (*reply[view.Causes], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.app.Fleet.Causes(ctx, run.RunKey, by.may(access.Read)))
}

type listEventsIn struct {
	OfRun
	After int64    `query:"after" minimum:"0" doc:"Only events behind the one of this number."`
	Limit int      `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"Events of a page."`
	Kind  []string `query:"kind" maxItems:"9" enum:"run_created,run_completed,order_begun,order_ended,node_planned,node_moved,node_heard,batch_claimed,batch_ended" doc:"Only these kinds."`
	Not   []string `query:"not" maxItems:"9" enum:"run_created,run_completed,order_begun,order_ended,node_planned,node_moved,node_heard,batch_claimed,batch_ended" doc:"None of these kinds."`
	Node  string   `query:"node" maxLength:"1000" doc:"Only events of this node."`
	Text  string   `query:"text" maxLength:"1000" doc:"Only events that say this, in whatever case; values of the data are found by those who may read them."`
	Least string   `query:"least" enum:"noise,usual,concern" default:"noise" doc:"Only events of this importance or more. usual: no claims and acknowledgements. concern: no batches that have ended well, either."`
}

// eventsPage is a page of a run's events.
type eventsPage struct {
	Events []view.EventLine `json:"events"`
	More   bool             `json:"more" doc:"There are more behind them now, or may be: a page of few, or none, ends where the server has looked at 20,000 events."`
	Next   int64            `json:"next" doc:"The after of the next page."`
}

func (s *Server) listEvents(ctx context.Context, by asker, in *listEventsIn) (*reply[eventsPage], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	page, err := s.runs(by).EventsPage(ctx, key, in.After, in.Limit, view.EventChoice{Kinds: in.Kind,
		Not: in.Not, Node: in.Node, Text: in.Text, Least: view.Importance(in.Least)})
	return body(eventsPage{append([]view.EventLine{}, page.Events...), page.More, page.Next}, err)
}

type summaryIn struct {
	OfRun
	AsLeft bool `query:"as_left" doc:"Nodes as the run has left them: none is running when it is over."`
}

func (s *Server) summary(ctx context.Context, by asker, in *summaryIn) (*reply[view.RunSummary], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	var sum app.Summary
	if in.AsLeft {
		sum, err = s.runs(by).Nodes(ctx, run)
	} else {
		sum, err = s.runs(by).Summary(ctx, run.RunKey)
	}
	return body(app.SummaryView(sum), err)
}

type standingIn struct {
	OfRun
	Stay bool `query:"stay" doc:"A run that waits for people or is paused is not over."`
}

func (s *Server) standing(ctx context.Context, by asker, in *standingIn) (*reply[view.Standing], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Standing(ctx, key, in.Stay))
}

func (s *Server) expectation(ctx context.Context, by asker, in *OfRun) (*reply[view.Expectation], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Expect(ctx, run))
}

func (s *Server) auditRun(ctx context.Context, by asker, in *OfRun) (*reply[[]view.AuditEntry], error) {
	key, err := s.key(ctx, *in)
	if err != nil {
		return nil, err
	}
	return body(s.runs(by).Audit(ctx, key))
}

type auditAllIn struct {
	OfWorkspace
	Limit int `query:"limit" minimum:"1" maximum:"10000" default:"100" doc:"Entries at least, if there are as many."`
}

func (s *Server) auditAll(ctx context.Context, by asker, in *auditAllIn) (*reply[[]view.AuditEntry], error) {
	return body(s.runs(by).AuditAll(ctx, in.Workspace, in.Limit))
}

type listChecksIn struct {
	OfRun
	Node string `query:"node" maxLength:"256" doc:"Only those of this node."`
}

func (s *Server) listChecks(ctx context.Context, by asker, in *listChecksIn) (*reply[[]view.Check], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	checks, err := s.runs(by).Checks(ctx, key, in.Node)
	return body(checks, err)
}

func (s *Server) listNodes(ctx context.Context, by asker, in *OfRun) (*reply[[]view.FinishedNode], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	sum, err := s.runs(by).Nodes(ctx, run)
	if err != nil {
		return nil, err
	}
	return body(app.Finished(sum).Nodes, nil)
}

func (s *Server) showNode(ctx context.Context, by asker, in *OfNode) (*reply[view.NodeDetail], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	d, err := s.runs(by).ShowNode(ctx, key, in.Node)
	return body(d, err)
}

type OfBatch struct {
	OfNode
	Batch int `path:"batch" minimum:"0" doc:"Number of the batch."`
}

func (s *Server) showBatch(ctx context.Context, by asker, in *OfBatch) (*reply[view.BatchDetail], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	d, err := s.runs(by).ShowBatch(ctx, key, in.Node, in.Batch)
	return body(d, err)
}
