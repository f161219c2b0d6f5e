package main

import (
	"context"
	"io"
	"regexp"

	"thalweg/internal/app/scripts"
	"thalweg/internal/lang/graph"
)

type graphCmd struct {
	scriptFlags
	Format string `help:"svg or dot." enum:"svg,dot" default:"svg"`
	Fields bool   `help:"List the fields and indexes of tables."`
	Out    string `help:"Write to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
}

func (c *graphCmd) Run(ctx context.Context, a *app) error {
	s, diags, err := c.load(ctx, a)
	if err != nil {
		return err
	}
	if diags.HasErrors() {
		return &scripts.InvalidScriptError{Diagnostics: diags}
	}
	write := map[string]func(io.Writer, graph.Graph) error{"svg": graph.WriteSVG, "dot": graph.WriteDOT}[c.Format]
	to := outFile{path: c.Out, overwrite: c.Overwrite, mine: map[string]*regexp.Regexp{"svg": madeSVG,
		"dot": madeDOT}[c.Format]}
	return to.write(a, func(w io.Writer) error { return write(w, graph.FromScript(s, graph.Options{Fields: c.Fields})) })
}
