package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

const (
	// pageRowsMax is the number of rows that a server gives of a query.
	pageRowsMax = 1_000
	// cancelTimeout is how long the cancelling of a job may take.
	cancelTimeout = 5 * time.Second
	// jobPauseMax is the longest time between two looks at a job.
	jobPauseMax = time.Second
)

// Query implements app.Operations. It gives pageRowsMax rows at most.
func (c *Client) Query(ctx context.Context, _ app.Caller, o app.Query) (app.QueryResult, error) {
	if o.RowsMax == 0 || o.RowsMax > pageRowsMax || o.Parquet != "" {
		return app.QueryResult{}, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("a server gives at most %d rows of a query", pageRowsMax),
			Hint:    "ask for fewer, for sums, or for a file of all rows of a query with a LIMIT"}
	}
	var page view.Page
	if err := c.ask(ctx, http.MethodPost, in(o.Workspace)+"/queries", nil, object{"sql": o.SQL, "limit": o.RowsMax},
		&page); err != nil {
		return app.QueryResult{}, err
	}
	res, err := app.ResultFrom(page)
	if err != nil || o.Sink == nil {
		return res, err
	}
	if err := o.Sink.Begin(res); err != nil {
		return res, err
	}
	for _, row := range res.Rows {
		if err := o.Sink.Row(row); err != nil {
			return res, err
		}
	}
	return res, nil
}

// Download writes all rows of a query to out, in the format csv, ndjson, parquet or xlsx. warned is told what is wrong
// with its tables before the first row.
func (c *Client) Download(ctx context.Context, workspace, sql, format string, rowsMax int, out io.Writer,
	warned func(text string)) error {
	b := object{"sql": sql, "format": format}
	if rowsMax > 0 {
		b["limit"] = rowsMax
	}
	answer, err := c.through(ctx, c.long, http.MethodPost, in(workspace)+"/downloads", nil, b)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for _, text := range answer.Header.Values("Thalweg-Warning") {
		if text, err = url.PathUnescape(text); err == nil {
			warned(text)
		}
	}
	_, err = io.Copy(out, cutBody{answer.Body, c.base})
	if err != nil && ctx.Err() != nil {
		return c.unreached(ctx, err)
	}
	return err
}

// cutBody is the body of an answer whose end may be missing.
type cutBody struct {
	io.Reader
	from string
}

// Read implements io.Reader.
func (b cutBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &fault.Error{Kind: fault.Environment, Message: "the answer of " + b.from + " was cut off", Err: err,
			Hint: "try again, or ask for fewer rows; the server's log says why"}
	}
	return n, err
}

// Diff implements app.Operations.
func (c *Client) Diff(ctx context.Context, _ app.Caller, runs [2]view.RunKey, o app.DiffOptions) (app.Comparison, error) {
	var v view.Diff
	b := object{"table": o.Table, "run_a": runs[0].Run, "run_b": runs[1].Run, "by_rows": o.ByRows,
		"tolerance": o.Tolerance, "limit": o.RowsMax}
	if len(o.Key) > 0 {
		b["key"] = o.Key
	}
	if len(o.Columns) > 0 {
		b["columns"] = o.Columns
	}
	err := c.job(ctx, in(runs[0].Workspace)+"/diffs", b, &v)
	return app.ComparisonFrom(v), err
}

// Trace implements app.Operations.
func (c *Client) Trace(ctx context.Context, _ app.Caller, o app.TraceOptions) (*view.Tree, error) {
	var tree view.Tree
	b := object{"table": o.Name, "where": o.Trace.Where, "limit": o.Trace.Limit, "sample": o.Trace.Sample}
	if o.Run > 0 {
		b["run"] = strconv.FormatInt(o.Run, 10)
	}
	return &tree, c.job(ctx, in(o.Workspace)+"/traces", b, &tree)
}

// job has a server do long work, tells who listens how far it is, and waits for its result. When ctx ends, the job is
// cancelled.
func (c *Client) job(ctx context.Context, path string, body, out any) error {
	var j struct {
		ID       string          `json:"id"`
		Status   string          `json:"status"`
		Progress *view.Progress  `json:"progress"`
		Problem  *problem        `json:"problem"`
		Result   json.RawMessage `json:"result"`
	}
	if err := c.ask(ctx, http.MethodPost, path, nil, body, &j); err != nil {
		return err
	}
	at := "/v1/jobs/" + url.PathEscape(j.ID)
	for pause := 10 * time.Millisecond; j.Status == "waiting" || j.Status == "running"; pause = min(2*pause, jobPauseMax) {
		if j.Progress != nil {
			view.TellProgress(ctx, *j.Progress)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
		if err := c.ask(ctx, http.MethodGet, at, nil, nil, &j); err != nil {
			c.cancel(ctx, at)
			return err
		}
	}
	switch {
	case j.Problem != nil:
		return j.Problem.failure(0)
	case j.Status != "done":
		return &fault.Error{Kind: fault.Canceled, Message: "the job was canceled"}
	}
	if err := json.Unmarshal(j.Result, out); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "read the result of a job of " + c.base, Err: err}
	}
	return nil
}

// cancel cancels a job that nobody waits for any more. A server that cannot be reached ends it by itself, later.
func (c *Client) cancel(ctx context.Context, at string) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTimeout)
	defer stop()
	_ = c.ask(ctx, http.MethodDelete, at, nil, nil, nil)
}
