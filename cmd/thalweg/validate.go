package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

type validateCmd struct {
	scriptFlags
	Connect bool   `help:"Try, too, to reach inputs and outputs, and to start the interpreter."`
	Python  string `help:"With --connect: the Python interpreter." default:"python3" env:"THALWEG_PYTHON"`
	JSON    bool   `name:"json" help:"Print the problems as JSON."`

	Workspace string `help:"With --server: workspace of the script." default:"${workspace}" env:"THALWEG_WORKSPACE" placeholder:"NAME"`
}

func (c *validateCmd) Run(ctx context.Context, a *console) error {
	out, err := c.validate(ctx, a)
	if err != nil {
		return err
	}
	diags := out.Diagnostics
	if c.JSON {
		if err := printJSON(a.stdout, out); err != nil {
			return err
		}
	} else {
		a.printDiagnostics(diags)
		if !diags.HasErrors() {
			fmt.Fprintf(a.stdout, "%s: %s, no errors\n", c.Script, countNodes(out.Nodes))
		} else {
			fmt.Fprintf(a.stderr, "%s, %s\n", counted(len(diags.Errors()), "error", "errors"),
				counted(len(diags.Warnings()), "warning", "warnings"))
		}
	}
	if len(out.Connections) > 0 && !c.JSON {
		a.printFindings(out.Connections)
	}
	switch {
	case out.OK:
		return nil
	case diags.HasErrors(): // as run does, which cannot read it either
		return errReported{exitCode(fault.Of(diags.Err()).Kind)}
	}
	return errReported{exitUsers}
}

// validate lists the problems, as they are here or on the server.
func (c *validateCmd) validate(ctx context.Context, a *console) (view.Validated, error) {
	if a.server != "" {
		client, sent, err := c.throughServer(ctx, a)
		if err != nil {
			return view.Validated{}, err
		}
		out, err := client.Validate(ctx, c.Workspace, sent)
		out.Diagnostics = c.placesHere(out.Diagnostics)
		return out, err
	}
	client, err := c.client(nil)
	if err != nil {
		return view.Validated{}, err
	}
	defer client.Close()
	out, _, err := (&app.ScriptService{Remote: client, Known: a.known}).Validate(ctx, c.named(), c.Connect, c.Python)
	return out, err
}
