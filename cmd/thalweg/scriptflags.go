package main

import (
	"context"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

// scriptFlags say which script a command works with, and with which parameters.
type scriptFlags struct {
	Script  string            `arg:"" help:"Script: .yaml or .json."`
	Params  string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param   map[string]string `help:"One parameter; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Lenient bool              `help:"Warn of unknown and repeated keys instead of failing."`
	remoteFlags
}

// valid loads the script, wherever it is, and refuses one that has errors.
func (f *scriptFlags) valid(ctx context.Context, a *console) (*app.Script, view.Diagnostics, error) {
	client, err := f.client(nil)
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	return (&app.ScriptService{Remote: client, Known: a.known}).Valid(ctx, f.named())
}

// named is the script as it is named.
func (f *scriptFlags) named() app.NamedScript {
	return app.NamedScript{Path: f.Script, ParamsPath: f.Params, Params: f.Param, Lenient: f.Lenient}
}
