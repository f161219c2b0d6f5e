package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

// devCmd serves the page on which a script is developed.
type devCmd struct {
	scriptFlags
	engineFlags
	Port      int  `help:"Port of this machine to answer at; default: any that is free." placeholder:"N"`
	NoBrowser bool `help:"Only print the address."`
	Verbose   bool `short:"v" help:"Log what the machinery does, to standard error."`
	stateFlags
}

// Help implements kong.HelpProvider.
func (c *devCmd) Help() string {
	return "The page shows what is wrong with the script whenever its file is written, or one that it includes or uses, " +
		"and what has changed since it was run. A button runs that, and so do r and Enter in the terminal; the tables of the last good run stay in view " +
		"meanwhile. It answers this machine only, and works on runs as a worker does."
}

// Run implements kong's command.
func (c *devCmd) Run(ctx context.Context, a *console) error {
	if a.protected() { // runs of a page replace outputs without asking
		return &fault.Error{Kind: fault.Script, Message: a.environment.Name + " is protected: no script is developed there",
			Hint: "choose another environment"}
	}
	dev, dir, err := c.seen()
	if err != nil {
		return err
	}
	cfg := app.DefaultServing()
	cfg.Workspaces = map[string]app.ServedWorkspace{c.Workspace: {Scripts: []string{dir}, Parameters: true, Dev: &dev}}
	script, err := cfg.ScriptOf(c.Workspace, dev.Script)
	if err != nil {
		return err
	}
	s := serveCmd{engineFlags: c.engineFlags, remoteFlags: c.remoteFlags, placeFlags: c.placeFlags, Worker: true,
		Verbose: c.Verbose, Listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port))}
	first := opening{path: "/w/" + url.PathEscape(c.Workspace) + "/dev/" + url.PathEscape(dev.Script)}
	first.keys = func(ctx context.Context, a *console, home *app.App) {
		a.hearKeys(ctx, home, app.RunOptions{Workspace: c.Workspace, ScriptPath: script.Path, ParamsPath: dev.ParamsPath,
			Dir: dev.Dir, Params: dev.Params, Lenient: dev.Lenient, Reuse: true, Policy: cfg.Policy(c.Workspace)})
	}
	opener := app.DesktopOpener(os.Getenv)
	if c.NoBrowser || !a.terminal || opener == "" {
		return s.serve(ctx, a, cfg, first)
	}
	private, err := os.MkdirTemp("", "thalweg-dev-")
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "make a directory for the browser's first page", Err: err,
			Hint: "check TMPDIR, or add --no-browser"}
	}
	defer os.RemoveAll(private) // in a directory that the system clears
	first.show = func(page string) {
		go func() {
			if err := app.OpenPage(ctx, opener, private, page); err != nil && ctx.Err() == nil {
				fmt.Fprintf(a.stderr, "%s the browser cannot be opened: %v\n", a.mark("warning:", yellow), err)
			}
		}()
	}
	return s.serve(ctx, a, cfg, first)
}

// hearKeys runs what has changed whenever r is typed, until ctx or standard input ends.
func (a *console) hearKeys(ctx context.Context, home *app.App, o app.RunOptions) {
	signal.Ignore(syscall.SIGTTIN) // in the background of a shell it hears nothing, and goes on
	lines := make(chan string)
	go func() { // it may wait for the terminal until the process ends
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	fmt.Fprintln(a.screen, "r and Enter run what has changed")
	for {
		select {
		case line, more := <-lines:
			if !more {
				return
			}
			if strings.TrimSpace(line) == "r" {
				a.runAgain(ctx, home, o)
			}
		case <-a.drain:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (a *console) runAgain(ctx context.Context, home *app.App, o app.RunOptions) {
	key, warnings, err := home.Submit(ctx, a.caller(), o)
	if err != nil {
		a.report(ctx, err)
		return
	}
	a.printDiagnostics(warnings)
	fmt.Fprintf(a.stderr, "run %d has begun\n", key.Run)
}

// seen returns how the script is seen, as run sees it, and the directory that it is in.
func (c *devCmd) seen() (dev app.Dev, dir string, err error) {
	path, err := filepath.EvalSymlinks(c.Script)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return dev, "", &fault.Error{Kind: fault.Script, Message: "there is no script " + c.Script + " on this machine",
			Hint: "`thalweg init` makes one that runs", Err: err}
	}
	dev = app.Dev{Script: filepath.Base(path), ParamsPath: c.Params, Params: c.Param, Lenient: c.Lenient}
	if dev.Dir, err = os.Getwd(); err != nil {
		return dev, "", fmt.Errorf("find the working directory: %w", err)
	}
	return dev, filepath.Dir(path), nil
}
