package main

import (
	"context"
	"io"
	"regexp"

	"thalweg/internal/app"
)

type graphCmd struct {
	scriptFlags
	Format string `help:"svg or dot." enum:"svg,dot" default:"svg"`
	Fields bool   `help:"List the fields and indexes of tables."`
	Out    string `help:"Write to FILE instead of standard output." short:"o" placeholder:"FILE" type:"path"`
	overwriteFlag
}

func (c *graphCmd) Run(ctx context.Context, a *console) error {
	s, _, err := c.valid(ctx, a)
	if err != nil {
		return err
	}
	to := outFile{path: c.Out, overwrite: c.Overwrite, mine: map[string]*regexp.Regexp{"svg": madeSVG,
		"dot": madeDOT}[c.Format]}
	return to.write(a, func(w io.Writer) error { return app.DrawScript(w, s, c.Format, c.Fields) })
}
