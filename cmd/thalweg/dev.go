package main

import (
	"context"
	"fmt"
	"html"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

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
		"and what has changed since it was run. A button runs that; the tables of the last good run stay in view " +
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
	if _, err := cfg.ScriptOf(c.Workspace, dev.Script); err != nil {
		return err
	}
	s := serveCmd{engineFlags: c.engineFlags, remoteFlags: c.remoteFlags, placeFlags: c.placeFlags, Worker: true,
		Verbose: c.Verbose, Listen: net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port))}
	first := opening{path: "/w/" + url.PathEscape(c.Workspace) + "/dev/" + url.PathEscape(dev.Script)}
	opener := desktopOpener(os.Getenv)
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
		if err := openPage(ctx, opener, private, page); err != nil {
			fmt.Fprintf(a.stderr, "%s the browser cannot be opened: %v\n", a.mark("warning:", yellow), err)
		}
	}
	return s.serve(ctx, a, cfg, first)
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

// desktopOpener returns the program that opens pages on this desktop; "": there is none.
func desktopOpener(getenv func(string) string) string {
	name := "open" // of macOS
	if getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "" {
		name = "xdg-open"
	}
	path, err := exec.LookPath(name)
	if err != nil || name == "open" && filepath.Dir(path) != "/usr/bin" || name == "open" && getenv("SSH_TTY") != "" {
		return ""
	}
	return path
}

// openPage has the desktop open a page. Whoever is on this machine sees the arguments of programs, and the address lets
// in: so they name a file in a private directory that leads to the page.
func openPage(ctx context.Context, opener, private, page string) error {
	file := filepath.Join(private, "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=` + html.EscapeString(page) +
		`"><title>Thalweg</title>`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, opener, file)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // what it says is for the desktop
	return nil
}
