package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/api"
	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

// serveDrain is the time that requests have to end when the server is told to.
const serveDrain = 10 * time.Second

// serveCmd answers programs and browsers.
type serveCmd struct {
	engineFlags
	remoteFlags
	placeFlags
	Listen  string        `help:"Address to answer at." default:"127.0.0.1:8431" placeholder:"HOST:PORT"`
	Worker  bool          `help:"Work on runs, too, as a worker does."`
	Drain   time.Duration `help:"With --worker: how long batches in flight may take when the server is asked to end (SIGTERM)." placeholder:"TIME"`
	Isolate bool          `help:"With --worker: execute batches in processes of their own, one a slot."`
	Verbose bool          `short:"v" help:"Log what the machinery does, to standard error."`
}

// Run implements kong's command.
func (c *serveCmd) Run(ctx context.Context, a *console) (err error) {
	logger := logTo(a, workerLevel(c.Verbose))
	ln, err := c.listenAt(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = ln.Close() }() // Serve has closed it, if it began
	if c.Worker {
		if err := c.findPython(nil, logger); err != nil {
			return err
		}
	}
	place, err := openMeasured(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, workerLevel(c.Verbose), app.Observers{})
	if err != nil {
		return err
	}
	defer place.close()
	users, err := place.home.OpenUsers(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, users.Close()) }()
	news := place.home.Follow() // before there is work
	a.polite.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.answer(ctx, a, place, news, users, ln, logger) })
	if c.Worker {
		group.Go(func() error { return c.work(ctx, a, place) })
	}
	return group.Wait()
}

// answer serves the API until ctx ends, or the process is told to drain.
func (c *serveCmd) answer(ctx context.Context, a *console, place *workplace, news *app.News, users *app.Users,
	ln net.Listener,
	logger *slog.Logger) error {
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
	defer func() { stop(); <-drained }()
	port := ln.Addr().(*net.TCPAddr).Port
	server := api.New(api.Config{App: place.home, News: news, Access: users.Service, Known: a.known, Build: build(), Logger: logger,
		Hosts: hostsOf(ln), Cookie: "thalweg-" + strconv.Itoa(port),
		Ready: func() error { return ctx.Err() }})
	secret := users.StartSecret(a.caller().Actor)
	a.known.Add(secret, "{start token}")
	fmt.Fprintf(a.screen, "serving http://%s/start#%s\n", ln.Addr(), secret)
	return errors.Join(server.Serve(ctx, ln, serveDrain), server.Close())
}

// work takes batches until ctx ends.
func (c *serveCmd) work(ctx context.Context, a *console, place *workplace) error {
	opts := app.WorkOptions{Engine: engineSaid, Drain: a.drain, DrainTime: c.Drain, Joined: a.joined}
	opts.Observe, opts.Waiting = a.observeWork, a.waiting
	if c.Isolate {
		opts.Isolate = app.Isolation(ownExecutable, c.remoteFlags)
	}
	err := place.home.Work(ctx, a.caller(), opts, nil)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// listenAt begins to listen. Beyond this machine nobody may listen without users and TLS.
func (c *serveCmd) listenAt(ctx context.Context) (net.Listener, error) {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "--listen " + c.Listen + " is no address", Err: err,
			Hint: "write HOST:PORT, such as 127.0.0.1:8431"}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, &fault.Error{Kind: fault.Script,
			Message: "--listen " + c.Listen + " would answer other machines, without encryption",
			Hint:    "listen at 127.0.0.1, and let a proxy with TLS or an SSH tunnel come in there"}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the server cannot listen at " + c.Listen, Err: err,
			Hint: "another server may have the port (ss -ltnp shows whose it is): name another with --listen"}
	}
	return ln, nil
}

// hostsOf lists the hosts that a browser on this machine names.
func hostsOf(ln net.Listener) []string {
	at := ln.Addr().(*net.TCPAddr)
	port := strconv.Itoa(at.Port)
	return []string{net.JoinHostPort(at.IP.String(), port), net.JoinHostPort("localhost", port)}
}
