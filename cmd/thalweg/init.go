package main

import (
	"fmt"
	"path/filepath"

	"thalweg/internal/app"
)

type initCmd struct {
	Dir      string `arg:"" optional:"" help:"Directory of the project; default: the working directory." default:"."`
	Template string `help:"What it shows: clean (bad rows, checks), join, or python." default:"clean" placeholder:"NAME"`
}

func (c *initCmd) Run(a *console) error {
	made, err := app.InitProject(c.Template, c.Dir)
	if err != nil {
		return err
	}
	for _, name := range made {
		fmt.Fprintln(a.stdout, filepath.Join(c.Dir, name))
	}
	begin := ""
	if filepath.Clean(c.Dir) != "." {
		begin = "cd " + shellWord(c.Dir) + " && "
	}
	fmt.Fprintf(a.stderr, "next: %sthalweg test script.yaml && thalweg run script.yaml\n", begin)
	return nil
}
