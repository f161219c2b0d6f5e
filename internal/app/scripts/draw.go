package scripts

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/app/sources"
	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/graph"
	"thalweg/internal/lang/script"
	"thalweg/internal/lang/starter"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/ops/serveconfig"
)

// BytesMax bounds a script's text.
const BytesMax = document.MaxBytes

// SpareParam begins the name of a parameter that counts where the script has it.
const SpareParam = script.SpareParam

// Format returns a script or a file of parameters in the canonical layout; name is that of its file.
func Format(name string, text []byte) ([]byte, error) { return document.Format(name, text) }

// Draw writes the picture of a script, as svg or dot.
func Draw(w io.Writer, s *Script, format string, fields bool) error {
	g := graph.FromScript(s, graph.Options{Fields: fields})
	if format == "dot" {
		return graph.WriteDOT(w, g)
	}
	return graph.WriteSVG(w, g)
}

// Hooks returns who is told of the runs of a script.
func (s *Service) Hooks(ctx context.Context, n Named) ([]Hook, error) {
	out, diags := script.LoadServing(ctx, s.sources(n))
	if diags.HasErrors() {
		return nil, &sources.InvalidScriptError{Diagnostics: diags}
	}
	return out.Notify, nil
}

// Init begins a project in a directory from a template, and returns the names of its files.
func Init(template, dir string) ([]string, error) {
	var names []string
	for _, t := range starter.Templates() {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, template) {
		f := fault.New(fault.Script, "there is no template %q", template)
		f.Hint = "there are " + strings.Join(names, ", ")
		return nil, f.Suggest(template, names)
	}
	made, err := starter.Write(template, dir)
	if err != nil {
		return nil, err
	}
	return append(made, SchemaFile), WriteSchemaBeside(filepath.Join(dir, "script.yaml"))
}

// Schema returns the JSON Schema of scripts, or with "cluster" or "serve" of such configurations.
func Schema(of string) ([]byte, error) {
	switch of {
	case "cluster":
		return clusterconfig.JSONSchema()
	case "serve":
		return serveconfig.JSONSchema()
	}
	return script.JSONSchema()
}

// ColumnsOf returns the columns of a script, and what each is made of.
func ColumnsOf(s *Script) *lineage.Columns { return lineage.ColumnsOf(s) }
