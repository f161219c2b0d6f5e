package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Problem is a failure as RFC 9457 has it, with the members that a failure of --json has.
type Problem struct {
	Type     string            `json:"type"`
	Title    string            `json:"title"`
	Status   int               `json:"status"`
	Detail   string            `json:"detail" doc:"What went wrong, in a sentence."`
	Kind     fault.Kind        `json:"kind" doc:"Who has to act: user_data, script, environment, bug, canceled."`
	Code     fault.Code        `json:"code,omitempty"`
	Place    *fault.Place      `json:"place,omitempty"`
	Hint     string            `json:"hint,omitempty" doc:"The way out."`
	Evidence string            `json:"evidence,omitempty" doc:"A traceback, or the engine's message."`
	Next     []view.Action     `json:"next,omitempty" doc:"What the hint proposes to do."`
	Diags    view.Diagnostics  `json:"diagnostics,omitempty" doc:"Problems of a script, each with its place."`
	Errors   []ProblemOfMember `json:"errors,omitempty" doc:"Members of the request that cannot be taken."`

	wait time.Duration // that the client should; 0: nobody knows
}

// ProblemOfMember is what is wrong with one member of a request.
type ProblemOfMember struct {
	Location string `json:"location"`
	Message  string `json:"message"`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of problems.
func (p *Problem) ContentType(string) string { return problemType }

const problemType = "application/problem+json"

// Failures that only the edge has.
var (
	errNoLogin   = errors.New("this needs a login")
	errNotMay    = errors.New("you may not do this here")
	errOtherHost = errors.New("it does not answer for that host")
)

// problem makes a Problem of a failure. hide removes secrets from texts.
func problem(err error, hide func(string) string) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	f := fault.Of(err)
	status := statusOf(err, f)
	out := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status,
		Detail: hide(err.Error()), Kind: f.Kind, Code: fault.CodeOf(err), Hint: hide(f.Hint),
		Evidence: hide(f.Detail), Next: f.Actions()}
	if f.Place != (fault.Place{}) {
		out.Place = &f.Place
		out.Place.Value, out.Place.Expr = hide(f.Place.Value), hide(f.Place.Expr)
	}
	var wait *access.WaitError
	if errors.As(err, &wait) {
		out.wait, out.Detail = wait.Wait, hide(f.Message)
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		out.Kind = fault.Script // it is not for us to change
	}
	var invalid *app.InvalidScriptError
	if errors.As(err, &invalid) {
		out.Diags = invalid.Diagnostics
	}
	if status == http.StatusInternalServerError { // what it says of us is for the log
		out.Detail, out.Evidence, out.Hint, out.Place = "the server has failed", "", "its log says why", nil
	}
	return out
}

// statusOf maps a failure to an HTTP status.
func statusOf(err error, f *fault.Error) int {
	switch {
	case errors.Is(err, errNoLogin), errors.Is(err, access.ErrUnauthorized):
		return http.StatusUnauthorized
	case errors.Is(err, errNotMay):
		return http.StatusForbidden
	case errors.Is(err, errOtherHost):
		return http.StatusMisdirectedRequest
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	switch fault.CodeOf(err) {
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Conflict:
		return http.StatusConflict
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.TooMany:
		return http.StatusTooManyRequests
	}
	switch f.Kind {
	case fault.Script, fault.UserData:
		return http.StatusUnprocessableEntity
	case fault.Canceled:
		return http.StatusServiceUnavailable
	case fault.Environment:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// asProblem turns what the HTTP library says of a request into a Problem.
func asProblem(_ huma.Context, _ string, v any) (any, error) {
	said, is := v.(*huma.ErrorModel)
	if !is {
		return v, nil
	}
	p := &Problem{Type: "about:blank", Title: said.Title, Status: said.Status, Detail: said.Detail, Kind: fault.Script}
	for _, e := range said.Errors {
		p.Errors = append(p.Errors, ProblemOfMember{Location: e.Location, Message: e.Message})
	}
	return p, nil
}

// writeProblem answers a request that no operation has taken.
func writeProblem(w http.ResponseWriter, p *Problem) {
	w.Header().Set("Content-Type", p.ContentType(""))
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client has gone
}
