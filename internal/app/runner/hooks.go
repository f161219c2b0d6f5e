package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/sources"
	"thalweg/internal/lang/script"
)

// hooksFile is looked for in a state directory, and beside the configuration of
// a cluster that has none: hooks of all runs that are begun there.
const hooksFile = "hooks.yaml"

// Hooks reads who is told of all runs: from a file, or with "" from the state
// directory's, if it has one.
func Hooks(ctx context.Context, home *instance.Instance, p runtime.Process, path string) ([]script.Hook, error) {
	if path == "" {
		path = filepath.Join(home.HooksIn, hooksFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	src := p.Sources(nil, "", path, "")
	hooks, diags := script.LoadHooks(ctx, src)
	if diags.HasErrors() {
		return nil, &sources.InvalidScriptError{Diagnostics: diags}
	}
	return hooks, nil
}

// HooksIn is as Hooks, with the directory that may have a file of hooks.
func HooksIn(ctx context.Context, dir string, p runtime.Process, path string) ([]script.Hook, error) {
	return Hooks(ctx, &instance.Instance{HooksIn: dir}, p, path)
}
