package apiclient

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// ordered is the answer to an order.
type ordered struct {
	Token       string            `json:"token"`
	Stopped     *view.Stopped     `json:"stopped"`
	Paused      *view.Paused      `json:"paused"`
	Invalidated *view.Invalidated `json:"invalidated"`

	Planned   *view.RetryPlanned `json:"planned"`
	Submitted *view.RunSubmitted `json:"submitted"`
}

// object is the body of a request.
type object = map[string]any

// give gives an order to a run. The caller is whoever the token is of.
func (c *Client) give(ctx context.Context, key view.RunKey, o object) (out ordered, err error) {
	return out, c.order(ctx, of(key)+"/orders", o, &out)
}

// missing is the failure of an answer that does not say what was done: the order was given before, by a request whose
// answer was lost.
func missing(what string) error {
	return &fault.Error{Kind: fault.Environment, Message: what + " was ordered; the server's answer was lost",
		Hint: "look at the run"}
}

// Stop implements app.Operations.
func (c *Client) Stop(ctx context.Context, _ app.Caller, key view.RunKey, reason string) (view.Stopped, error) {
	out, err := c.give(ctx, key, object{"kind": "stop", "reason": reason})
	if err == nil && out.Stopped == nil {
		err = missing("the stop")
	}
	if err != nil {
		return view.Stopped{}, err
	}
	out.Stopped.Took = time.Duration(out.Stopped.MS) * time.Millisecond
	return *out.Stopped, nil
}

// Pause implements app.Operations.
func (c *Client) Pause(ctx context.Context, _ app.Caller, key view.RunKey, reason string) (view.Paused, error) {
	out, err := c.give(ctx, key, object{"kind": "pause", "reason": reason})
	if err == nil && out.Paused == nil {
		err = missing("the pause")
	}
	if err != nil {
		return view.Paused{}, err
	}
	return *out.Paused, nil
}

// Take implements app.Operations.
func (c *Client) Take(ctx context.Context, _ app.Caller, key view.RunKey, comment string) (out view.Taken, err error) {
	return out, c.order(ctx, of(key)+"/take", object{"comment": comment}, &out)
}

// OrderSchedule implements app.Operations.
func (c *Client) OrderSchedule(ctx context.Context, _ app.Caller, workspace string,
	o app.ScheduleOrder) (out view.ScheduleOrdered, err error) {
	kind := "resume"
	if o.Pause {
		kind = "pause"
	}
	return out, c.order(ctx, in(workspace)+"/schedules/"+url.PathEscape(o.ID)+"/orders",
		object{"kind": kind, "reason": o.Reason, "dry_run": o.DryRun}, &out)
}

// PreviewInvalidation implements app.Operations.
func (c *Client) PreviewInvalidation(ctx context.Context, key view.RunKey,
	nodes []string) (out app.Preview[view.Invalidated], err error) {
	said, err := c.give(ctx, key, object{"kind": "invalidate", "nodes": nodesOf(nodes), "dry_run": true})
	if err == nil {
		out.Would, out.Token = *said.Invalidated, said.Token
	}
	return out, err
}

// nodesOf returns names as a list that is there.
func nodesOf(nodes []string) []string { return append([]string{}, nodes...) }

// Invalidate implements app.Operations.
func (c *Client) Invalidate(ctx context.Context, _ app.Caller, key view.RunKey, nodes []string, reason,
	token string) (view.Invalidated, error) {
	out, err := c.give(ctx, key, object{"kind": "invalidate", "nodes": nodesOf(nodes), "reason": reason, "token": token})
	if err == nil && out.Invalidated == nil {
		err = missing("the invalidation")
	}
	if err != nil {
		return view.Invalidated{}, err
	}
	return *out.Invalidated, nil
}

// drop drops runs of one workspace, or says what that would mean.
func (c *Client) drop(ctx context.Context, keys []view.RunKey, o object) (token string, runs []view.Dropped, err error) {
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		numbers[i] = key.Run
	}
	o["runs"] = numbers
	var out struct {
		Token string         `json:"token"`
		Runs  []view.Dropped `json:"runs"`
	}
	err = c.order(ctx, in(keys[0].Workspace)+"/drops", o, &out)
	return out.Token, out.Runs, err
}

