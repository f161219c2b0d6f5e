package scripts

import (
	"cmp"
	"context"
	"maps"
	"time"

	"thalweg/internal/app/sources"
	"thalweg/internal/app/view"
	"thalweg/internal/base/address"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/schedule"
)

// Service looks at scripts.
type Service struct {
	Remote *remote.Client // for files of other machines
	Dir    string         // that relative names are seen from; "": the working directory
	Known  *secret.Known  // learns the secrets of scripts; may be nil
	// Environment looks up variables that scripts name; nil: the process's.
	Environment func(name string) (value string, set bool)
}

// Named is a script as a caller names it.
type Named = sources.Named

// Texts are given instead of files: see package sources.
type Texts = sources.Texts

// Load loads a script, wherever it is. A script that has errors comes with
// them; one that only lacks what its schedules and watches would give it gets
// what they would give it now.
func (s *Service) Load(ctx context.Context, n Named) (*script.Script, view.Diagnostics, error) {
	src := s.sources(n)
	out, diags := script.Load(ctx, src)
	if diags.HasErrors() {
		if src.Offered = s.offered(ctx, s.Remote.Within(n.Policy), src); len(src.Offered) > 0 {
			out, diags = script.Load(ctx, src)
		}
	}
	if ctx.Err() != nil { // the script is not to blame for what could not be read then
		return nil, nil, context.Cause(ctx)
	}
	return out, diags, nil
}

// Valid loads a script that has no errors.
func (s *Service) Valid(ctx context.Context, n Named) (*script.Script, view.Diagnostics, error) {
	out, diags, err := s.Load(ctx, n)
	if err == nil && diags.HasErrors() {
		err = &sources.InvalidScriptError{Diagnostics: diags}
	}
	return out, diags, err
}

func (s *Service) sources(n Named) script.Sources {
	src := sources.New(s.Remote.Within(n.Policy), cmp.Or(n.Dir, s.Dir), n.Path, n.ParamsPath)
	src.Params, src.Lenient, src.Known = n.Params, n.Lenient, s.Known
	src.Literal = n.Literal
	if s.Environment != nil {
		src.Environment = s.Environment
	}
	src.Environment = n.Policy.Environ(src.Environment)
	src.Read = n.Texts.Over(src.Dir, src.Read)
	return src
}

// offered are parameters as the schedules and watches of a script would give
// them now: to look at it, without running it.
func (s *Service) offered(ctx context.Context, client *remote.Client, src script.Sources) map[string]string {
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
		} else if found, err := client.Policy().Glob(src.Dir, w.Files); err == nil && len(found) > 0 {
			out[script.ParamWatchedFile] = found[0]
		}
	}
	return out
}

// Words of scripts.
type (
	Script    = script.Script
	Hook      = script.Hook
	Selection = script.Selection
)
