package apiclient

import (
	"context"
	"net/http"
	"strconv"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// started is the answer to a start.
type started struct {
	Run      int64            `json:"run"`
	Planned  view.RunPlanned  `json:"planned"`
	Warnings view.Diagnostics `json:"warnings"`
}

// start starts a script that the server has, or says what a run of it would do.
func (c *Client) start(ctx context.Context, o app.RunOptions, dryRun bool) (out started, err error) {
	b := object{"script": o.ScriptPath, "note": o.Description, "fresh": !o.Reuse, "dry_run": dryRun}
	for name, value := range map[string]string{"deadline": o.Deadline, "priority": string(o.Priority),
		"max_elapsed": o.Most.Elapsed, "max_cost": o.Most.Cost} {
		if value != "" {
			b[name] = value
		}
	}
	if len(o.Params) > 0 {
		b["params"] = o.Params
	}
	if len(o.Start) > 0 {
		b["start"] = o.Start
	}
	if len(o.From) > 0 {
		b["from"] = o.From
	}
	return out, c.order(ctx, in(o.Workspace)+"/runs", b, &out)
}

// Plan implements app.Operations. The script is named as the server lists it.
func (c *Client) Plan(ctx context.Context, _ app.Caller, o app.RunOptions) (view.RunPlanned, error) {
	out, err := c.start(ctx, o, true)
	return out.Planned, err
}

// Submit implements app.Operations. It starts a script that the server has, resumes a run, or with the options of
// PreviewRetry does what that has shown.
func (c *Client) Submit(ctx context.Context, _ app.Caller, o app.RunOptions) (view.RunKey, view.Diagnostics, error) {
	key := view.RunKey{Workspace: o.Workspace, Run: o.ResumeRun}
	if !o.Resume {
		out, err := c.start(ctx, o, false)
		key.Run = out.Run
		return key, out.Warnings, err
	}
	b := object{"kind": "resume"}
	if o.Token != "" {
		b = retryOf(o.Again)
		b["token"] = o.Token
	}
	for name, value := range map[string]string{"max_elapsed": o.Most.Elapsed, "max_cost": o.Most.Cost} {
		if value != "" {
			b[name] = value
		}
	}
	out, err := c.give(ctx, key, b)
	if err == nil && out.Submitted != nil { // else this is the repetition of a request whose answer was lost
		key.Run = out.Submitted.Run
	}
	return key, nil, err
}

// retryOf is the order to do parts of a run again.
func retryOf(again app.RedoSelection) object {
	batches := []object{}
	for _, b := range again.Batches {
		batches = append(batches, object{"node": b.Node, "from": b.From, "to": b.To})
	}
	return object{"kind": "retry", "nodes": nodesOf(again.Nodes), "batches": batches}
}

// PreviewRetry implements app.Operations.
func (c *Client) PreviewRetry(ctx context.Context, _ app.Caller, key view.RunKey,
	again app.RedoSelection) (out app.Preview[app.RetryPreview], err error) {
	b := retryOf(again)
	b["dry_run"] = true
	said, err := c.give(ctx, key, b)
	if err == nil && said.Planned == nil {
		err = missing("the retry")
	}
	if err != nil {
		return out, err
	}
	out.Token, out.Would.RetryPlanned = said.Token, *said.Planned
	out.Would.Options = app.RunOptions{Workspace: key.Workspace, Resume: true, ResumeRun: key.Run, Again: again,
		Token: said.Token}
	return out, nil
}

// Summary implements app.Operations.
func (c *Client) Summary(ctx context.Context, key view.RunKey) (app.Summary, error) {
	said, err := get[view.RunSummary](ctx, c, of(key)+"/summary")
	sum := app.SummaryFrom(said)
	if err != nil || sum.Status != view.Waiting {
		return sum, err
	}
	gates, err := c.Approvals(ctx, key.Workspace)
	for _, g := range gates {
		if g.Run == key.Run {
			sum.Asked = append(sum.Asked, view.GateAsked{Run: g.Run, Node: g.Node, Record: g.Record})
		}
	}
	return sum, err
}

// Nodes implements app.Operations.
func (c *Client) Nodes(ctx context.Context, run view.Run) (app.Summary, error) {
	said, err := get[view.RunSummary](ctx, c, of(run.RunKey)+"/summary?as_left=true")
	return app.SummaryFrom(said), err
}

// AwaitNames implements app.Operations.
func (c *Client) AwaitNames(ctx context.Context, key view.RunKey) ([]view.Node, error) {
	sum, err := c.Summary(ctx, key)
	return sum.Nodes, err
}

// standing says how a run stands.
func (c *Client) standing(ctx context.Context, key view.RunKey, stay bool) (out view.Standing, err error) {
	return out, c.ask(ctx, http.MethodGet, of(key)+"/standing?stay="+strconv.FormatBool(stay), nil, nil, &out)
}
