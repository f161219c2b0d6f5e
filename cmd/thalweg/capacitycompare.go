package main

import (
	"context"
	"slices"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/sizing"
)

type capacityCompareCmd struct {
	A      string `arg:"" help:"Numbers of runs with commas between, a CSV file of runs as 'capacity table' takes, or a JSON file of figures of a host or a store."`
	B      string `arg:"" help:"What it is compared with, likewise."`
	Prices string `help:"Prices of machines, beside the published ones and before them." placeholder:"FILE" type:"path"`
	JSON   bool   `name:"json" help:"Print a JSON object."`
	stateFlags
}

// Run implements kong's command.
func (c *capacityCompareCmd) Run(ctx context.Context, a *console) error {
	prices, err := pricesOf(c.Prices)
	if err != nil {
		return err
	}
	var sets [2]sizing.Measured
	for i, of := range []string{c.A, c.B} {
		if sets[i], err = c.measured(ctx, a, of, prices); err != nil {
			return err
		}
	}
	compared, err := sizing.Compare(sets[0], sets[1])
	if err != nil {
		return err
	}
	return a.giveCompared(compared, c.JSON)
}

// giveCompared prints ratios.
func (a *console) giveCompared(compared sizing.Compared, asJSON bool) error {
	if asJSON {
		return printJSON(a.stdout, compared)
	}
	a.printTables(compared.Tables())
	a.printTexts("what is left out", compared.Notes)
	return nil
}

// measured reads one of the two sets.
func (c *capacityCompareCmd) measured(ctx context.Context, a *console, of string, prices *sizing.Prices) (
	sizing.Measured, error) {
	refs := strings.Split(of, ",")
	if slices.ContainsFunc(refs, func(ref string) bool { return app.CheckRunRef(ref) != nil }) {
		text, err := readUpTo(of, measuredBytesMax)
		if err != nil {
			return sizing.Measured{}, err
		}
		return sizing.MeasuredIn(of, text, prices)
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return sizing.Measured{}, err
	}
	defer home.Close()
	records, err := recordsOf(ctx, home, c.Workspace, refs)
	if err != nil {
		return sizing.Measured{}, err
	}
	return sizing.MeasuredBy("runs "+of, records, prices)
}
