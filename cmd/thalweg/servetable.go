package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/app"
	"thalweg/internal/app/tableserver"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

// serveTableCmd serves a finished table to clients of the Redis protocol.
type serveTableCmd struct {
	File      string `arg:"" name:"file" help:"Index of a table." type:"path"`
	Listen    string `help:"Address of plain connections; none: there are only those with TLS." default:"127.0.0.1:6379" placeholder:"HOST:PORT"`
	TLSListen string `name:"tls-listen" help:"Address of connections with TLS." placeholder:"HOST:PORT"`
	TLSCert   string `name:"tls-cert" help:"Certificate, in PEM." type:"path" placeholder:"FILE"`
	TLSKey    string `name:"tls-key" help:"Its key, in PEM." type:"path" placeholder:"FILE"`
	AuthFile  string `name:"auth-file" help:"Passwords of clients, one a line, or user and password." type:"path" placeholder:"FILE"`
	Memory    string `help:"Most for tables, two in a switch, e.g. 4GB; default: 80 % of the RAM." placeholder:"SIZE"`
	Cold      bool   `help:"Read rows from the disk: the table may be larger than memory."`
	Clients   int    `help:"Connections at once; 0 or default: 10000, or what files allow." placeholder:"N"`
	metricsFlag
}

// Help implements kong.HelpProvider.
func (c *serveTableCmd) Help() string {
	return "It answers GET, MGET, EXISTS, TYPE, HGET, HMGET, HGETALL and DBSIZE. When FILE leads to another file, or " +
		"at SIGHUP, that is verified and served instead; one that is damaged or too large is refused. SIGTERM ends it " +
		"once answers in flight are delivered. Beyond this machine it asks for passwords."
}

// Run implements kong's command.
func (c *serveTableCmd) Run(ctx context.Context, a *console) (err error) {
	a.polite.Store(true)
	a.rereads.Store(true)
	o, err := c.options(a)
	if err != nil {
		return err
	}
	began := time.Now()
	server, err := c.open(ctx, a, o)
	if errors.Is(err, app.ErrToldToEnd) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := server.Listen(ctx); err != nil {
		return err
	}
	if c.Metrics != "" {
		shown, err := server.Show(ctx, c.Metrics, version)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shown.Close()) }()
		fmt.Fprintf(a.stderr, "metrics: http://%s/metrics\n", shown.Address())
	}
	told(a, server.Serving(time.Since(began)), nil)
	for i, at := range server.Addresses() {
		if at != nil {
			fmt.Fprintf(a.stderr, "listening at %s%s\n", at, [...]string{"", ", with TLS"}[i])
		}
		if plain, ok := at.(*net.TCPAddr); ok && i == 0 && !plain.IP.IsLoopback() {
			fmt.Fprintln(a.stderr, "others on its network can read passwords and rows: --tls-listen encrypts them")
		}
	}
	following, stop := context.WithCancel(ctx)
	var follows sync.WaitGroup
	defer func() { stop(); follows.Wait() }()
	follows.Go(func() {
		server.Follow(following, c.File, a.again, func(s tableserver.Switched, err error) { told(a, s, err) })
	})
	return server.Serve(ctx, a.drain)
}

// told says what is served from now on, or why not.
func told(a *console, s tableserver.Switched, err error) {
	if err != nil {
		fmt.Fprintf(a.stderr, "not served: %v; the table before stays\n", err)
		return
	}
	fmt.Fprintf(a.stderr, "serving %q: %s, %s, opened in %s\n", cmp.Or(s.Meta.Source, "a table"),
		format.Counted(s.Rows, "row", "rows"), size(s.Bytes), s.Took.Round(100*time.Microsecond))
}

// open opens the table, unless the process is told to end meanwhile.
func (c *serveTableCmd) open(ctx context.Context, a *console, o tableserver.Options) (*tableserver.Server, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-a.drain:
			stop(app.ErrToldToEnd)
		case <-ctx.Done():
		}
	}()
	server, err := tableserver.New(ctx, c.File, o)
	if err != nil && errors.Is(context.Cause(ctx), app.ErrToldToEnd) {
		return nil, app.ErrToldToEnd
	}
	return server, err
}

const (
	clientsDefault = 10_000
	ownFiles       = 64 // that are no connections
)

// options settles what the command line says.
func (c *serveTableCmd) options(a *console) (o tableserver.Options, err error) {
	o = tableserver.Options{Address: c.Listen, TLSAddress: c.TLSListen, Cold: c.Cold, MaxClients: c.Clients,
		Log: logTo(a, slog.LevelInfo)}
	if c.Listen == "none" {
		o.Address = ""
	}
	if o.MemoryBytes, err = parseSize(c.Memory); err != nil {
		return o, err
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return o, fmt.Errorf("ask how many files may be open: %w", err)
	}
	switch most := int(min(files.Cur, 1<<30)) - ownFiles; {
	case o.MaxClients == 0:
		o.MaxClients = max(1, min(clientsDefault, most))
	case o.MaxClients > most:
		return o, &fault.Error{Kind: fault.Environment, Hint: "raise the limit of open files (ulimit -n)",
			Message: fmt.Sprintf("--clients %d: this process may have %d files open", o.MaxClients, files.Cur)}
	}
	if c.AuthFile != "" {
		passwords, err := tableserver.ReadPasswords(c.AuthFile, func(value string) { a.known.Add(value, "{password}") })
		if err != nil {
			return o, err
		}
		o.Check = passwords.Check
	}
	if o.TLS, err = c.certificate(); err != nil {
		return o, err
	}
	return o, c.mayListen(o)
}

// certificate reads what connections with TLS show.
func (c *serveTableCmd) certificate() (*tls.Config, error) {
	if c.TLSListen == "" && c.TLSCert == "" && c.TLSKey == "" {
		return nil, nil
	}
	if c.TLSListen == "" || c.TLSCert == "" || c.TLSKey == "" {
		return nil, &fault.Error{Kind: fault.Script, Message: "--tls-listen, --tls-cert and --tls-key go together"}
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the certificate cannot be used", Err: err,
			Hint: "certificate and key are files in PEM that belong together"}
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// mayListen refuses addresses that are none, and to answer other machines without asking who they are.
func (c *serveTableCmd) mayListen(o tableserver.Options) error {
	if o.Address == "" && o.TLSAddress == "" {
		return &fault.Error{Kind: fault.Script, Message: "--listen none leaves nothing to listen at",
			Hint: "name an address with --tls-listen"}
	}
	for name, at := range map[string]string{"--listen": o.Address, "--tls-listen": o.TLSAddress} {
		if at == "" {
			continue
		}
		host, _, err := net.SplitHostPort(at)
		if err = cmp.Or(err, app.CheckListen(at)); err != nil {
			return &fault.Error{Kind: fault.Script, Message: name + " " + at + " is no address", Err: err,
				Hint: "write HOST:PORT, such as 127.0.0.1:6379"}
		}
		if !app.Loopback(host) && o.Check == nil {
			return &fault.Error{Kind: fault.Script, Message: name + " " + at + " would answer other machines, whoever asks",
				Hint: "name a file of passwords with --auth-file, or listen at 127.0.0.1"}
		}
	}
	return nil
}