// PreviewDrop implements app.Operations.
func (c *Client) PreviewDrop(ctx context.Context, keys []view.RunKey) (out app.Preview[[]view.Dropped], err error) {
	out.Token, out.Would, err = c.drop(ctx, keys, object{"dry_run": true})
	return out, err
}

// Drop implements app.Operations.
func (c *Client) Drop(ctx context.Context, _ app.Caller, keys []view.RunKey, reason, token string) ([]view.Dropped, error) {
	_, runs, err := c.drop(ctx, keys, object{"reason": reason, "token": token})
	return runs, err
}

// collect removes what nobody needs, or says what that is.
func (c *Client) collect(ctx context.Context, workspace string, limits app.Limits,
	o object) (token string, said view.Collected, err error) {
	if limits.Keep > 0 {
		o["keep"] = limits.Keep
	}
	if limits.OlderThan > 0 {
		o["older_than_s"] = max(int64(limits.OlderThan/time.Second), 1)
	}
	var out struct {
		Token     string         `json:"token"`
		Collected view.Collected `json:"collected"`
		OnDisk    bool           `json:"on_disk"`
	}
	err = c.order(ctx, in(workspace)+"/collections", o, &out)
	out.Collected.OnDisk = out.OnDisk
	return out.Token, out.Collected, err
}

// PreviewCollection implements app.Operations.
func (c *Client) PreviewCollection(ctx context.Context, workspace string,
	limits app.Limits) (out app.Preview[view.Collected], err error) {
	out.Token, out.Would, err = c.collect(ctx, workspace, limits, object{"dry_run": true})
	return out, err
}

// Collect implements app.Operations.
func (c *Client) Collect(ctx context.Context, _ app.Caller, workspace string, limits app.Limits, reason,
	token string) (view.Collected, error) {
	_, said, err := c.collect(ctx, workspace, limits, object{"reason": reason, "token": token})
	return said, err
}

// waiting is a gate that waits.
type waiting struct {
	Run     int64           `json:"run"`
	Script  string          `json:"script"`
	Note    string          `json:"note"`
	BegunBy string          `json:"begun_by"`
	Begun   time.Time       `json:"begun"`
	Record  view.GateRecord `json:"asks"`
}

// Approvals implements app.Operations.
func (c *Client) Approvals(ctx context.Context, workspace string) ([]app.Asking, error) {
	gates, err := get[[]waiting](ctx, c, in(workspace)+"/gates")
	out := make([]app.Asking, len(gates))
	for i, g := range gates {
		out[i].Run, out[i].Node, out[i].Record = g.Run, view.GateNode(g.Record.Gate), g.Record
		out[i].Of = view.Run{RunKey: view.RunKey{Workspace: workspace, Run: g.Run}, ScriptPath: g.Script,
			Description: g.Note, Actor: g.BegunBy, Created: g.Begun}
	}
	return out, err
}

// Decide implements app.Operations. What is decided on is what the gate shows at that moment, unless the request names
// a digest.
func (c *Client) Decide(ctx context.Context, _ app.Caller, req app.DecisionRequest) (out app.Decided, err error) {
	if req.Digest == "" {
		gates, err := c.Approvals(ctx, req.Run.Workspace)
		if err != nil {
			return out, err
		}
		for _, g := range gates {
			if g.Run == req.Run.Run && g.Record.Gate == req.Gate {
				req.Digest = g.Record.Digest
				if req.Shown != nil {
					req.Shown(g.Record)
				}
			}
		}
	}
	var said view.Decided
	body := object{"approve": req.Approve, "digest": req.Digest, "comment": req.Comment}
	if req.Approve {
		body["answers"] = req.Answers
	}
	err = c.order(ctx, in(req.Run.Workspace)+"/runs/"+strconv.FormatInt(req.Run.Run, 10)+"/gates/"+
		url.PathEscape(req.Gate)+"/decision", body, &said)
	out.Record = view.GateRecord{Gate: said.Gate, Digest: said.Digest, Shows: said.Shows}
	out.Answers, out.AtWork = said.Answers, said.AtWork
	return out, err
}
