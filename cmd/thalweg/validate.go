package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app/outputs"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/doctor"
)

type validateCmd struct {
	scriptFlags
	Connect bool   `help:"Look, too, whether inputs can be read, outputs written and the interpreter started. Nothing is run or written."`
	Python  string `help:"With --connect: the Python interpreter." default:"python3" env:"THALWEG_PYTHON"`
	JSON    bool   `name:"json" help:"Print the problems as JSON."`
}

// validated is the JSON form of the result.
type validated struct {
	OK          bool                 `json:"ok"`
	Nodes       int                  `json:"nodes"`
	Diagnostics document.Diagnostics `json:"diagnostics"`
	Connections []doctor.Finding     `json:"connections,omitempty"`
}

func (c *validateCmd) Run(ctx context.Context, a *app) error {
	s, diags, err := c.load(ctx, a)
	if err != nil {
		return err
	}
	if s != nil {
		if refused := outputsRefused(ctx, s); refused != nil {
			s, diags = nil, append(diags, *refused)
		}
	}
	out := validated{OK: s != nil, Diagnostics: diags}
	if s != nil {
		out.Nodes = len(s.Nodes)
	}
	if s != nil && c.Connect {
		if out.Connections, err = c.connections(ctx, s); err != nil {
			return err
		}
		out.OK = doctor.Worst(out.Connections) != doctor.Bad
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

// outputsRefused is what a run would refuse of the outputs before it begins; nil: nothing.
func outputsRefused(ctx context.Context, s *script.Script) *document.Diagnostic {
	err := outputs.CheckOutputs(ctx, s)
	if err == nil {
		return nil
	}
	f := fault.Of(err)
	d := document.Diagnostic{Severity: document.Error, Message: f.Message, Hint: f.Hint,
		Pos: document.Pos{File: f.Place.File, Line: int(f.Place.Line), Col: f.Place.Column}}
	d.End = d.Pos
	if text, ok := s.Text(d.Pos.File); ok {
		if lines := strings.Split(text, "\n"); d.Pos.Line >= 1 && d.Pos.Line <= len(lines) {
			d.Source = lines[d.Pos.Line-1]
		}
	}
	return &d
}

// connections looks at what a script needs beside itself.
func (c *validateCmd) connections(ctx context.Context, s *script.Script) ([]doctor.Finding, error) {
	client, err := c.client(nil)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	look := connection{client: client, s: s, python: c.Python}
	err = look.look(ctx)
	return look.found, err
}
