package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/sources"
	"thalweg/internal/base/secret"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/script"
)

// hooksFile is looked for in a state directory, and beside the configuration of
// a cluster that has none: hooks of all runs that are begun there.
const hooksFile = "hooks.yaml"

// Hooks reads who is told of all runs: from a file, or with "" from the state
// directory's, if it has one.
func Hooks(ctx context.Context, home *instance.Instance, client *remote.Client, known *secret.Known,
	path string) ([]script.Hook, error) {
	if path == "" {
		path = filepath.Join(home.HooksIn, hooksFile)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	src := sources.New(client, "", path, "")
	src.Known = known
	hooks, diags := script.LoadHooks(ctx, src)
	if diags.HasErrors() {
		return nil, &sources.InvalidScriptError{Diagnostics: diags}
	}
	return hooks, nil
}

// HooksIn is as Hooks, with the directory that may have a file of hooks.
func HooksIn(ctx context.Context, dir string, client *remote.Client, known *secret.Known,
	path string) ([]script.Hook, error) {
	return Hooks(ctx, &instance.Instance{HooksIn: dir}, client, known, path)
}
