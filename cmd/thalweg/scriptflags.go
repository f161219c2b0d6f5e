package main

import (
	"context"

	"thalweg/internal/document"
	"thalweg/internal/local"
	"thalweg/internal/script"
)

// scriptFlags say which script a command works with, and with which parameters.
type scriptFlags struct {
	Script  string            `arg:"" help:"Script: .yaml or .json."`
	Params  string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param   map[string]string `help:"One parameter, instead of the file's; may be repeated. Lists are separated by commas." placeholder:"NAME=VALUE" mapsep:"none"`
	Lenient bool              `help:"Ignore keys that look like typing errors, and let the last of equal keys count, with warnings."`
	remoteFlags
}

// load loads the script, wherever it is.
func (f *scriptFlags) load(ctx context.Context, a *app) (*script.Script, document.Diagnostics, error) {
	client, err := f.client(nil)
	if err != nil {
		return nil, nil, err
	}
	defer client.Close()
	src := local.Sources(client, "", f.Script, f.Params)
	src.Params, src.Lenient, src.Known = f.Param, f.Lenient, a.known
	s, diags := script.Load(ctx, src)
	if ctx.Err() != nil { // the script is not to blame for what could not be read then
		return nil, nil, context.Cause(ctx)
	}
	return s, diags, nil
}
