package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/base/fault"
)

// What a request may be.
const (
	bodyBytesMax    = 1 << 20          // of a request; those that take scripts or files say their own
	bodyReadTimeout = 10 * time.Second // for a request's body
)

// operation describes an operation of the API.
type operation struct {
	id      string // unique; the name of the call in clients
	method  string // of HTTP
	path    string // with {workspace}, if it is of one
	summary string // one line
	tag     string // what it is about
	needs   access.Permission
	status  int   // of success; 0: 200, or 204 without a body
	bytes   int64 // of a body at most; 0: bodyBytesMax
	// media are the types of an answer that is no JSON.
	media []string
	// missing: what it is about may not be there, although its path has no parameters.
	missing bool
}

// asker is who asks for an operation, and where it is asked from.
type asker struct {
	access.Principal
	workspace string // of the operation; "": it is of none
	run       string // likewise, as it is named
	from      string // address of the client
	needs     access.Permission
}

// caller returns the asker as the services know callers.
func (a asker) caller() app.Caller { return a.Caller(a.workspace) }

// reply is a body with the headers that some answers have.
type reply[T any] struct {
	ETag     string `header:"ETag"`
	Location string `header:"Location"`
	Body     T
}

// body answers with a value and no headers.
func body[T any](v T, err error) (*reply[T], error) { return &reply[T]{Body: v}, err }

// none is the input of operations that take none.
type none struct{}

// workspaceName is the pattern of OfWorkspace.
var workspaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`)

// OfWorkspace is the input of operations of a workspace.
type OfWorkspace struct {
	Workspace string `path:"workspace" pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$" doc:"Name of the workspace."`
}

// add registers an operation. do is called with who asks, once the permission is
// checked. Its error becomes a Problem.
func add[I, O any](s *Server, o operation, do func(ctx context.Context, by asker, in *I) (*O, error)) {
	op := huma.Operation{OperationID: o.id, Method: o.method, Path: o.path, Summary: o.summary, Tags: []string{o.tag},
		DefaultStatus: o.status, MaxBodyBytes: bodyBytesMax, BodyReadTimeout: -1, // no deadline any more: see readable
		Extensions:                   map[string]any{"x-permission": string(o.needs)},
		RejectUnknownQueryParameters: true}
	if o.bytes > 0 {
		op.MaxBodyBytes = o.bytes
	}
	op.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) { s.admit(o, c, next) }}
	op.Responses = o.responses(reflect.TypeFor[I]())
	if o.needs != access.Anyone {
		op.Security = []map[string][]string{{"session": {}}, {"token": {}}}
	}
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		by, _ := ctx.Value(askerKey{}).(asker)
		var out *O
		err := fault.Guard("answering a request", func() (err error) {
			out, err = do(ctx, by, in)
			return err
		})
		if err != nil {
			return nil, s.failed(ctx, o, err)
		}
		s.noteFailures(ctx, by, o, out)
		return out, nil
	})
}

type askerKey struct{}

// admit lets a request go on whose sender has the permission of the operation.
func (s *Server) admit(o operation, c huma.Context, next func(huma.Context)) {
	by, err := s.asker(o, c)
	if err != nil {
		s.refuse(c, s.failed(c.Context(), o, err))
		return
	}
	joinTags(c)
	if s.readable(c) {
		next(huma.WithValue(c, askerKey{}, by))
	}
}

// refuse answers with a problem.
func (s *Server) refuse(c huma.Context, p *Problem) {
	for name, values := range p.GetHeaders() {
		c.SetHeader(name, values[0])
	}
	c.SetHeader("Content-Type", p.ContentType(""))
	c.SetStatus(p.Status)
	_ = s.huma.Marshal(c.BodyWriter(), "application/json", p) // the client has gone
}

// asker says who sends a request, or why its sender may not ask for the operation.
func (s *Server) asker(o operation, c huma.Context) (asker, error) {
	by := asker{workspace: c.Param("workspace"), run: c.Param("run"), from: s.from(c), needs: o.needs}
	if o.needs == access.Anyone {
		return by, nil
	}
	p, err := s.authenticate(c)
	if err != nil {
		return by, err
	}
	by.Principal = p
	if err := s.byUser.take(p.Name(), time.Now()); err != nil {
		return by, err
	}
	if o.needs != access.Self && !p.May(by.workspace, o.needs) {
		s.access.Note(c.Context(), p, access.Refused, by.workspace, o.id, by.from)
		return by, errNotMay
	}
	return by, s.knowsWorkspace(c.Context(), by.workspace)
}

// knowsWorkspace refuses a workspace that has no runs and is not in the configuration.
func (s *Server) knowsWorkspace(ctx context.Context, name string) error {
	_, named := s.serving.Workspaces[name]
	if _, seen := s.workspaces.Load(name); seen || named || name == "" || name == app.DefaultWorkspace ||
		!workspaceName.MatchString(name) { // which is said with the other parameters
		return nil
	}
	names, err := s.app.Runs.Workspaces(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, name) {
		return &fault.Error{Kind: fault.Script, Code: fault.NotFound, Message: "there is no workspace " + name,
			Hint: "a workspace begins with its first run, or in the server's configuration; GET /v1/workspaces lists them"}
	}
	s.workspaces.Store(name, true)
	return nil
}

// failed makes a Problem of an error. The log has what is not told to clients.
func (s *Server) failed(ctx context.Context, o operation, err error) *Problem {
	return s.problem(ctx, o, err).told(ctx)
}

// problem is failed with marks in its texts.
func (s *Server) problem(ctx context.Context, o operation, err error) *Problem {
	p := problem(err, s.known.Text)
	if p.Status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		s.logger.ErrorContext(ctx, "a request has failed", "operation", o.id, "error", s.known.Text(err.Error()))
	}
	return p
}

// from returns the address of the client, as far as it can be believed.
func (s *Server) from(c huma.Context) string {
	r, _ := humago.Unwrap(c)
	return s.addressOf(r)
}

// addressOf is from, of a request that is of no operation.
func (s *Server) addressOf(r *http.Request) string {
	host := r.RemoteAddr
	if i := strings.LastIndexByte(host, ':'); i > 0 {
		host = host[:i]
	}
	if !slices.Contains(s.proxies, strings.Trim(host, "[]")) {
		return host
	}
	said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if last := strings.TrimSpace(said[len(said)-1]); last != "" {
		return last
	}
	return host
}

// requestToken names a request of somebody that can be repeated, by its Idempotency-Key and what it asks for: another
// request with the same key is another one. "": it has no key.
func requestToken(by asker, key string, asks ...any) string {
	if key == "" {
		return ""
	}
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, a := range append(asks, key) {
		_ = enc.Encode(a) // of what was decoded from JSON: neither this nor a hash fails
	}
	return by.Name() + " " + hex.EncodeToString(h.Sum(nil)[:16])
}
