package api

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

func (s *Server) registerOrders() {
	const w = "/v1/workspaces/{workspace}"
	add(s, operation{id: "give-order", method: http.MethodPost, path: w + "/runs/{run}/orders", tag: "orders",
		summary: "Stop, pause, resume, retry, invalidate or drop a run, or say what that would do. Admins drop.",
		needs:   access.Operate}, s.giveOrder)
	add(s, operation{id: "take", method: http.MethodPost, path: w + "/runs/{run}/take", tag: "orders",
		summary: "Say that you look after the failure of a run, until it goes on.", needs: access.Operate}, s.take)
	add(s, operation{id: "drop-runs", method: http.MethodPost, path: w + "/drops", tag: "orders",
		summary: "Drop runs, or say what that would mean.", needs: access.Admin}, s.dropRuns)
	add(s, operation{id: "collect", method: http.MethodPost, path: w + "/collections", tag: "orders",
		summary: "Remove what nobody needs any more, or say what that is.", needs: access.Admin}, s.collect)
}

// Kinds of orders.
const (
	orderStop       = "stop"
	orderPause      = "pause"
	orderResume     = "resume"
	orderRetry      = "retry"
	orderInvalidate = "invalidate"
	orderDrop       = "drop" // an admin's
)

// order is what a request orders of a run.
type order struct {
	Kind   string   `json:"kind" enum:"stop,pause,resume,retry,invalidate,drop"`
	Reason string   `json:"reason,omitempty" maxLength:"4000" doc:"Why; an invalidation and a drop need one."`
	Nodes  []string `json:"nodes,omitempty" maxItems:"1000" doc:"Of a retry or an invalidation: only these."`
	// Batches of a retry.
	Batches []orderBatches `json:"batches,omitempty" maxItems:"1000" doc:"Of a retry: only these batches."`
	// Like names a batch that has failed.
	Like *orderLike `json:"like,omitempty" doc:"Of a retry: all batches of the run that have failed for the reason that this one has."`
	// What a run may take that is resumed or retried.
	AskedLimit
	DryRun bool   `json:"dry_run,omitempty" doc:"Only say what would be done."`
	Token  string `json:"token,omitempty" maxLength:"128" doc:"Of a dry run: do what that said, or nothing."`
}

// AskedLimit says what a run may take.
type AskedLimit struct {
	MaxElapsed string `json:"max_elapsed,omitempty" minLength:"1" maxLength:"32" doc:"The run pauses when it has taken so long: 2h, 90m; none: no limit."`
	MaxCost    string `json:"max_cost,omitempty" minLength:"1" maxLength:"32" doc:"The run pauses when it has cost so much, in US dollars: 12.50; none: no limit."`
}

func (l AskedLimit) ask() app.LimitAsk { return app.LimitAsk{Elapsed: l.MaxElapsed, Cost: l.MaxCost} }

// orderBatches names batches of a node.
type orderBatches struct {
	Node string `json:"node" maxLength:"256"`
	From int    `json:"from" minimum:"0"`
	To   int    `json:"to" minimum:"0" doc:"The last one."`
}

// orderLike names a batch.
type orderLike struct {
	Node  string `json:"node" maxLength:"256"`
	Batch int    `json:"batch" minimum:"0"`
}

// ordered says what an order has done, or would do. One member is there, that of its kind.
type ordered struct {
	DryRun      bool               `json:"dry_run"`
	NeedsReason bool               `json:"needs_reason,omitempty" doc:"Of a dry run: the order is refused without a reason."`
	Token       string             `json:"token,omitempty" doc:"Of what a dry run has said."`
	Stopped     *view.Stopped      `json:"stopped,omitempty"`
	Paused      *view.Paused       `json:"paused,omitempty"`
	Alike       []orderBatches     `json:"alike,omitempty" doc:"Of a retry with like: the batches that are meant."`
	Planned     *view.RetryPlanned `json:"planned,omitempty" doc:"Of resume and retry."`
	Submitted   *view.RunSubmitted `json:"submitted,omitempty" doc:"Of resume and retry: the run that goes on."`
	Invalidated *view.Invalidated  `json:"invalidated,omitempty"`
	Dropped     *view.Dropped      `json:"dropped,omitempty"`
	Would       *view.Outlook      `json:"would,omitempty" doc:"Of a dry run of stop, pause or resume."`
}

type orderIn struct {
	OfRun
	IfMatch string `header:"If-Match" maxLength:"4096" doc:"ETag of the run, or several: nothing is done if it has had an order since."`
	Key     string `header:"Idempotency-Key" maxLength:"128" doc:"An order that is repeated with it is done once."`
	Body    order
}

