package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

// tableIndexCmd makes the index of a table that serve-table serves.
type tableIndexCmd struct {
	Table   string   `arg:"" name:"run.table" help:"Run and table: 7.orders, last.orders, last~1.orders."`
	Key     []string `required:"" help:"Columns that a row is found by: of several, values with a colon between them." placeholder:"COLUMN,…"`
	Columns []string `help:"Columns that are found; default: all others." placeholder:"COLUMN,…"`
	Output  string   `short:"o" required:"" help:"File to write." type:"path" placeholder:"FILE"`
	overwriteFlag
	Memory string `help:"Memory for it." default:"2GB" placeholder:"SIZE"`
	JSON   bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// Help implements kong.HelpProvider.
func (c *tableIndexCmd) Help() string {
	return "The file appears under its name when it is whole; an index that is there is replaced. " +
		"Values are as in a CSV file. No two rows may have a key, and none NULL in it."
}

// madeIndex is how indexes begin.
var madeIndex = regexp.MustCompile(`^TWINDEX\n`)

// Run implements kong's command.
func (c *tableIndexCmd) Run(ctx context.Context, a *console) error {
	memory, err := parseSize(c.Memory)
	if err != nil {
		return err
	}
	ref, table, ok := strings.Cut(c.Table, ".")
	if !ok {
		return &fault.Error{Kind: fault.Script, Message: c.Table + " names no run",
			Hint: "write the run before it, such as last." + c.Table}
	}
	out := outFile{path: c.Output, overwrite: c.Overwrite, mine: madeIndex}
	if err := out.check(); err != nil {
		return err
	}
	home, run, err := runRef(strings.TrimPrefix(ref, "run")).open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	if err := out.spare(ctx, home, c.Workspace); err != nil {
		return err
	}
	ctx, end := a.showProgress(ctx)
	defer end()
	made, err := home.Data.Index(ctx, a.caller(), run.RunKey, app.IndexOptions{Table: table, Key: c.Key,
		Columns: c.Columns, Path: c.Output, MemoryBytes: memory, Measured: func(made view.TableIndex) {
			fmt.Fprintf(a.stderr, "the index of %s of run %d: %s, %s\n", made.Table, made.Run,
				format.Counted(made.Rows, "row", "rows"), size(made.Bytes))
		}})
	end()
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, made)
	}
	fmt.Fprintf(a.data, "%s: %s by %s, %s\n", c.Output, format.Counted(made.Rows, "row", "rows"),
		strings.Join(made.Key, ", "), size(made.Bytes))
	return nil
}
