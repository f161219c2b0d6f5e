package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/similar"
	"thalweg/internal/lang/starter"
	"thalweg/internal/ops/infer"
)

type initCmd struct {
	Dir      string `arg:"" optional:"" help:"Directory of the project; default: the working directory." default:"."`
	Template string `help:"Which project: clean (untidy sales, bad rows, checks), join (orders with items), python (formulas with tests)." default:"clean" placeholder:"NAME"`
}

func (c *initCmd) Run(a *app) error {
	var names []string
	for _, t := range starter.Templates() {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, c.Template) {
		f := fault.New(fault.Script, "there is no template %q", c.Template)
		f.Hint = "there are " + strings.Join(names, ", ")
		if near := similar.Nearest(c.Template, names); near != "" {
			f.Hint = "did you mean " + near + "? " + f.Hint
		}
		return f
	}
	made, err := starter.Write(c.Template, c.Dir)
	if err != nil {
		return err
	}
	if err := writeSchemaBeside(filepath.Join(c.Dir, "script.yaml")); err != nil {
		return err
	}
	for _, name := range append(made, infer.SchemaFile) {
		fmt.Fprintln(a.stdout, filepath.Join(c.Dir, name))
	}
	begin := ""
	if filepath.Clean(c.Dir) != "." {
		begin = "cd " + shellWord(c.Dir) + " && "
	}
	fmt.Fprintf(a.stderr, "next: %sthalweg test script.yaml && thalweg run script.yaml\n", begin)
	return nil
}
