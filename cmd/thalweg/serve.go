package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/api"
	"thalweg/internal/app"
	"thalweg/internal/base/fault"
	"thalweg/internal/web"
)

// serveDrain is the time that requests have to end when the server is told to.
const serveDrain = 10 * time.Second

// sweepEvery is how often expired sessions and tokens are removed.
const sweepEvery = time.Hour

// serveCmd answers programs and browsers.
type serveCmd struct {
	engineFlags
	remoteFlags
	placeFlags
	Listen    string        `help:"Address to answer at; default: 127.0.0.1:8431." placeholder:"HOST:PORT"`
	Config    string        `help:"Configuration of the server." type:"path" placeholder:"FILE"`
	Worker    bool          `help:"Work on runs, too, as a worker does."`
	Scheduler bool          `help:"Begin runs of the configuration's scripts by their schedules and watches, too."`
	Drain     time.Duration `help:"With --worker: how long it may finish batches after SIGTERM." placeholder:"TIME"`
	Isolate   bool          `help:"With --worker: execute batches in processes of their own, one a slot."`
	limitFlags
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
}

// listenDefault is the address of a server that names none: of this machine, for this machine.
const listenDefault = "127.0.0.1:8431"

// Run implements kong's command.
func (c *serveCmd) Run(ctx context.Context, a *console) (err error) {
	cfg := app.DefaultServing()
	if c.Config != "" {
		if cfg, err = app.LoadServing(c.Config, a.process()); err != nil {
			return err
		}
	}
	if !c.Scheduler && c.again(a) != (app.LimitAsk{}) {
		return &fault.Error{Kind: fault.Script, Message: "--max-elapsed and --max-cost are of runs that schedules begin",
			Hint: "add --scheduler; who starts a run says what that may take"}
	}
	if c.Scheduler && len(cfg.Workspaces) == 0 {
		return &fault.Error{Kind: fault.Script, Message: "--scheduler has no scripts",
			Hint: "name the directories of scripts in the file of --config, under workspaces"}
	}
	return c.serve(ctx, a, cfg, opening{})
}

// opening says where a browser is to begin.
type opening struct {
	path string // "": the first page
	// is called once with the address that signs in; nil: nobody is
	show func(page string)
	keys func(ctx context.Context, a *console, home *app.App) // hears what is typed until ctx ends; nil: nothing is heard
}

// serve answers as a configuration says until ctx ends.
func (c *serveCmd) serve(ctx context.Context, a *console, cfg *app.Serving, first opening) (err error) {
	logger := logTo(a, workerLevel(c.Verbose))
	ln, err := c.listen(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }() // Serve has closed it, if it began
	if c.Worker || c.Scheduler && c.Cluster == "" {
		if err := c.findPython(nil, logger); err != nil {
			return err
		}
	}
	c.children = &app.Children{Program: ownExecutable, Client: c.remoteFlags}
	m := app.NewMetrics(version, a.drain, nil)
	shown := m.Handler()
	place, err := openMeasured(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, workerLevel(c.Verbose),
		m.Observers())
	if err != nil {
		return err
	}
	defer place.close()
	users, err := place.home.OpenUsers(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, users.Close()) }()
	server := serving{cfg: cfg, ln: ln, place: place, users: users, news: place.home.News, logger: logger,
		metrics: shown, first: first}
	if err := server.mayStart(ctx); err != nil {
		return err
	}
	a.polite.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.answer(ctx, a) })
	if c.Worker {
		group.Go(func() error { return c.work(ctx, a, place, m) })
	}
	if first.keys != nil {
		group.Go(func() error { first.keys(ctx, a, place.home); return nil })
	}
	if c.Scheduler {
		for workspace := range cfg.Workspaces {
			group.Go(func() error { return c.schedule(ctx, a, place, cfg, workspace) })
		}
	}
	return group.Wait()
}

// serving is a server that is about to answer.
type serving struct {
	cfg    *app.Serving
	ln     net.Listener
	place  *workplace
	users  *app.Users
	news   *app.News
	logger *slog.Logger

	metrics http.Handler
	first   opening
}

// local reports whether the server answers this machine only.
func (s *serving) local() bool { return s.ln.Addr().(*net.TCPAddr).IP.IsLoopback() }

// mayStart refuses to answer other machines without anybody who could log in.
func (s *serving) mayStart(ctx context.Context) error {
	users, err := s.users.Users(ctx)
	if err != nil || s.local() || len(users) > 0 || s.cfg.OIDC != nil {
		return err
	}
	return &fault.Error{Kind: fault.Script, Place: s.cfg.Place("listen"),
		Message: "the server would answer other machines, and there are no users",
		Hint:    "start it at 127.0.0.1 first, open the address that it prints, and make a user who is admin of *"}
}

