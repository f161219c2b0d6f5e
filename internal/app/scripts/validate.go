package scripts

import (
	"context"
	"strings"

	"thalweg/internal/app/outputs"
	"thalweg/internal/app/view"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/doctor"
)

// Validate lists the problems of a script. With connect it looks, too, whether
// inputs can be read, outputs written and the interpreter started; nothing is
// run or written. The script comes with it unless it cannot be run.
func (s *Service) Validate(ctx context.Context, n Named, connect bool, python string) (view.Validated, *script.Script,
	error) {
	sc, diags, err := s.Load(ctx, n)
	if err != nil {
		return view.Validated{}, nil, err
	}
	if sc != nil {
		if refused := outputsRefused(ctx, s.Remote.Within(n.Policy), sc); refused != nil {
			sc, diags = nil, append(diags, *refused)
		}
	}
	out := view.Validated{OK: sc != nil, Diagnostics: append(view.Diagnostics{}, diags...)}
	if sc == nil {
		return out, nil, nil
	}
	out.Nodes = len(sc.Nodes)
	if connect {
		look := connection{client: s.Remote.Within(n.Policy), s: sc, python: python}
		err = look.look(ctx)
		out.Connections, out.OK = look.found, doctor.Worst(look.found) != doctor.Bad
	}
	return out, sc, err
}

// outputsRefused returns the problem for which a run would refuse the outputs before it begins;
// nil: none.
func outputsRefused(ctx context.Context, client *remote.Client, s *script.Script) *document.Diagnostic {
	err := outputs.CheckOutputs(ctx, client, s)
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
