package apiclient

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Script is a script that a server has, or the text of one.
type Script struct {
	Name   string            // as the server lists it; of a text where it would be
	Text   string            // "": the server has the script
	Files  map[string]string // texts beside Text, by name
	Params map[string]string
}

// object returns the script as requests have it.
func (s Script) object() object {
	b := object{"script": s.Name}
	if s.Text != "" {
		b = object{"name": s.Name, "text": s.Text}
	}
	if len(s.Files) > 0 {
		b["files"] = s.Files
	}
	if len(s.Params) > 0 {
		b["params"] = s.Params
	}
	return b
}

// CheckOptions say which checks of a script are made.
type CheckOptions struct {
	Run     int64    // whose tables are looked at; 0: the latest of the script, else the last
	Nodes   []string // none: all that have checks
	RowsMax int      // failing rows of each check; 0: as many as a server gives
}

// Check makes the checks of a script over the tables of a run. Warnings are of the script.
func (c *Client) Check(ctx context.Context, workspace string, s Script, o CheckOptions) (view.Checked, view.Diagnostics,
	error) {
	if o.RowsMax > pageRowsMax {
		return view.Checked{}, nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("a server gives at most %d failing rows of a check", pageRowsMax), Hint: "ask for fewer"}
	}
	b := s.object()
	b["limit"] = o.RowsMax
	if o.RowsMax == 0 {
		b["limit"] = pageRowsMax
	}
	if o.Run > 0 {
		b["run"] = strconv.FormatInt(o.Run, 10)
	}
	if len(o.Nodes) > 0 {
		b["nodes"] = o.Nodes
	}
	var out struct {
		Checked  view.Checked     `json:"checked"`
		Warnings view.Diagnostics `json:"warnings"`
	}
	err := c.job(ctx, in(workspace)+"/checks", b, &out)
	return out.Checked, out.Warnings, err
}

// Validate lists the problems of a script.
func (c *Client) Validate(ctx context.Context, workspace string, s Script) (out view.Validated, err error) {
	return out, c.ask(ctx, http.MethodPost, in(workspace)+"/validations", nil, s.object(), &out)
}

// Explain says how a run of a script would proceed: of the node, "" being all.
func (c *Client) Explain(ctx context.Context, workspace string, s Script, node string,
	ephemeral bool) (out view.Explained, err error) {
	b := s.object()
	b["reuse"], b["ephemeral"] = true, ephemeral
	if node != "" {
		b["node"] = node
	}
	return out, c.ask(ctx, http.MethodPost, in(workspace)+"/explanations", nil, b, &out)
}

// Doctor looks at the server's machine, and at the state or the services of its cluster.
func (c *Client) Doctor(ctx context.Context) (out view.Diagnosis, err error) {
	return out, c.job(ctx, "/v1/diagnoses", nil, &out)
}

// ClusterStatus lists the workers of the server's cluster, and the runs that are not over.
func (c *Client) ClusterStatus(ctx context.Context) (view.ClusterStatus, error) {
	return get[view.ClusterStatus](ctx, c, "/v1/fleet")
}
