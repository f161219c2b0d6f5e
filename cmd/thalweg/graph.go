package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"thalweg/internal/fault"
	"thalweg/internal/graph"
	"thalweg/internal/local"
	"thalweg/internal/script"
)

type graphCmd struct {
	Script string `arg:"" help:"Script: .yaml or .json."`
	Params string `help:"File with the script's parameters." placeholder:"FILE"`
	Format string `help:"svg or dot." enum:"svg,dot" default:"svg"`
	Fields bool   `help:"List the fields and indexes of tables."`
	Out    string `help:"Write to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
}

func (c *graphCmd) Run(ctx context.Context, a *app) (err error) {
	s, diags := script.Load(ctx, local.Sources(c.Script, c.Params))
	if diags.HasErrors() {
		return &local.InvalidScriptError{Diagnostics: diags}
	}
	out := a.stdout
	if c.Out != "" {
		f, err := os.Create(c.Out)
		if err != nil {
			return &fault.Error{Kind: fault.Environment, Message: "create " + c.Out, Err: err}
		}
		defer func() {
			if cerr := f.Close(); err == nil && cerr != nil {
				err = fmt.Errorf("write %s: %w", c.Out, cerr)
			}
		}()
		out = f
	}
	write := map[string]func(io.Writer, graph.Graph) error{"svg": graph.WriteSVG, "dot": graph.WriteDOT}[c.Format]
	return write(out, graph.FromScript(s, graph.Options{Fields: c.Fields}))
}
