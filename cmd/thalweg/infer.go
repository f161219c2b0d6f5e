package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

type inferCmd struct {
	Files     []string `arg:"" name:"file" help:"CSV, JSON, Excel and Parquet files: names, patterns, addresses."`
	Separator string   `help:"Separator of a CSV file; found out by default." placeholder:"CHAR"`
	Header    *bool    `help:"Whether the first record of a CSV file is a header; found out by default." negatable:""`
	Out       string   `help:"Write to FILE, and a schema for editors beside it." short:"o" placeholder:"FILE" type:"path"`
	Overwrite bool     `help:"Replace FILE if it is there."`
	JSON      bool     `name:"json" help:"Print what was found out as JSON instead of a script."`
	Strict    bool     `help:"Fail, and write nothing, if anything is left out, put aside or guessed."`
	Memory    string   `help:"Memory for reading the file." default:"2GB" placeholder:"SIZE"`
	remoteFlags
}

func (c *inferCmd) Run(ctx context.Context, a *console) (err error) {
	to := outFile{path: c.Out, overwrite: c.Overwrite}
	if err := to.check(); err != nil {
		return err
	}
	bytes, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	client, err := c.client(newLogger(a, false))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	progress := newLookProgress(a)
	defer progress.end()
	p, err := (&app.ScriptService{Remote: client, Known: a.known}).Infer(view.HearProgress(ctx, progress.show), c.Files,
		app.InferOptions{Separator: c.Separator, Header: c.Header, MemoryBytes: bytes, Told: a.at.text})
	if err != nil {
		return err
	}
	progress.end()
	if err := c.sayDoubts(a, p); err != nil {
		return err
	}
	if c.JSON {
		return to.write(a, func(w io.Writer) error { return printJSON(w, p.Inferred) })
	}
	if err := to.write(a, func(w io.Writer) error { return p.WriteScript(w, c.Out != "") }); err != nil || c.Out == "" {
		return err
	}
	return app.WriteSchemaBeside(c.Out)
}

// sayDoubts tells what the proposal leaves out or guesses, which is an error if that is asked for.
func (c *inferCmd) sayDoubts(a *console, p app.Proposal) error {
	if len(p.Doubts) == 0 {
		return nil
	}
	things := format.Counted(int64(len(p.Doubts)), "thing", "things")
	fmt.Fprintf(a.stderr, "infer: %s to look at:\n", things)
	for _, d := range p.Doubts {
		fmt.Fprintf(a.stderr, "  %s: %s\n", d.Kind, d.Text)
	}
	if !c.Strict {
		return nil
	}
	return &fault.Error{Kind: fault.UserData, Place: fault.Place{File: p.First()},
		Message: "nothing is written: --strict asks for a proposal that leaves nothing out and guesses nothing (" +
			things + " to look at)",
		Hint: "correct the files or name fewer of them; or leave out --strict and look at what the script does"}
}

// lookProgress says on a terminal how far a look at files is, once it takes long.
type lookProgress struct {
	a     *console
	mu    sync.Mutex
	begun time.Time
	last  time.Time
	shown bool
}

func newLookProgress(a *console) *lookProgress { return &lookProgress{a: a, begun: time.Now()} }

// show is called by whoever looks.
func (l *lookProgress) show(p view.Progress) {
	const patience, pause = time.Second, 200 * time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.a.terminal || now.Sub(l.begun) < patience || now.Sub(l.last) < pause || p.Of == 0 {
		return
	}
	l.last, l.shown = now, true
	fmt.Fprintf(l.a.stderr, "\r\x1b[K%s: %s of %s", p.Phase, format.Size(p.Done), format.Size(p.Of))
}

// end clears what was shown.
func (l *lookProgress) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.a.stderr, "\r\x1b[K")
	}
	l.shown = false
}
