package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
	"thalweg/internal/base/fault"
)

type validateCmd struct {
	scriptFlags
	Connect bool   `help:"Try, too, to reach inputs and outputs, and to start the interpreter."`
	Python  string `help:"With --connect: the Python interpreter." default:"python3" env:"THALWEG_PYTHON"`
	JSON    bool   `name:"json" help:"Print the problems as JSON."`
}

func (c *validateCmd) Run(ctx context.Context, a *console) error {
	client, err := c.client(nil)
	if err != nil {
		return err
	}
	defer client.Close()
	out, s, err := (&app.ScriptService{Remote: client, Known: a.known}).Validate(ctx, c.named(), c.Connect, c.Python)
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
		if s != nil {
			fmt.Fprintf(a.stdout, "%s: %s, no errors\n", s.Path, countNodes(len(s.Nodes)))
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
	case s == nil: // as run does, which cannot read it either
		return errReported{exitCode(fault.Of(diags.Err()).Kind)}
	}
	return errReported{exitUsers}
}