// answer serves the API until ctx ends, or the process is told to drain.
func (s *serving) answer(ctx context.Context, a *console) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		select {
		case <-a.drain:
			stop()
		case <-ctx.Done():
		}
	}()
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		s.users.SweepEvery(ctx, sweepEvery)
	}()
	defer func() { stop(); <-drained; <-swept }()
	scheme, cookie := "http", "thalweg-"+strconv.Itoa(s.ln.Addr().(*net.TCPAddr).Port)
	secure := s.cfg.TLS != nil || len(s.cfg.Proxies) > 0
	if secure {
		scheme, cookie = "https", "__Host-thalweg"
	}
	config := api.Config{App: s.place.home, News: s.news, Serving: s.cfg, Access: s.users.Service,
		Known: a.known,
		Build: build(), Logger: s.logger, Hosts: s.hosts(), Proxies: s.cfg.Proxies, Cookie: cookie, Secure: secure,
		Ready: ctx.Err, Metrics: s.metrics}
	pages, err := web.New()
	if err != nil {
		return err
	}
	config.Pages = pages
	provider, err := app.NewProvider(s.cfg)
	if err != nil {
		return err
	}
	if provider != nil {
		config.Provider = provider
	}
	server := api.New(config)
	fmt.Fprintf(a.screen, "serving %s://%s\n", scheme, s.ln.Addr())
	if s.local() {
		secret := s.users.StartSecret(a.caller().Actor)
		a.known.Add(secret, "{start token}")
		next := ""
		if s.first.path != "" {
			next = "?next=" + url.QueryEscape(s.first.path)
		}
		page := fmt.Sprintf("%s://%s/start%s#%s", scheme, s.ln.Addr(), next, secret)
		fmt.Fprintf(a.screen, "to sign in: %s\n", page)
		if s.first.show != nil {
			s.first.show(page)
		}
	}
	defer server.Close()
	return server.Serve(ctx, s.ln, serveDrain)
}

// work takes batches until ctx ends.
func (c *serveCmd) work(ctx context.Context, a *console, place *workplace, m *app.Metrics) error {
	opts := app.WorkOptions{Engine: engineSaid, Drain: a.drain, DrainTime: c.Drain, Joined: a.joined}
	opts.Observe, opts.Waiting = a.observeWork, a.waiting
	if c.Isolate {
		opts.Isolate = app.Isolation(ownExecutable, c.remoteFlags)
	}
	err := place.home.Work(ctx, a.caller(), opts, m)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// schedule begins the runs of a workspace's scripts until ctx ends, and works on them unless a worker does.
func (c *serveCmd) schedule(ctx context.Context, a *console, place *workplace, cfg *app.Serving, workspace string) error {
	opts := app.WorkOptions{Most: runsAtOnce, Joined: a.joined, Drain: a.drain, DrainTime: c.Drain}
	opts.Observe, opts.Waiting = a.observeWork, a.waiting
	err := place.home.Schedule(ctx, a.caller(), app.ScheduleOptions{WorkerOptions: opts, Workspace: workspace,
		Scripts: cfg.Workspaces[workspace].Scripts, Beside: true, Policy: cfg.Policy(workspace), Leave: c.Worker,
		Limits:  c.ask(),
		Serving: a.printServed})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listen begins to listen, with TLS if the configuration has a certificate.
func (c *serveCmd) listen(ctx context.Context, cfg *app.Serving) (net.Listener, error) {
	at := cmp.Or(c.Listen, cfg.Listen, listenDefault)
	place := cfg.Place("listen")
	if c.Listen != "" {
		place = fault.Place{}
	}
	host, _, err := net.SplitHostPort(at)
	if err = cmp.Or(err, app.CheckListen(at)); err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "--listen " + at + " is no address", Err: err,
			Hint: "write HOST:PORT, such as 127.0.0.1:8431"}
	}
	if !app.Loopback(host) && cfg.TLS == nil && len(cfg.Proxies) == 0 {
		return nil, &fault.Error{Kind: fault.Script, Place: place,
			Message: at + " would answer other machines, without encryption",
			Hint:    "name a certificate, or a proxy that has one, in the file of --config; or listen at 127.0.0.1"}
	}
	var pair tls.Certificate
	if cfg.TLS != nil {
		if pair, err = tls.LoadX509KeyPair(cfg.TLS.Certificate, cfg.TLS.Key); err != nil {
			return nil, &fault.Error{Kind: fault.Script, Place: cfg.Place("tls"), Message: "the certificate cannot be used",
				Hint: "certificate and key are files in PEM that belong together", Err: err}
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Place: place, Message: "the server cannot listen at " + at, Err: err,
			Hint: "another server may have the port (ss -ltnp shows whose it is): name another with --listen"}
	}
	if cfg.TLS != nil {
		return tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"}}), nil
	}
	return ln, nil
}

// hosts lists the hosts that clients name.
func (s *serving) hosts() []string {
	at := s.ln.Addr().(*net.TCPAddr)
	port := strconv.Itoa(at.Port)
	out := slices.Clone(s.cfg.Hosts)
	for _, h := range s.cfg.Hosts {
		out = append(out, net.JoinHostPort(h, port))
	}
	if s.local() {
		out = append(out, net.JoinHostPort(at.IP.String(), port), net.JoinHostPort("localhost", port))
	}
	return out
}
