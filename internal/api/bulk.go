package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// bulkRunsMax limits the runs of an order to many. More are refused, not cut: nobody sees which would be left out.
const bulkRunsMax = 1_000

func (s *Server) registerBulk() {
	add(s, operation{id: "give-orders", method: http.MethodPost, path: "/v1/workspaces/{workspace}/orders:bulk",
		tag: "orders", needs: access.Operate,
		summary: "Stop, pause, resume, retry or drop many runs: those that are named, or that a filter selects."},
		s.giveOrders)
}

// bulkDrop is the kind of an order that is an admin's.
const bulkDrop = "drop"

type bulkIn struct {
	OfWorkspace
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"Orders that are repeated with it are given once."`
	Body struct {
		Kind   string  `json:"kind" enum:"stop,pause,resume,retry,drop"`
		Runs   []int64 `json:"runs,omitempty" maxItems:"1000" doc:"These, or those of filter."`
		Filter *struct {
			Status string `json:"status,omitempty" maxLength:"24"`
			Script string `json:"script,omitempty" maxLength:"1024" doc:"A part of the script's path."`
		} `json:"filter,omitempty"`
		Reason string `json:"reason,omitempty" maxLength:"4000"`
		DryRun bool   `json:"dry_run,omitempty" doc:"Only say which runs are meant."`
		Token  string `json:"token,omitempty" maxLength:"128" doc:"Of the dry run. With a filter it is needed: what has changed since is refused."`
	}
}

// bulkDone says what has become of the order to each run.
type bulkDone struct {
	DryRun bool      `json:"dry_run"`
	Token  string    `json:"token" doc:"Of the runs that are meant, as they are."`
	Runs   []bulkRun `json:"runs"`
}

// bulkRun is a run that an order to many was for.
type bulkRun struct {
	Run     int64    `json:"run"`
	Status  string   `json:"status" doc:"Before."`
	Script  string   `json:"script"`
	Done    bool     `json:"done"`
	Problem *Problem `json:"problem,omitempty" doc:"Why it was not done."`
}

func (s *Server) giveOrders(ctx context.Context, by asker, in *bulkIn) (*reply[bulkDone], error) {
	b := in.Body
	if b.Kind == bulkDrop && !by.may(access.Admin) {
		return nil, errNotMay
	}
	if (len(b.Runs) == 0) == (b.Filter == nil) {
		return nil, &fault.Error{Kind: fault.Script, Message: "an order to many runs has runs, or a filter"}
	}
	if b.Filter != nil && b.Token == "" && !b.DryRun {
		return nil, &fault.Error{Kind: fault.Script, Message: "an order with a filter needs the token of its dry run",
			Hint: "ask with dry_run first, and look at the runs"}
	}
	runs, token, err := s.meant(ctx, by, in)
	if err != nil {
		return nil, err
	}
	out := bulkDone{DryRun: b.DryRun, Token: token, Runs: runs}
	if b.DryRun {
		return body(out, nil)
	}
	if b.Token != "" && b.Token != token {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nothing was done: other runs are meant, or some have changed, since they were shown",
			Hint:    "ask with dry_run again"}
	}
	for i := range out.Runs {
		if err := s.giveOne(ctx, by, in, out.Runs[i].Run); err != nil {
			out.Runs[i].Problem = s.failed(ctx, operation{id: "give-orders"}, err)
		} else {
			out.Runs[i].Done = true
		}
	}
	return body(out, nil)
}

// meant lists the runs that an order is for, and a token of how they are.
func (s *Server) meant(ctx context.Context, by asker, in *bulkIn) ([]bulkRun, string, error) {
	var runs []view.ListedRun
	for _, n := range in.Body.Runs {
		run, err := s.app.Runs.Listed(ctx, view.RunKey{Workspace: in.Workspace, Run: n})
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, run)
	}
	if f := in.Body.Filter; f != nil {
		for from := int64(0); ; {
			page, next, err := s.runs(by).Page(ctx, in.Workspace,
				app.RunsPage{From: from, Limit: runsPageMax, Status: f.Status, Script: f.Script})
			if err != nil {
				return nil, "", err
			}
			if runs = append(runs, page...); len(runs) > bulkRunsMax {
				return nil, "", &fault.Error{Kind: fault.Script,
					Message: fmt.Sprintf("more than %d runs are meant", bulkRunsMax), Hint: "select fewer"}
			}
			if from = next; from == 0 {
				break
			}
		}
	}
	sum := sha256.New()
	out := make([]bulkRun, len(runs))
	for i, r := range runs {
		out[i] = bulkRun{Run: r.Run, Status: r.Status, Script: r.Script}
		fmt.Fprintln(sum, in.Body.Kind, r.Run, r.Status)
	}
	return out, hex.EncodeToString(sum.Sum(nil)), nil
}

// giveOne gives the order to one of the runs.
func (s *Server) giveOne(ctx context.Context, by asker, in *bulkIn, run int64) error {
	key := view.RunKey{Workspace: in.Workspace, Run: run}
	caller := by.caller()
	if caller.Request = requestToken(by, in.Key, key, in.Body); caller.Request != "" {
		if done, err := s.app.Orders.Given(ctx, key, caller.Request); err != nil || done {
			return err
		}
	}
	if in.Body.Kind == bulkDrop {
		_, err := s.app.Orders.Drop(ctx, caller, []view.RunKey{key}, in.Body.Reason, "")
		return err
	}
	found, err := s.app.Runs.Find(ctx, in.Workspace, strconv.FormatInt(run, 10))
	if err != nil {
		return err
	}
	_, err = s.carryOut(ctx, caller, found.RunKey, order{Kind: in.Body.Kind, Reason: in.Body.Reason})
	return err
}
