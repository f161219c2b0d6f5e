package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// bulkRunsMax limits the runs of an order to many. More are refused, not cut: nobody sees which would be left out.
const bulkRunsMax = 1_000

// bulkPreviewsMax limits the runs of which one dry run says what it would do: who wants to know of more asks again,
// and names them.
const bulkPreviewsMax = 50

func (s *Server) registerBulk() {
	add(s, operation{id: "give-orders", method: http.MethodPost, path: "/v1/workspaces/{workspace}/orders:bulk",
		tag: "orders", needs: access.Operate,
		summary: "Stop, pause, resume, retry, invalidate or drop many runs: those that are named, or that a filter selects."},
		s.giveOrders)
}

type bulkIn struct {
	OfWorkspace
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"Orders that are repeated with it are given once."`
	Body bulkOrder
}

// bulkOrder is an order to many runs.
type bulkOrder struct {
	Kind   string      `json:"kind" enum:"stop,pause,resume,retry,invalidate,drop"`
	Runs   []int64     `json:"runs,omitempty" maxItems:"1000" doc:"These, or those of filter."`
	Filter *bulkFilter `json:"filter,omitempty"`
	Reason string      `json:"reason,omitempty" maxLength:"4000" doc:"Why; an invalidation and a drop need one."`
	DryRun bool        `json:"dry_run,omitempty" doc:"Only say which runs are meant, and of the first 50 what would be done."`
	Token  string      `json:"token,omitempty" maxLength:"128" doc:"Of the dry run. With a filter it is needed: what has changed since is refused."`
	// Tokens bind the order to each run to what was shown of it.
	Tokens map[string]string `json:"tokens,omitempty" maxProperties:"1000" doc:"Of would in the dry run, by numbers of runs: do what that said to the run, or nothing."`
}

// bulkFilter selects runs, as the parameters of list-runs do.
type bulkFilter struct {
	Status string    `json:"status,omitempty" maxLength:"24"`
	Script string    `json:"script,omitempty" maxLength:"1024" doc:"A part of the script's path."`
	Text   string    `json:"text,omitempty" maxLength:"256" doc:"A part of the description, in letters of either case."`
	Since  time.Time `json:"since,omitzero" required:"false" doc:"Only those that began then or later."`
	Until  time.Time `json:"until,omitzero" required:"false" doc:"Only those that began before then."`
}

// bulkDone says what has become of the order to each run.
type bulkDone struct {
	DryRun      bool      `json:"dry_run"`
	NeedsReason bool      `json:"needs_reason,omitempty" doc:"Of a dry run: the order is refused without a reason."`
	Token       string    `json:"token" doc:"Of the runs that are meant, as they are."`
	Runs        []bulkRun `json:"runs"`
}

// bulkRun is a run that an order to many was for.
type bulkRun struct {
	Run     int64     `json:"run"`
	Status  string    `json:"status" doc:"Before."`
	Script  string    `json:"script"`
	Created time.Time `json:"created"`
	Done    bool      `json:"done"`
	GoesOn  int64     `json:"goes_on,omitempty" doc:"Of a resume or retry: the run that goes on, which is another one if something has changed."`
	Would   *ordered  `json:"would,omitempty" doc:"Of a dry run."`
	Problem *Problem  `json:"problem,omitempty" doc:"Why it was not done, or would not be."`
}

func (s *Server) giveOrders(ctx context.Context, by asker, in *bulkIn) (*reply[bulkDone], error) {
	b := in.Body
	if b.Kind == orderDrop && !by.may(access.Admin) {
		return nil, errNotMay
	}
	if (len(b.Runs) == 0) == (b.Filter == nil) {
		return nil, &fault.Error{Kind: fault.Script, Message: "an order to many runs has runs, or a filter"}
	}
	reason := needsReason(b.Kind, b.Reason)
	if reason != nil && !b.DryRun {
		return nil, reason
	}
	if b.Filter != nil && b.Token == "" && !b.DryRun {
		return nil, &fault.Error{Kind: fault.Script, Message: "an order with a filter needs the token of its dry run",
			Hint: "ask with dry_run first, and look at the runs"}
	}
	runs, token, err := s.meant(ctx, by, in)
	if err != nil {
		return nil, err
	}
	out := bulkDone{DryRun: b.DryRun, NeedsReason: reason != nil, Token: token, Runs: runs}
	if b.DryRun {
		for i := range out.Runs[:min(len(out.Runs), bulkPreviewsMax)] {
			s.previewOne(ctx, by, in, &out.Runs[i])
		}
		return body(out, context.Cause(ctx))
	}
	if b.Token != "" && b.Token != token {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nothing was done: other runs are meant, or some have changed, since they were shown",
			Hint:    "ask with dry_run again"}
	}
	s.confirm(ctx, by, in, out.Runs)
	for i := range out.Runs {
		run := &out.Runs[i]
		if run.Problem != nil {
			continue
		}
		if run.GoesOn, err = s.giveOne(ctx, by, in, run.Run); err != nil {
			run.Problem = s.failed(ctx, operation{id: "give-orders"}, err)
		} else {
			run.Done = true
		}
	}
	return body(out, nil)
}

// needsReason refuses an order without a reason that no run would take. A dry run is shown before people are asked why:
// it says so.
func needsReason(kind, reason string) error {
	switch kind {
	case orderDrop:
		return app.DropReason(reason)
	case orderInvalidate:
		return app.InvalidationReason(reason)
	}
	return nil
}

// meant lists the runs that an order is for, and a token of how they are.
func (s *Server) meant(ctx context.Context, by asker, in *bulkIn) ([]bulkRun, string, error) {
	var runs []view.ListedRun
	for i, n := range in.Body.Runs {
		if slices.Contains(in.Body.Runs[:i], n) {
			continue
		}
		found, err := s.app.Runs.Find(ctx, in.Workspace, strconv.FormatInt(n, 10))
		if err != nil {
			return nil, "", err
		}
		run, err := s.app.Runs.Listed(ctx, found.RunKey)
		if err != nil {
			return nil, "", err
		}
		runs = append(runs, run)
	}
	if f := in.Body.Filter; f != nil {
		if err := checkStatus(f.Status); err != nil {
			return nil, "", err
		}
		for from := int64(0); ; {
			page, next, err := s.runs(by).Page(ctx, in.Workspace,
				app.RunsPage{From: from, Limit: runsPageMax, Status: f.Status, Script: f.Script,
					Text: f.Text, Since: f.Since, Until: f.Until})
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
		out[i] = bulkRun{Run: r.Run, Status: r.Status, Script: r.Script, Created: r.Created}
		fmt.Fprintln(sum, in.Body.Kind, r.Run, r.Status)
	}
	return out, hex.EncodeToString(sum.Sum(nil)), nil
}

// previewOne says what the order would do to one of the runs.
func (s *Server) previewOne(ctx context.Context, by asker, in *bulkIn, run *bulkRun) {
	key := view.RunKey{Workspace: in.Workspace, Run: run.Run}
	said, err := s.carryOut(ctx, by.caller(), key, order{Kind: in.Body.Kind, DryRun: true})
	said.DryRun = true
	if err != nil {
		run.Problem = s.failed(ctx, operation{id: "give-orders"}, err)
		return
	}
	run.Would = &said
}

// confirm refuses the order to runs of which it would not do any more what was shown. All are looked at before one
// has the order: what is done to one may change what is said of the others, which was shown with it.
func (s *Server) confirm(ctx context.Context, by asker, in *bulkIn, runs []bulkRun) {
	for i := range runs {
		token := in.Body.Tokens[strconv.FormatInt(runs[i].Run, 10)]
		if token == "" || s.hadOrder(ctx, by, in, runs[i].Run) {
			continue
		}
		now := runs[i]
		s.previewOne(ctx, by, in, &now)
		switch {
		case now.Problem != nil:
			runs[i].Problem = now.Problem
		case now.Would.Token != token:
			runs[i].Problem = s.failed(ctx, operation{id: "give-orders"}, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
				Message: "nothing was done: what it would do has changed since it was shown",
				Hint:    "look at it again, and order it again"})
		}
	}
}

// hadOrder reports whether a run has had this order: it is repeated.
func (s *Server) hadOrder(ctx context.Context, by asker, in *bulkIn, run int64) bool {
	key := view.RunKey{Workspace: in.Workspace, Run: run}
	request := requestToken(by, in.Key, key, in.Body)
	if request == "" {
		return false
	}
	done, err := s.app.Orders.Given(ctx, key, request)
	return err == nil && done
}

// giveOne gives the order to one of the runs, and returns the run that goes on; 0: none does by this order.
func (s *Server) giveOne(ctx context.Context, by asker, in *bulkIn, run int64) (int64, error) {
	key := view.RunKey{Workspace: in.Workspace, Run: run}
	caller := by.caller()
	if caller.Request = requestToken(by, in.Key, key, in.Body); caller.Request != "" {
		if done, err := s.app.Orders.Given(ctx, key, caller.Request); err != nil || done {
			return 0, err
		}
	}
	found, err := s.app.Runs.Find(ctx, in.Workspace, strconv.FormatInt(run, 10))
	if err != nil {
		return 0, err
	}
	said, err := s.carryOut(ctx, caller, found.RunKey, order{Kind: in.Body.Kind, Reason: in.Body.Reason})
	if err != nil || said.Submitted == nil {
		return 0, err
	}
	return said.Submitted.Run, nil
}
