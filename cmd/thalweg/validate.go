package main

import (
	"context"
	"fmt"

	"thalweg/internal/document"
)

type validateCmd struct {
	scriptFlags
	JSON bool `name:"json" help:"Print the problems as JSON."`
}

// validated is the JSON form of the result.
type validated struct {
	OK          bool                 `json:"ok"`
	Nodes       int                  `json:"nodes"`
	Diagnostics document.Diagnostics `json:"diagnostics"`
}

func (c *validateCmd) Run(ctx context.Context, a *app) error {
	s, diags, err := c.load(ctx, a)
	if err != nil {
		return err
	}
	out := validated{OK: s != nil, Diagnostics: diags}
	if s != nil {
		out.Nodes = len(s.Nodes)
	}
	if c.JSON {
		if diags == nil {
			out.Diagnostics = document.Diagnostics{}
		}
		if err := printJSON(a.stdout, out); err != nil {
			return err
		}
	} else {
		a.printDiagnostics(diags)
		if s != nil {
			fmt.Fprintf(a.stdout, "%s: %s, no errors\n", s.Path, countNodes(len(s.Nodes)))
		} else {
			fmt.Fprintf(a.stderr, "%s, %s\n", counted(len(diags.Errors()), "error", "errors"), counted(len(diags.Warnings()), "warning", "warnings"))
		}
	}
	if s == nil {
		return errReported{exitUsers}
	}
	return nil
}
