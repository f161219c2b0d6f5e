package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// version is set by the linker for releases; see the Makefile.
var version = "devel"

// engineSaid is the version of DuckDB that workers say they have; "": their own. Tests of upgrades set it.
var engineSaid = ""

// commit is the revision that the build was made from; see the Makefile.
var commit = ""

// build describes this program.
func build() view.Build {
	b := view.Build{Version: version, Commit: commit, Go: runtime.Version(), Engine: app.EngineVersion,
		OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && b.Commit == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Commit = s.Value
			}
		}
	}
	return b
}

// Run implements kong's command.
func (c *versionCmd) Run(a *console) error {
	b := build()
	if c.JSON {
		return printJSON(a.stdout, b)
	}
	_, err := fmt.Fprintf(a.stdout, "thalweg %s %s (%s, %s, %s/%s)\n", b.Version, b.Commit, b.Go,
		b.Engine, b.OS, b.Arch)
	return err
}
