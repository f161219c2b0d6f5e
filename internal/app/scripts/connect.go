package scripts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/app/outputs"
	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/base/keeper"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/doctor"
)

// Limits of the connection check.
const (
	connectFilesMax = 1_000   // that a pattern of a server may match
	connectBytes    = 4 << 10 // that are read of a file of another machine
)

// connection looks at what a script needs beside itself, without running it.
type connection struct {
	client *remote.Client
	s      *script.Script
	python string
	found  []doctor.Finding
}

func (c *connection) add(service, check, seen string, err error, mend string) {
	f := doctor.Finding{Service: service, Check: check, Verdict: doctor.Good, Seen: seen}
	if err != nil {
		f.Verdict, f.Seen, f.Mend = doctor.Bad, err.Error(), mend
		if hint := fault.Of(err).Hint; hint != "" {
			f.Mend = hint
		}
	}
	c.found = append(c.found, f)
}

// look looks at all inputs, outputs and the interpreter.
func (c *connection) look(ctx context.Context) error {
	python := false
	for _, n := range c.s.Nodes {
		for _, r := range n.FileReaders() {
			for _, u := range r.URLs {
				if r.Database() {
					c.add("input", n.Name, address.Redact(u.URL)+": it can be read",
						outputs.CheckSource(ctx, c.client, c.s, r, u.URL), "")
					continue
				}
				c.input(ctx, n, u.URL)
			}
		}
		switch {
		case n.Out != nil && n.Out.Target != nil:
			c.add("output", n.Name, address.Redact(n.Out.URL)+": can be written",
				outputs.CheckTarget(ctx, c.client, c.s, n), "")
		case n.Out != nil:
			c.output(ctx, n, n.Out.URL)
		}
		python = python || n.PyCalc != nil || n.PyTable != nil
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if python {
		path, err := keeper.Find(c.python)
		c.add("python", "interpreter", path, err, "install it, or name another one with {{set python}}")
	}
	return nil
}

// input looks whether an input file can be read.
func (c *connection) input(ctx context.Context, n *script.Node, url string) {
	shown := address.Redact(url)
	if !address.Remote(url) {
		path, err := address.Local(url)
		var found []string
		if err == nil {
			found, err = c.client.Policy().Glob(c.s.Dir, path)
		}
		if err == nil && len(found) == 0 {
			err = errors.New(shown + ": no file matches")
		}
		if err == nil {
			var f *os.File
			if f, err = c.client.Policy().Open(address.Seen(c.s.Dir, found[0])); err == nil {
				err = f.Close()
			}
		}
		if fault.CodeOf(err) == fault.Forbidden {
			c.add("input", n.Name, shown, err, "")
			return
		}
		c.add("input", n.Name, shown+": "+format.Counted(int64(len(found)), "file", "files"), err,
			"relative names are seen from the working directory")
		return
	}
	if strings.ContainsAny(url, "*?") && !strings.HasPrefix(url, "http") {
		found, err := c.client.List(ctx, url, connectFilesMax)
		if err == nil && len(found) == 0 {
			err = errors.New(shown + ": no file matches")
		}
		c.add("input", n.Name, shown+": "+format.Counted(int64(len(found)), "file", "files"), err, "")
		return
	}
	dir, err := os.MkdirTemp("", "thalweg-connect-*")
	if err == nil {
		defer os.RemoveAll(dir)
		err = c.client.Sample(ctx, url, connectBytes, filepath.Join(dir, "sample"), c.s)
	}
	c.add("input", n.Name, shown+": it can be read", err, "")
}

// output looks whether an output file could be written. Nothing is: of other machines, the
// address, the credentials and, where it can be listed, the directory are looked at.
func (c *connection) output(ctx context.Context, n *script.Node, url string) {
	shown := address.Redact(url)
	if !address.Remote(url) {
		path, err := address.LocalIn(c.s.Dir, url)
		dir := filepath.Dir(path)
		for err == nil {
			if _, failed := os.Stat(dir); failed == nil || filepath.Dir(dir) == dir {
				break
			}
			dir = filepath.Dir(dir)
		}
		if err == nil {
			if failed := unix.Access(dir, unix.W_OK); failed != nil {
				err = fmt.Errorf("%s: nothing can be written in %s: %w", shown, dir, failed)
			}
		}
		c.add("output", n.Name, shown+": can be written", err, "allow it, or name another directory")
		return
	}
	err := c.client.Check(ctx, url, c.s)
	seen := shown + ": the address and the credentials are there"
	if err == nil && !strings.Contains(url, "{") {
		if _, err = c.client.List(ctx, url, connectFilesMax); err == nil {
			seen = shown + ": the server answers"
		}
	}
	c.add("output", n.Name, seen, err, "")
}
