package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"thalweg/internal/app"
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
	ctx, end := a.showProgress(ctx)
	defer end()
	p, err := (&app.ScriptService{Remote: client, Known: a.known}).Infer(ctx, c.Files,
		app.InferOptions{Separator: c.Separator, Header: c.Header, MemoryBytes: bytes, Told: a.at.text})
	if err != nil {
		return err
	}
	end()
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
