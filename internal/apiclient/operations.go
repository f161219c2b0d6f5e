package apiclient

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// pageMax is the number of entries that are asked for at once.
const pageMax = 1_000

// get asks for the value of a path.
func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	return out, c.ask(ctx, http.MethodGet, path, nil, nil, &out)
}

// Find implements app.Operations.
func (c *Client) Find(ctx context.Context, workspace, ref string) (view.Run, error) {
	if err := app.CheckRunRef(ref); err != nil {
		return view.Run{}, err
	}
	ref = strings.TrimLeft(ref, "0")
	d, err := get[view.RunDetail](ctx, c, in(workspace)+"/runs/"+url.PathEscape(ref))
	return runOf(d.Run), err
}

// runOf returns what is known of a run from its entry in a list.
func runOf(r view.ListedRun) view.Run {
	return view.Run{RunKey: view.RunKey{Workspace: r.Workspace, Run: r.Run}, Status: view.Status(r.Status),
		ScriptPath: r.Script, ParamsPath: r.Params, StartNodes: r.StartNodes, Description: r.Description, Actor: r.Actor,
		Parent: r.Parent, Created: r.Created, Failure: r.Failure, Priority: r.Priority}
}

// Numbered implements app.Operations.
func (c *Client) Numbered(ctx context.Context, workspace string, number int64) (view.Run, error) {
	if number == 0 {
		return c.Find(ctx, workspace, app.LastRun)
	}
	return c.Find(ctx, workspace, strconv.FormatInt(number, 10))
}

// FindOpen implements app.Operations.
func (c *Client) FindOpen(ctx context.Context, workspace string) (out app.OpenRun, err error) {
	if out.Last, err = c.Find(ctx, workspace, app.LastRun); err != nil {
		return out, err
	}
	out.Run = out.Last
	open, err := get[[]view.ListedRun](ctx, c, in(workspace)+"/open-runs")
	if err != nil {
		return out, err
	}
	if out.Count = len(open); out.Count > 0 {
		out.Run = runOf(open[0])
	}
	return out, nil
}

