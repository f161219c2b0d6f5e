package clusterconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"thalweg/internal/base/address"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/settings"
)

// Options of Load.
type Options = settings.Options

// reader reads a configuration.
type reader struct {
	*settings.Reader
	cfg *Config
}

// Load reads a configuration. name is how people call the file.
func Load(name string, opts Options) (*Config, document.Diagnostics, error) {
	path, err := filepath.Abs(address.Seen(opts.Dir, name))
	if err != nil {
		return nil, nil, fmt.Errorf("find %s: %w", name, err)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &fault.Error{Kind: fault.Script, Message: "there is no cluster configuration " + name,
			Hint: "docs/fleet.md shows what one looks like", Err: err}
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, nil, &fault.Error{Kind: fault.Script, Message: "there is no cluster configuration " + name,
			Hint: "a directory of its path is a file", Err: err}
	}
	if errors.Is(err, syscall.EISDIR) {
		return nil, nil, &fault.Error{Kind: fault.Script, Message: "read the cluster configuration " + name,
			Hint: "name the file: " + filepath.Join(name, DefaultName), Err: err}
	}
	if err != nil {
		return nil, nil, &fault.Error{Kind: fault.Environment, Message: "read the cluster configuration " + name,
			Err: err}
	}
	if len(text) > maxFileBytes {
		return nil, nil, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("%s is larger than %d KiB: it is no cluster configuration", name, maxFileBytes>>10)}
	}
	cfg, diags := Parse(name, path, string(text), opts)
	return cfg, diags, nil
}

// Parse reads the text of a configuration that lies at path.
func Parse(name, path, text string, opts Options) (*Config, document.Diagnostics) {
	r := &reader{settings.New(path, "a cluster configuration", opts), &Config{Path: path, name: name,
		Worker: Worker{Cache: CacheDefaultBytes, Drain: DrainDefault}}}
	r.cfg.places = r.Places
	src := document.NewSource(name, text)
	root, syntax := document.Read(src)
	switch {
	case syntax != nil:
		r.AddSyntax(src, syntax)
	case root.Kind != document.Map:
		r.ErrorAt(root, "", "a cluster configuration is a map, not %s", root.Kind).Hint = "begin it with version: 1"
	default:
		r.root(root)
	}
	diags := r.Result(name, func(string) int { return 0 }, r.Known())
	if diags.HasErrors() {
		return nil, diags
	}
	return r.cfg, diags
}
