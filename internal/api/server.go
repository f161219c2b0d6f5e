package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Limits of connections.
const (
	headerBytesMax    = 16 << 10
	headerReadTimeout = 5 * time.Second
	idleTimeout       = 2 * time.Minute
	writeTimeout      = 90 * time.Second // of an answer that is no stream
)

// Config of a Server.
type Config struct {
	App     *app.App
	News    *app.News    // of App
	Serving *app.Serving // which scripts may be started
	Access  *access.Service
	// Provider signs people in; nil: only passwords do.
	Provider Provider
	Known    *app.Secrets // kept out of problems and logs
	Build    view.Build   // of this program
	Logger   *slog.Logger
	// Hosts are the names and addresses, each with its port unless that is the scheme's, for which the
	// server answers.
	Hosts   []string
	Proxies []string // addresses of proxies whose X-Forwarded-For is believed
	Cookie  string   // name of the session's cookie
	Secure  bool     // it is sent over TLS only
	Ready   func() error
	// Metrics answers with those of this process in the format of Prometheus.
	Metrics http.Handler
	Pages   Pages // nil: there is no web application
}

// Server answers the requests to the API.
type Server struct {
	app      *app.App
	access   *access.Service
	provider Provider
	known    *app.Secrets
	build    view.Build
	discreet *app.RunService // shows no values of data
	logger   *slog.Logger
	hosts    map[string]bool
	proxies  []string
	cookie   string
	secure   bool
	ready    func() error
	metrics  http.Handler
	pages    Pages
	news     *app.News
	jobs     *jobs
	serving  *app.Serving
	texts    app.TextWriter
	streams  streams
	streamed lately
	byUser   *limiter
	byHost   *limiter

	workspaces sync.Map // names of those that have runs

	heartbeat, eventTimeout time.Duration // of streams
	bodyTimeout             time.Duration // for a request's body

	mux  *http.ServeMux
	huma huma.API
}

// Close cancels the jobs and waits for them.
func (s *Server) Close() { s.jobs.close() }

// New returns a server of an instance. The caller closes it before the instance.
func New(cfg Config) *Server {
	s := &Server{app: cfg.App, news: cfg.News, serving: cfg.Serving, access: cfg.Access, provider: cfg.Provider, known: cfg.Known, build: cfg.Build,
		discreet: cfg.App.RunsWithoutValues(), logger: cfg.Logger,
		proxies: cfg.Proxies, cookie: cfg.Cookie, secure: cfg.Secure, ready: cfg.Ready, metrics: cfg.Metrics, pages: cfg.Pages,
		hosts: map[string]bool{}, mux: http.NewServeMux()}
	l := cfg.Serving.Limits
	s.byUser = newLimiter(l.UserRequestsPerSecond, l.UserRequestsBurst)
	s.byHost = newLimiter(l.AddressRequestsPerSecond, l.AddressRequestsBurst)
	s.streams = streams{most: l.Streams, mostOfOne: l.UserStreams, of: map[string]int{}}
	for _, h := range cfg.Hosts {
		s.hosts[strings.ToLower(h)] = true
	}
	s.heartbeat, s.eventTimeout, s.bodyTimeout = heartbeatEvery, eventTimeout, bodyReadTimeout
	s.jobs = newJobs()
	s.huma = humago.New(s.mux, humaConfig(cfg.Build.Version))
	s.register()
	s.mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", s.serveReady)
	s.mux.HandleFunc("GET /start", s.serveStart)
	if s.pages != nil {
		s.mux.HandleFunc("GET "+filesPath, s.serveFile)
	}
	s.registerProvider()
	return s
}

// OpenAPI returns the description of the operations.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.huma.OpenAPI() }

// humaConfig says how operations are described and answered.
func humaConfig(version string) huma.Config {
	c := huma.DefaultConfig("Thalweg", "1")
	c.Info.Description = "Runs of scripts: what they did, what they wait for, and orders to them. Program: " + version
	c.OpenAPIPath, c.DocsPath, c.SchemasPath = "/v1/openapi", "", ""
	c.CreateHooks = nil // no $schema in answers: they are the bytes of --json
	c.Transformers = []huma.Transformer{asProblem}
	c.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", schemaName)
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[view.Money](), reflect.TypeFor[float64]())
	c.Components.Schemas.RegisterTypeAlias(reflect.TypeFor[view.Diagnostic](), reflect.TypeFor[view.DiagnosticJSON]())
	c.Components.Responses = problemResponses(c.Components.Schemas)
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"session": {Type: "apiKey", In: "cookie", Name: "session", Description: "A browser that has signed in."},
		"token":   {Type: "http", Scheme: "bearer", Description: "A token, tw_…"},
	}
	return c
}

