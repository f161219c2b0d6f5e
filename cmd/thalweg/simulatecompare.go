package main

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// isRun reports whether an argument names a run, not a file: its number, or last.
func isRun(text string) bool {
	return text == "last" || text != "" && strings.Trim(text, "0123456789") == ""
}

// runs lists the runs to compare with; none: there are none, or a file has them.
func (c *simulateCmd) runs() (refs []runRef) {
	for _, text := range c.Compare {
		if isRun(text) {
			refs = append(refs, runRef(text))
		}
	}
	return refs
}

// measured reads the times of real runs from the file to compare with.
func (c *simulateCmd) measured() (m app.MeasuredRuns, err error) {
	if len(c.Compare) == 0 {
		return m, nil
	}
	if len(c.Compare) > 1 {
		return m, fault.New(fault.Script, "--compare takes runs or one file, not %s", strings.Join(c.Compare, ","))
	}
	text, err := readSmall(c.Compare[0])
	if err != nil {
		return m, err
	}
	return app.ReadMeasured(c.Compare[0], text)
}

// compare shows complete runs beside what the simulator says of as many workers and slots.
func (c *simulateCmd) compare(ctx context.Context, a *console, costs app.Costs, refs []runRef) error {
	if len(refs) < len(c.Compare) {
		return fault.New(fault.Script, "--compare takes runs or one file, not %s", strings.Join(c.Compare, ","))
	}
	for _, other := range []string{"workers", "slots", "batches", "deaths", "slow-store", "hot", "out", "trace"} {
		if a.typed[other] {
			return fault.New(fault.Script, "--%s does not go with --compare of runs: they are simulated as they were", other)
		}
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	by := c.of
	if c.Costs != "" {
		by = func(int, int) app.Costs { return costs }
	}
	all := []app.Compared{}
	for _, ref := range refs {
		run, err := ref.find(ctx, home, c.Workspace)
		if err != nil {
			return err
		}
		one, err := home.Compare(ctx, run.RunKey, by, c.Seed)
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	if c.JSON {
		return printJSON(a.stdout, all)
	}
	for i, one := range all {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		a.printCompared(one)
	}
	a.printTexts("what that rests on", c.rests)
	return nil
}

func (a *console) printCompared(c app.Compared) {
	heading := fmt.Sprintf("run %d: %s of %s", c.Run, counted(c.Workers, "worker", "workers"),
		counted(c.Slots, "slot", "slots"))
	fmt.Fprintln(a.stdout, a.paint(heading, bold))
	t := a.newTable("", "real", "simulated", "difference")
	rightAligned(t, 2, 3, 4)
	t.AppendRow([]any{"elapsed", span(seconds(c.Real.Elapsed)), span(seconds(c.Simulated.Elapsed)),
		fmt.Sprintf("%+.1f %%", 100*(c.Simulated.Elapsed/c.Real.Elapsed-1))})
	names, texts := view.ShareNames()
	for i, name := range names {
		real, simulated := 100*c.Real.Shares[name], 100*c.Simulated.Shares[name]
		t.AppendRow([]any{texts[i], fmt.Sprintf("%.1f %%", real), fmt.Sprintf("%.1f %%", simulated),
			fmt.Sprintf("%+.1f", simulated-real)})
	}
	t.Render()
}