func (s *Server) giveOrder(ctx context.Context, by asker, in *orderIn) (*reply[ordered], error) {
	if in.Body.Kind == orderDrop && !by.may(access.Admin) {
		return nil, errNotMay
	}
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	caller := by.caller()
	if caller.Request = requestToken(by, in.Key, run.RunKey, in.Body); caller.Request != "" {
		done, err := s.app.Orders.Given(ctx, run.RunKey, caller.Request)
		if err != nil || done {
			var said ordered
			if k := in.Body.Kind; k == orderResume || k == orderRetry {
				said = submitted(run.RunKey)
			}
			return &reply[ordered]{ETag: epochTag(run.Epoch), Body: said}, err
		}
	}
	if in.IfMatch != "" && !matches(in.IfMatch, func(tag string) bool { return isEpoch(tag, run.Epoch) }) {
		return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nothing was done: the run has had an order since it was looked at",
			Hint:    "look at it again, and order it again"}
	}
	out, err := s.carryOut(ctx, caller, run.RunKey, in.Body)
	if err != nil {
		return nil, err
	}
	out.DryRun = in.Body.DryRun
	out.NeedsReason = out.DryRun && needsReason(in.Body.Kind, in.Body.Reason) != nil
	if run, err = s.app.Runs.Find(ctx, in.Workspace, strconv.FormatInt(run.Run, 10)); err != nil {
		return nil, err
	}
	return &reply[ordered]{ETag: epochTag(run.Epoch), Body: out}, nil
}

// carryOut does what is ordered of a run, or says what it would do.
func (s *Server) carryOut(ctx context.Context, by app.Caller, key view.RunKey, o order) (out ordered, err error) {
	switch o.Kind {
	case orderStop:
		if o.DryRun {
			return s.previewOrder(ctx, key, o.Kind)
		}
		said, err := s.app.Orders.Stop(ctx, by, key, o.Reason)
		return ordered{Stopped: &said}, err
	case orderPause:
		if o.DryRun {
			return s.previewOrder(ctx, key, o.Kind)
		}
		said, err := s.app.Orders.Pause(ctx, by, key, o.Reason)
		return ordered{Paused: &said}, err
	case orderInvalidate:
		return s.invalidate(ctx, by, key, o)
	case orderDrop:
		return s.drop(ctx, by, key, o)
	}
	return s.goOn(ctx, by, key, o)
}

// previewOrder says what an order to a whole run would do.
func (s *Server) previewOrder(ctx context.Context, key view.RunKey, kind string) (ordered, error) {
	would, err := s.app.Orders.PreviewOrder(ctx, key, kind)
	return ordered{Would: &would}, err
}

func (s *Server) invalidate(ctx context.Context, by app.Caller, key view.RunKey, o order) (ordered, error) {
	if o.DryRun {
		would, err := s.app.Orders.PreviewInvalidation(ctx, key, o.Nodes)
		return ordered{Token: would.Token, Invalidated: &would.Would}, err
	}
	said, err := s.app.Orders.Invalidate(ctx, by, key, o.Nodes, o.Reason, o.Token)
	return ordered{Invalidated: &said}, err
}

func (s *Server) drop(ctx context.Context, by app.Caller, key view.RunKey, o order) (out ordered, err error) {
	var said []view.Dropped
	if o.DryRun {
		would, failed := s.app.Orders.PreviewDrop(ctx, []view.RunKey{key})
		said, err, out.Token = would.Would, failed, would.Token
	} else {
		said, err = s.app.Orders.Drop(ctx, by, []view.RunKey{key}, o.Reason, o.Token)
	}
	if len(said) > 0 {
		out.Dropped = &said[0]
	}
	return out, err
}

// goOn lets a run go on, or does parts of it again. Workers do the work.
func (s *Server) goOn(ctx context.Context, by app.Caller, key view.RunKey, o order) (ordered, error) {
	if _, err := o.ask().On(nil); err != nil {
		return ordered{}, err
	}
	if o.Kind == orderResume {
		if o.DryRun {
			return s.previewOrder(ctx, key, o.Kind)
		}
		return s.submit(ctx, by, app.RunOptions{Workspace: key.Workspace, Resume: true, Pinned: true, ResumeRun: key.Run,
			Most: o.ask()})
	}
	again := app.RedoSelection{Nodes: o.Nodes}
	var alike []orderBatches
	if o.Like != nil {
		found, err := s.app.Runs.Alike(ctx, view.BatchKey{NodeKey: view.NodeKey{RunKey: key, Node: o.Like.Node},
			Batch: o.Like.Batch})
		if err != nil {
			return ordered{}, err
		}
		again.Batches = found
		for _, b := range found {
			alike = append(alike, orderBatches{b.Node, b.From, b.To})
		}
	}
	for _, b := range o.Batches {
		again.Batches = append(again.Batches, app.RedoBatches{Node: b.Node, From: b.From, To: b.To})
	}
	plan, err := s.app.PreviewRetry(ctx, by, key, again)
	if err != nil {
		return ordered{}, err
	}
	if o.DryRun {
		return ordered{Token: plan.Token, Alike: alike, Planned: &plan.Would.RetryPlanned}, nil
	}
	if cmp.Or(o.Token, plan.Token) != plan.Token {
		return ordered{}, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
			Message: "nothing was done: what it would do has changed since it was shown",
			Hint:    "look at it again, and order it again"}
	}
	opts := plan.Would.Options
	opts.Most = o.ask().Over(opts.Most)
	out, err := s.submit(ctx, by, opts)
	out.Planned = &plan.Would.RetryPlanned
	return out, err
}