// List implements app.Operations.
func (c *Client) List(ctx context.Context, workspace string, limit int, dropped bool) ([]view.ListedRun, error) {
	out := []view.ListedRun{}
	for cursor := ""; ; {
		size := pageMax
		if limit > 0 {
			size = min(size, limit-len(out))
		}
		q := url.Values{"limit": {strconv.Itoa(size)}, "dropped": {strconv.FormatBool(dropped)}, "priced": {"true"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		page, err := get[struct {
			Runs []view.ListedRun `json:"runs"`
			Next string           `json:"next"`
		}](ctx, c, in(workspace)+"/runs?"+q.Encode())
		if err != nil {
			return nil, err
		}
		out = append(out, page.Runs...)
		if cursor = page.Next; cursor == "" || limit > 0 && len(out) >= limit {
			slices.Reverse(out)
			return out, nil
		}
	}
}

// Status implements app.Operations.
func (c *Client) Status(ctx context.Context, run view.Run) string {
	if d, err := c.Show(ctx, run.RunKey); err == nil {
		return d.Status
	}
	return string(run.Status)
}

// Show implements app.Operations.
func (c *Client) Show(ctx context.Context, key view.RunKey) (view.RunDetail, error) {
	return get[view.RunDetail](ctx, c, of(key))
}

// Workers implements app.Operations.
func (c *Client) Workers(ctx context.Context, key view.RunKey) (view.RunWorkers, error) {
	return get[view.RunWorkers](ctx, c, of(key)+"/workers")
}

// Workspaces implements app.Operations.
func (c *Client) Workspaces(ctx context.Context) (names []string, err error) {
	all, err := get[[]struct {
		Workspace string `json:"workspace"`
	}](ctx, c, "/v1/workspaces")
	for _, w := range all {
		names = append(names, w.Workspace)
	}
	return names, err
}

// Costs implements app.Operations.
func (c *Client) Costs(ctx context.Context, workspace string, o app.CostOptions) (view.Costs, error) {
	q := url.Values{"by": {o.By}}
	if !o.Since.IsZero() {
		q.Set("since", o.Since.Format(time.RFC3339Nano))
	}
	for _, run := range o.Runs {
		q.Add("run", strconv.FormatInt(run, 10))
	}
	return get[view.Costs](ctx, c, in(workspace)+"/costs?"+q.Encode())
}

// ShowNode implements app.Operations.
func (c *Client) ShowNode(ctx context.Context, key view.RunKey, node string) (view.NodeDetail, error) {
	return get[view.NodeDetail](ctx, c, of(key)+"/nodes/"+url.PathEscape(node))
}

// ShowBatch implements app.Operations.
func (c *Client) ShowBatch(ctx context.Context, key view.RunKey, node string, batch int) (view.BatchDetail, error) {
	return get[view.BatchDetail](ctx, c, of(key)+"/nodes/"+url.PathEscape(node)+"/batches/"+strconv.Itoa(batch))
}

// Batches implements app.Operations.
func (c *Client) Batches(ctx context.Context, key view.RunKey, node string) ([]view.Batch, error) {
	out, err := get[[]view.Batch](ctx, c, of(key)+"/nodes/"+url.PathEscape(node)+"/batches")
	for i := range out {
		out[i].Took = time.Duration(out[i].MS) * time.Millisecond
	}
	return out, err
}

// Checks implements app.Operations.
func (c *Client) Checks(ctx context.Context, key view.RunKey, node string) ([]view.Check, error) {
	path := of(key) + "/checks"
	if node != "" {
		path += "?" + url.Values{"node": {node}}.Encode()
	}
	return get[[]view.Check](ctx, c, path)
}

// Why implements app.Operations.
func (c *Client) Why(ctx context.Context, run view.Run) (view.Why, error) {
	return get[view.Why](ctx, c, of(run.RunKey)+"/why")
}

// Causes implements app.Operations.
func (c *Client) Causes(ctx context.Context, key view.RunKey) (view.Causes, error) {
	return get[view.Causes](ctx, c, of(key)+"/causes")
}

// Audit implements app.Operations.
func (c *Client) Audit(ctx context.Context, key view.RunKey) ([]view.AuditEntry, error) {
	return get[[]view.AuditEntry](ctx, c, of(key)+"/audit")
}

// AuditAll implements app.Operations.
func (c *Client) AuditAll(ctx context.Context, workspace string, limit int) ([]view.AuditEntry, error) {
	return get[[]view.AuditEntry](ctx, c, in(workspace)+"/audit?limit="+strconv.Itoa(limit))
}

// Events implements app.Operations.
func (c *Client) Events(ctx context.Context, key view.RunKey, after int64, tell func([]view.EventLine) error) error {
	for {
		q := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {strconv.Itoa(pageMax)}}
		page, err := get[struct {
			Events []view.EventLine `json:"events"`
			More   bool             `json:"more"`
		}](ctx, c, of(key)+"/events?"+q.Encode())
		if err != nil {
			return err
		}
		if len(page.Events) > 0 {
			after = page.Events[len(page.Events)-1].N
			if err := tell(page.Events); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// Schedules implements app.Operations.
func (c *Client) Schedules(ctx context.Context, workspace string) ([]view.Schedule, error) {
	return get[[]view.Schedule](ctx, c, in(workspace)+"/schedules")
}

// Matrices implements app.Operations.
func (c *Client) Matrices(ctx context.Context, workspace string) ([]view.Matrix, error) {
	return get[[]view.Matrix](ctx, c, in(workspace)+"/matrices")
}

// MatrixCells implements app.Operations.
func (c *Client) MatrixCells(ctx context.Context, workspace, id string) ([]view.Cell, error) {
	return get[[]view.Cell](ctx, c, in(workspace)+"/matrices/"+url.PathEscape(id))
}

// Lineage implements app.Operations.
func (c *Client) Lineage(ctx context.Context, key view.RunKey, column string) (view.ColumnLineage, error) {
	at := strings.LastIndexByte(column, '.')
	if at <= 0 || at == len(column)-1 {
		return view.ColumnLineage{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: "there is no column " + column, Hint: "name it as TABLE.COLUMN, or FILE.COLUMN"}
	}
	return get[view.ColumnLineage](ctx, c, of(key)+"/tables/"+url.PathEscape(column[:at])+"/columns/"+
		url.PathEscape(column[at+1:])+"/lineage")
}
