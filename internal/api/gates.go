package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func (s *Server) registerGates() {
	const w = "/v1/workspaces/{workspace}"
	add(s, operation{id: "list-gates", method: http.MethodGet, path: w + "/gates", tag: "gates",
		summary: "List what waits for a decision.", needs: access.View}, s.listGates)
	add(s, operation{id: "gate-since", method: http.MethodGet, path: w + "/runs/{run}/gates/{gate}/since", tag: "gates",
		summary: "Say what of the tables of a gate has changed since it was last approved in a run of the script.",
		needs:   access.Read}, s.gateSince)
	add(s, operation{id: "decide", method: http.MethodPost, path: w + "/runs/{run}/gates/{gate}/decision", tag: "gates",
		summary: "Approve or reject what a gate shows.", needs: access.Decide}, s.decide)
}

// waitingGate is a gate that waits for a decision.
type waitingGate struct {
	Workspace string          `json:"workspace"`
	Run       int64           `json:"run"`
	Script    string          `json:"script"`
	Note      string          `json:"note,omitempty" doc:"That the run was begun with."`
	BegunBy   string          `json:"begun_by"`
	Begun     time.Time       `json:"begun"`
	Gate      string          `json:"gate"`
	Over      bool            `json:"over,omitempty" doc:"Its time is: it is rejected when somebody next looks at the run."`
	Record    view.GateRecord `json:"asks"`
	May       bool            `json:"may" doc:"You may decide."`
}

func (s *Server) listGates(ctx context.Context, by asker, in *OfWorkspace) (*reply[[]waitingGate], error) {
	waiting, err := s.app.Orders.Approvals(ctx, in.Workspace)
	if err != nil {
		return nil, err
	}
	caller, decides := by.caller(), by.may(access.Decide)
	out := []waitingGate{}
	for _, g := range waiting {
		_, may := caller.RoleOf(g.Record.By)
		record := g.Record
		if !by.may(access.Read) {
			record = record.WithoutValues()
		}
		out = append(out, waitingGate{Workspace: in.Workspace, Run: g.Run, Script: g.Of.ScriptPath, Note: g.Of.Description,
			BegunBy: g.Of.Actor, Begun: g.Of.Created,
			Gate: record.Gate, Over: record.Over(time.Now()), Record: record,
			May: may && decides && record.Refuses(caller.Actor, caller.Verified, g.Of.Actor) == nil})
	}
	return body(out, nil)
}

type decideIn struct {
	OfRun
	Gate string `path:"gate" maxLength:"256" doc:"Name of the gate."`
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"A decision that is repeated with it is made once."`
	Body struct {
		Approve bool              `json:"approve" doc:"false: it is rejected."`
		Digest  string            `json:"digest" minLength:"6" maxLength:"128" doc:"Of what you have seen; its first digits do."`
		Comment string            `json:"comment,omitempty" maxLength:"4000"`
		Answers map[string]string `json:"answers,omitempty" doc:"To what the gate asks."`
	}
}

func (s *Server) decide(ctx context.Context, by asker, in *decideIn) (*reply[view.Decided], error) {
	key, err := s.key(ctx, in.OfRun)
	if err != nil {
		return nil, err
	}
	if in.Body.Digest == "" {
		return nil, &fault.Error{Kind: fault.Script, Message: "a decision names the digest of what was seen"}
	}
	caller := by.caller()
	caller.Request = requestToken(by, in.Key, key, in.Gate, in.Body)
	d, err := s.app.Orders.Decide(ctx, caller, app.DecisionRequest{Run: key, Gate: in.Gate, Approve: in.Body.Approve,
		Comment: in.Body.Comment, Digest: in.Body.Digest, Answers: in.Body.Answers})
	if err != nil {
		return nil, err
	}
	role, _ := caller.RoleOf(d.Record.By)
	return body(view.Decided{Workspace: key.Workspace, Run: key.Run, Gate: in.Gate, Approved: in.Body.Approve, Role: role,
		Comment: in.Body.Comment, Answers: d.Answers, Digest: d.Record.Digest, Shows: d.Record.Shows, AtWork: d.AtWork}, nil)
}

type gateSinceIn struct {
	OfRun
	Gate string `path:"gate" maxLength:"256" doc:"Name of the gate."`
}

func (s *Server) gateSince(ctx context.Context, by asker, in *gateSinceIn) (*reply[view.GateSince], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	since, err := s.app.Peek.Since(ctx, by.caller(), run, in.Gate)
	s.note(ctx, by, access.RowsSeen, fmt.Sprintf("tables of gate %s of run %d", in.Gate, run.Run), err)
	return body(since, err)
}