// submit leaves the work on a run to workers.
func (s *Server) submit(ctx context.Context, by app.Caller, o app.RunOptions) (ordered, error) {
	o.Token = by.Request // where a new run goes on, it is begun once
	key, _, err := s.app.Submit(ctx, by, o)
	if err != nil {
		return ordered{}, err
	}
	return submitted(key), nil
}

func submitted(key view.RunKey) ordered {
	return ordered{Submitted: &view.RunSubmitted{Event: "run_submitted", Workspace: key.Workspace, Run: key.Run}}
}

type takeIn struct {
	OfRun
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"A request that is repeated with it is done once."`
	Body struct {
		Comment string `json:"comment" maxLength:"4000" doc:"What you do about it: all others see it."`
	}
}

func (s *Server) take(ctx context.Context, by asker, in *takeIn) (*reply[view.Taken], error) {
	run, err := s.app.Runs.Find(ctx, in.Workspace, in.Run)
	if err != nil {
		return nil, err
	}
	caller := by.caller()
	if caller.Request = requestToken(by, in.Key, run.RunKey, in.Body); caller.Request != "" {
		done, err := s.app.Orders.Given(ctx, run.RunKey, caller.Request)
		taken := run.Taken()
		switch {
		case err != nil:
			return nil, err
		case done && taken != nil && taken.Actor == by.Name():
			return body(view.Taken{Workspace: run.Workspace, Run: run.Run, Taken: taken}, nil)
		case done:
			return nil, &fault.Error{Kind: fault.Script, Code: fault.Conflict,
				Message: "it was taken with this request, and the run has had an order since"}
		}
	}
	return body(s.app.Orders.Take(ctx, caller, run.RunKey, in.Body.Comment))
}

type dropIn struct {
	OfWorkspace
	Body struct {
		Runs   []int64 `json:"runs" minItems:"1" maxItems:"1000" nullable:"false"`
		Reason string  `json:"reason,omitempty" maxLength:"4000"`
		DryRun bool    `json:"dry_run,omitempty"`
		Token  string  `json:"token,omitempty" maxLength:"128" doc:"Of a dry run: do what that said, or nothing."`
	}
}

// dropResult says what was dropped, or would be.
type dropResult struct {
	Token string         `json:"token,omitempty"`
	Runs  []view.Dropped `json:"runs"`
}

func (s *Server) dropRuns(ctx context.Context, by asker, in *dropIn) (*reply[dropResult], error) {
	keys := make([]view.RunKey, len(in.Body.Runs))
	for i, n := range in.Body.Runs {
		run, err := s.app.Runs.Find(ctx, in.Workspace, strconv.FormatInt(n, 10))
		if err != nil {
			return nil, err
		}
		keys[i] = run.RunKey
	}
	if in.Body.DryRun {
		would, err := s.app.Orders.PreviewDrop(ctx, keys)
		return body(dropResult{Token: would.Token, Runs: would.Would}, err)
	}
	said, err := s.app.Orders.Drop(ctx, by.caller(), keys, in.Body.Reason, in.Body.Token)
	return body(dropResult{Runs: said}, err)
}

type collectIn struct {
	OfWorkspace
	Body struct {
		Keep         int    `json:"keep,omitempty" minimum:"1" maximum:"1000000" doc:"Drop runs, but for the latest of each script, parameters and nodes."`
		OlderSeconds int64  `json:"older_than_s,omitempty" minimum:"1" maximum:"3155760000" doc:"Drop runs that ended longer ago."`
		Reason       string `json:"reason,omitempty" maxLength:"4000"`
		DryRun       bool   `json:"dry_run,omitempty"`
		Token        string `json:"token,omitempty" maxLength:"128" doc:"Of a dry run: drop what that said, or nothing."`
	}
}

// collectResult says what was removed, or would be.
type collectResult struct {
	Token     string         `json:"token,omitempty"`
	Collected view.Collected `json:"collected"`
	OnDisk    bool           `json:"on_disk" doc:"Parts are files that the server's machine sees."`
}

func (s *Server) collect(ctx context.Context, by asker, in *collectIn) (*reply[collectResult], error) {
	limits := app.Limits{Keep: in.Body.Keep, OlderThan: time.Duration(in.Body.OlderSeconds) * time.Second}
	if in.Body.DryRun {
		would, err := s.app.Orders.PreviewCollection(ctx, in.Workspace, limits)
		return body(collectResult{would.Token, would.Would, would.Would.OnDisk}, err)
	}
	said, err := s.app.Orders.Collect(ctx, by.caller(), in.Workspace, limits, cmp.Or(in.Body.Reason, "retention"),
		in.Body.Token)
	return body(collectResult{"", said, said.OnDisk}, err)
}