// schemaName names the schema of a type after its package, because several packages have a Run.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	path := t.PkgPath()
	name := huma.DefaultSchemaNamer(t, hint)
	pkg := path[strings.LastIndexByte(path, '/')+1:]
	if pkg == "" || pkg == "view" || pkg == "api" {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

// register makes all operations known.
func (s *Server) register() {
	s.registerMe()
	s.registerOwn()
	s.registerRuns()
	s.registerScripts()
	s.registerAuthor()
	s.registerOrders()
	s.registerBulk()
	s.registerGates()
	s.registerFleet()
	s.registerMetrics()
	s.registerStream()
	s.registerData()
	s.registerChecks()
	s.registerJobs()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if s.secure {
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	if !s.hosts[strings.ToLower(r.Host)] {
		writeProblem(w, problem(&fault.Error{Kind: fault.Script, Message: r.Host + " is not this server", Err: errOtherHost,
			Hint: "name the host in hosts of the server's configuration"}, s.known.Text))
		return
	}
	if r.URL.Path != healthPath {
		if err := s.byHost.take(networkOf(s.addressOf(r)), time.Now()); err != nil {
			writeProblem(w, problem(err, s.known.Text))
			return
		}
	}
	cross := http.NewCrossOriginProtection()
	if err := cross.Check(r); err != nil {
		writeProblem(w, problem(&fault.Error{Kind: fault.Script, Code: fault.Forbidden,
			Message: "a page of another site has sent this request"}, s.known.Text))
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" || redirected(r) {
		if s.isPage(r) {
			s.pages.ServePage(w, r)
			return
		}
		s.refuseUnknown(w, r)
		return
	}
	s.mux.ServeHTTP(w, withTexts(r))
}

// redirected reports whether the mux would send a client to another path.
func redirected(r *http.Request) bool {
	asked := r.URL.EscapedPath()
	clean := path.Clean("/" + asked)
	return asked+"/" == filesPath || asked != clean && (asked != clean+"/" || clean == "/")
}

// refuseUnknown answers a request for what is no operation.
func (s *Server) refuseUnknown(w http.ResponseWriter, r *http.Request) {
	to := &headerOnly{header: http.Header{}}
	s.mux.ServeHTTP(to, r)
	if redirected(r) {
		to.status = http.StatusNotFound
	}
	p := &Problem{Type: "about:blank", Title: http.StatusText(to.status), Status: to.status, Kind: fault.Script,
		Code: fault.NotFound, Detail: "there is nothing at this path", Hint: "/v1/openapi.json lists the operations"}
	if allow := to.header.Get("Allow"); allow != "" {
		w.Header().Set("Allow", allow)
		p.Code, p.Detail = "", "this path does not take "+r.Method
	}
	writeProblem(w, p)
}

// headerOnly keeps the status and the header of an answer.
type headerOnly struct {
	header http.Header
	status int
}

func (w *headerOnly) Header() http.Header { return w.header }

func (w *headerOnly) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return len(b), nil
}

func (w *headerOnly) WriteHeader(status int) { w.status = cmp.Or(w.status, status) }

// serveReady says whether the instance can be used.
func (s *Server) serveReady(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	err := s.ready()
	if err == nil {
		_, err = s.app.Runs.Latest(ctx, app.DefaultWorkspace, 1)
	}
	if err != nil {
		s.logger.Warn("not ready", "error", s.known.Text(err.Error()))
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ready")
}

// healthPath answers whoever asks, however often: it costs nothing.
const healthPath = "/healthz"

// readyTimeout limits how long the state may take to answer.
const readyTimeout = 2 * time.Second

// Serve answers requests that come in on ln until ctx ends. Then those under way
// have the time of drain to end; streams end at once.
func (s *Server) Serve(ctx context.Context, ln net.Listener, drain time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{Handler: s, ReadHeaderTimeout: headerReadTimeout, IdleTimeout: idleTimeout,
		WriteTimeout: writeTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog:    slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return context.WithValue(requests, drainKey{}, ctx.Done()) }}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			fail(fmt.Errorf("serve %s: %w", ln.Addr(), err))
		}
	}()
	<-ctx.Done()
	wait, stop := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer stop()
	if srv.Shutdown(wait) != nil { // what is still under way is cut off
		cancel()
		_ = srv.Close()
	}
	<-served
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// drainKey finds the channel that is closed when the server is told to end.
type drainKey struct{}
