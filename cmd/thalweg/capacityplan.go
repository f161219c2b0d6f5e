package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"thalweg/internal/app/sizing"
	"thalweg/internal/base/fault"
)

type capacityPlanCmd struct {
	Of       runRef         `name:"run" required:"" help:"Complete run to plan from: its number, or last." placeholder:"RUN"`
	Scale    float64        `help:"Its files are so many times as large." default:"1" placeholder:"X"`
	Batches  string         `help:"Nodes have so many times as many batches: 4x." default:"1x" placeholder:"Kx"`
	Deadline time.Duration  `help:"Find the cheapest machines that are in time in 9 of 10 runs: 30m." placeholder:"DURATION"`
	Budget   string         `help:"Find the quickest machines that cost no more in 9 of 10 runs." placeholder:"USD"`
	Machines []string       `help:"Types that may be taken. Default: the family of the run's own." placeholder:"TYPE,…"`
	Speeds   []string       `help:"Speeds of types: JSON files with machine and core_speed." placeholder:"FILE,…"`
	BringUp  *time.Duration `help:"Time of each machine that is paid before and after the run. Default: bring_up of the cluster's file, else 1m." placeholder:"DURATION"`
	Prices   string         `help:"Prices of machines, beside the published ones and before them." placeholder:"FILE" type:"path"`
	reportFlags
	stateFlags
}

// Run implements kong's command.
func (c *capacityPlanCmd) Run(ctx context.Context, a *console) error {
	wanted, err := c.wanted()
	if err != nil {
		return err
	}
	to, err := c.chart()
	if err != nil {
		return err
	}
	home, run, err := c.Of.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	plan, err := home.PlanFor(ctx, run.RunKey, wanted)
	if err != nil {
		return err
	}
	if c.Out != "" {
		if err := to.write(a, func(w io.Writer) error { return plan.WriteSVG(w) }); err != nil {
			return err
		}
	}
	if c.JSON {
		err = printJSON(a.stdout, plan)
	} else {
		c.print(a, plan)
	}
	if err == nil && plan.Answer == nil {
		return errReported{exitUsers}
	}
	return err
}

// bringUpMax limits what is paid before and after a run.
const bringUpMax = 24 * time.Hour

func (c *capacityPlanCmd) wanted() (w sizing.Wanted, err error) {
	switch {
	case !(c.Scale > 0 && c.Scale <= scaleMax):
		return w, fault.New(fault.Script, "--scale %g: it is above 0 and at most %d", c.Scale, scaleMax)
	case (c.Deadline > 0) == (c.Budget != ""), c.Deadline < 0:
		return w, fault.New(fault.Script, "a plan is for a --deadline above 0, or for a --budget")
	case c.BringUp != nil && (*c.BringUp < 0 || *c.BringUp > bringUpMax):
		return w, fault.New(fault.Script, "--bring-up %s: it is 0 to %s", c.BringUp, bringUpMax)
	}
	w = sizing.Wanted{Scale: c.Scale, Deadline: c.Deadline, BringUp: c.BringUp, Machines: c.Machines,
		Speeds: map[string]float64{}}
	if c.Budget != "" {
		if w.Budget, err = sizing.ParseBudget(c.Budget); err != nil {
			return w, err
		}
	}
	if w.Batches, err = sizing.ParseTimes(c.Batches); err != nil {
		return w, err
	}
	for _, file := range c.Speeds {
		text, err := readSmall(file)
		if err != nil {
			return w, err
		}
		if err := sizing.ReadSpeeds(file, text, w.Speeds); err != nil {
			return w, err
		}
	}
	if c.Prices != "" {
		w.Prices, err = pricesIn(c.Prices)
	}
	return w, err
}

func (c *capacityPlanCmd) print(a *console, p sizing.Planned) {
	m := p.Measured
	machine := m.Machine
	if machine == "" {
		machine = counted(m.Cores, "core", "cores")
	}
	fmt.Fprintf(a.stdout, "run %d took %s on %d × %s, %s each\n", p.Run, span(seconds(m.Elapsed)), m.Workers,
		plain(machine),
		counted(m.Slots, "slot", "slots"))
	fmt.Fprintln(a.stdout, a.paint(c.answer(p), bold))
	if p.Up != nil || p.Out != nil {
		fmt.Fprintf(a.stdout, "up %s; out %s\n", besideText(p.Up), besideText(p.Out))
	}
	for _, w := range p.Warnings {
		fmt.Fprintln(a.stdout, w)
	}
	if len(p.Frontier) > 0 {
		fmt.Fprintf(a.stdout, "\n%s\n", a.paint("time and cost", bold))
		t := a.newTable("machines", "cores", "time", "9 of 10", "cost", "9 of 10", "what limits it most")
		rightAligned(t, 2, 3, 4, 5, 6)
		for _, choice := range p.Frontier {
			t.AppendRow([]any{sizing.ChoiceText(choice), choice.Count * choice.Cores, span(seconds(choice.Middle)),
				span(seconds(choice.High)), choice.Cost.String(), choice.Most.String(), shortLimit(choice.Limit)})
		}
		t.Render()
	}
	fmt.Fprintf(a.stdout, "\n%s\n", withoutText(p))
	a.printTexts("what that rests on", p.Notes)
}

// answer says which machines do.
func (c *capacityPlanCmd) answer(p sizing.Planned) string {
	aim := fmt.Sprintf("in %s", span(c.Deadline))
	if p.Budget != nil {
		aim = "for $" + c.Budget
	}
	if p.Scale != 1 {
		aim = fmt.Sprintf("%.4g times as large, %s", p.Scale, aim)
	}
	if p.Answer == nil {
		return aim + ": no deployment does in 9 of 10 runs"
	}
	return fmt.Sprintf("%s: %s, %s (9 of 10: %s), %s", aim, sizing.ChoiceText(*p.Answer), span(seconds(p.Answer.Middle)),
		span(seconds(p.Answer.High)), p.Answer.Cost.String())
}

// besideText writes another shape of as many cores.
func besideText(c *sizing.Choice) string {
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s, %s, %s", sizing.ChoiceText(*c), span(seconds(c.Middle)), c.Cost.String())
}

// shortLimit leaves out what explains a limit.
func shortLimit(limit string) string {
	name, explained, ok := strings.Cut(limit, ":")
	share := strings.LastIndex(explained, "(")
	if !ok || share < 0 {
		return limit
	}
	return name + " " + explained[share:]
}

// withoutText says why other deployments are out.
func withoutText(p sizing.Planned) string {
	var parts []string
	for _, why := range []struct{ name, text string }{
		{"work", "too slow by their work alone"}, {"chain", "too slow by the longest chain"},
		{"memory", "with too little memory"}, {"cost", "too dear by their work alone"},
	} {
		if n := p.Without[why.name]; n > 0 {
			parts = append(parts, count(int64(n))+" "+why.text)
		}
	}
	out := fmt.Sprintf("%s considered, %d simulated", counted(p.Considered, "deployment", "deployments"), len(p.Simulated))
	if p.Unsearched > 0 {
		parts = append(parts, count(int64(p.Unsearched))+" not simulated, as there were too many")
	}
	if len(parts) > 0 {
		out += "; " + strings.Join(parts, ", ")
	}
	return out
}
