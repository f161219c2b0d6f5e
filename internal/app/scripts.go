package app

import (
	"context"
	"io"

	"thalweg/internal/app/scripts"
	"thalweg/internal/app/scripttest"
	"thalweg/internal/app/view"
)

// Explain says how a run of a script would proceed, without an instance.
func Explain(ctx context.Context, process Process, s *Script, o ExplainOptions) (view.Explained, error) {
	o.Process = process
	return scripts.Explain(ctx, nil, s, o)
}

// Tests reads the tests of a script from the file at path; "": from the file beside the script.
func Tests(path, script string, known *Secrets) (*scripttest.Suite, error) {
	if path == "" {
		path = scripttest.PathFor(script)
	}
	return scripttest.Load(path, script, known)
}

// Test runs one of the tests of a script.
func Test(ctx context.Context, suite *scripttest.Suite, one *scripttest.Case, o TestOptions) (TestResult, error) {
	return scripttest.Run(ctx, suite, one, o)
}

// Suite is the tests of a script.
type Suite = scripttest.Suite

// Parameters lists the parameters of a script's text, also of one that has mistakes.
func Parameters(text string) []scripts.Parameter { return scripts.Parameters(text) }

// NodesOf lists the names of the nodes of a script's text, also of one that has mistakes.
func NodesOf(text string) []string { return scripts.NodesOf(text) }

// ScriptNameOf returns what a script's text calls the script, "" if nothing; ok is false if the text alone does not say.
func ScriptNameOf(text string) (name string, ok bool) { return scripts.NameOf(text) }

// TagsOf lists the tags of the nodes of a script's text, in order.
func TagsOf(text string) []string { return scripts.TagsOf(text) }

// DrawScript writes the picture of a script, as svg or dot. With fields, it shows the fields of its tables.
func DrawScript(w io.Writer, s *Script, format string, fields bool) error {
	return scripts.Draw(w, s, format, fields)
}

// ScriptBytesMax bounds a script's text.
const ScriptBytesMax = scripts.BytesMax

// FormatScript returns a script or a file of parameters in the canonical layout; name is that of its file.
func FormatScript(name string, text []byte) ([]byte, error) { return scripts.Format(name, text) }

// SpareParam is the prefix of parameters that an environment offers. Scripts without such a parameter ignore it.
const SpareParam = scripts.SpareParam

// WriteSchemaBeside writes the schema file that the first line of the script at path names for editors, if missing.
func WriteSchemaBeside(path string) error { return scripts.WriteSchemaBeside(path) }

// InitProject begins a project in a directory from a template, and returns the names of its files.
func InitProject(template, dir string) ([]string, error) { return scripts.Init(template, dir) }

// Schema returns the JSON Schema of scripts, or with "cluster" of cluster configurations.
func Schema(of string) ([]byte, error) { return scripts.Schema(of) }

// LineageOf says what a column of a script is made of, and what is made of it.
func LineageOf(s *Script, column string) (view.ColumnLineage, error) {
	all := scripts.ColumnsOf(s)
	of, err := all.Find(column)
	if err != nil {
		return view.ColumnLineage{}, err
	}
	return view.ColumnLineage{Column: of, Links: append([]view.Link{}, all.Around(of)...)}, nil
}
