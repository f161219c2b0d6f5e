package main

import (
	"thalweg/internal/local"
	"thalweg/internal/script"
)

// scriptFlags say which script a command works with, and with which parameters.
type scriptFlags struct {
	Script string            `arg:"" help:"Script: .yaml or .json."`
	Params string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param  map[string]string `help:"One parameter, instead of the file's; may be repeated. Lists are separated by commas." placeholder:"NAME=VALUE" mapsep:"none"`
}

func (f scriptFlags) sources() script.Sources {
	src := local.Sources(f.Script, f.Params)
	src.Params = f.Param
	return src
}
