package main

import (
	"context"
	"maps"
	"path/filepath"
	"time"

	"thalweg/internal/app/scripts"
	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/schedule"
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
	src := scripts.Sources(client, "", f.Script, f.Params)
	src.Params, src.Lenient, src.Known = f.Param, f.Lenient, a.known
	s, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		if src.Offered = offered(ctx, src, client); len(src.Offered) > 0 {
			s, diags = script.Load(ctx, src)
		}
	}
	if ctx.Err() != nil { // the script is not to blame for what could not be read then
		return nil, nil, context.Cause(ctx)
	}
	return s, diags, nil
}

// offered are parameters as the schedules and watches of a script would give
// them now: to look at it, without running it.
func offered(ctx context.Context, src script.Sources, client *remote.Client) map[string]string {
	serving, diags := script.LoadServing(ctx, src)
	if diags.HasErrors() {
		return nil
	}
	out := map[string]string{}
	for _, sc := range serving.Schedules {
		maps.Copy(out, script.Offers(time.Now().In(sc.Times.Zone())))
		maps.Copy(out, sc.Params)
	}
	for _, w := range serving.Watches {
		maps.Copy(out, w.Params)
		if address.Remote(w.Files) {
			if found, err := client.List(ctx, w.Files, schedule.WatchedMax); err == nil && len(found) > 0 {
				out[script.ParamWatchedFile] = found[0].URL
			}
		} else if found, err := filepath.Glob(w.Files); err == nil && len(found) > 0 {
			out[script.ParamWatchedFile] = found[0]
		}
	}
	return out
}
