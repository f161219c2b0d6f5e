package main

import (
	"context"
	"io"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// check looks at what the flags of a picture go with.
func (c *showCmd) check() error {
	switch {
	case c.Workers && (c.Node != "" || c.SVG):
		return &fault.Error{Kind: fault.Script, Message: "--workers shows those of a whole run",
			Hint: "leave the node, the batch and --svg out"}
	case c.SVG && (c.Node != "" || c.JSON):
		return &fault.Error{Kind: fault.Script, Message: "--svg draws a whole run",
			Hint: "leave the node, the batch and --json out"}
	case !c.SVG && c.Out != "":
		return &fault.Error{Kind: fault.Script, Message: "--out is where a picture goes", Hint: "add --svg"}
	}
	return nil
}

// draw writes the picture of a run.
func (c *showCmd) draw(ctx context.Context, a *console, home *app.App, run view.RunKey, d view.RunDetail) error {
	s, _, err := home.Data.ScriptOf(ctx, run)
	if err != nil {
		return err
	}
	return outFile{path: c.Out, overwrite: c.Overwrite, mine: madeSVG}.write(a,
		func(w io.Writer) error { return app.Draw(w, s, d, app.DrawOptions{}) })
}
