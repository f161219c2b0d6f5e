package api

import (
	"context"
	"net/http"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func (s *Server) registerFleet() {
	const w = "/v1/workspaces/{workspace}"
	get := func(id, path, summary string, needs access.Permission) operation {
		return operation{id: id, method: http.MethodGet, path: path, summary: summary, tag: "fleet", needs: needs}
	}
	add(s, get("list-schedules", w+"/schedules", "List schedules and watches: when they were and will be.",
		access.View), s.listSchedules)
	add(s, operation{id: "order-schedule", method: http.MethodPost, path: w + "/schedules/{schedule}/orders", tag: "fleet",
		summary: "Pause a schedule or watch, or let it go on, or say what that would do.", needs: access.Admin}, s.orderSchedule)
	add(s, get("list-matrices", w+"/matrices", "List what was run over values of parameters.", access.View),
		s.listMatrices)
	add(s, get("show-matrix", w+"/matrices/{matrix}", "List the cells of a matrix.", access.View), s.showMatrix)
	fleet := get("fleet", "/v1/fleet", "List the workers of a cluster, and the runs that are not over.", access.Admin)
	fleet.missing = true // of a directory
	add(s, fleet, s.fleet)
	add(s, operation{id: "doctor", method: http.MethodPost, path: "/v1/diagnoses", tag: "fleet", needs: access.Admin,
		summary: "Look at the server's machine, and at the state or the services of the cluster: a job.",
		status:  http.StatusAccepted}, s.doctor)
}

func (s *Server) listSchedules(ctx context.Context, by asker, in *OfWorkspace) (*reply[[]view.Schedule], error) {
	all, err := s.app.Fleet.Schedules(ctx, in.Workspace)
	if !by.may(access.Read) {
		for i := range all {
			all[i].Standing = all[i].WithoutValues()
		}
	}
	return body(all, err)
}

type orderScheduleIn struct {
	OfWorkspace
	Schedule string `path:"schedule" maxLength:"64" doc:"ID of the schedule or watch."`
	Body     struct {
		Kind   string `json:"kind" enum:"pause,resume"`
		Reason string `json:"reason,omitempty" maxLength:"4000" doc:"Why: it is shown while it is paused."`
		DryRun bool   `json:"dry_run,omitempty" doc:"Only say what would be done."`
	}
}

func (s *Server) orderSchedule(ctx context.Context, by asker, in *orderScheduleIn) (*reply[view.ScheduleOrdered], error) {
	out, err := s.app.OrderSchedule(ctx, by.caller(), in.Workspace, app.ScheduleOrder{ID: in.Schedule,
		Pause: in.Body.Kind == orderPause, Reason: in.Body.Reason, DryRun: in.Body.DryRun})
	if !by.may(access.Read) {
		out.Schedule.Standing = out.Schedule.WithoutValues()
	}
	return body(out, err)
}

func (s *Server) listMatrices(ctx context.Context, _ asker, in *OfWorkspace) (*reply[[]view.Matrix], error) {
	return body(s.app.Matrices(ctx, in.Workspace))
}

type showMatrixIn struct {
	OfWorkspace
	Matrix string `path:"matrix" maxLength:"256" doc:"Name of the matrix."`
}

func (s *Server) showMatrix(ctx context.Context, by asker, in *showMatrixIn) (*reply[[]view.Cell], error) {
	cells, err := s.app.MatrixCells(ctx, in.Workspace, in.Matrix)
	for i := range cells {
		if !by.may(access.Read) {
			cells[i].Failure = app.FailureWithoutValues(cells[i].Failure)
		}
	}
	return body(cells, err)
}

func (s *Server) fleet(ctx context.Context, _ asker, _ *none) (*reply[view.ClusterStatus], error) {
	if s.app.Cluster() == nil {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: "this server is over a state directory, which has no fleet"}
	}
	out, _, err := s.app.Fleet.Status(ctx)
	return body(out, err)
}

func (s *Server) doctor(_ context.Context, by asker, _ *none) (*reply[Job], error) {
	return s.job(by, operation{id: "doctor"}, func(ctx context.Context) (any, error) {
		return s.app.Examine(ctx, by.caller())
	})
}
