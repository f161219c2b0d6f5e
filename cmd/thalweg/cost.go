package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

type costCmd struct {
	Runs  []runRef `arg:"" name:"run" optional:"" help:"Runs: numbers, or last; none: all."`
	By    string   `help:"Put together by ${enum}." enum:"run,node,script,day,workspace" default:"run" placeholder:"WHAT"`
	Since since    `help:"Only runs that began then or later: 7d, 36h, 2026-11-01." placeholder:"WHEN"`
	JSON  bool     `name:"json" help:"Print a JSON object."`
	stateFlags
}

// since is a moment on the command line: a day, or how long ago it was.
type since time.Time

// UnmarshalText reads 7d, 36h, 2026-11-01.
func (s *since) UnmarshalText(text []byte) error {
	if day, err := time.ParseInLocation(time.DateOnly, string(text), time.Local); err == nil {
		*s = since(day)
		return nil
	}
	var ago age
	if ago.UnmarshalText(text) != nil || ago < 0 {
		return fmt.Errorf("%q is no moment: write 7d, 36h, or 2026-11-01", text)
	}
	*s = since(time.Now().Add(-time.Duration(ago)))
	return nil
}

// Run implements kong's command.
func (c *costCmd) Run(ctx context.Context, a *console) error {
	if c.By == view.CostsByWorkspace && len(c.Runs) > 0 {
		return fault.New(fault.Script, "runs are of one workspace: --by workspace does not go with them")
	}
	home, err := c.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	costs, err := c.read(ctx, home)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, costs)
	}
	a.showCosts(costs)
	return nil
}

func (c *costCmd) read(ctx context.Context, home *app.App) (view.Costs, error) {
	o := app.CostOptions{By: c.By, Since: time.Time(c.Since)}
	for _, ref := range c.Runs {
		run, err := ref.find(ctx, home, c.Workspace)
		if err != nil {
			return view.Costs{}, err
		}
		o.Runs = append(o.Runs, run.Run)
	}
	if c.By != view.CostsByWorkspace {
		return home.Operations.Costs(ctx, c.Workspace, o)
	}
	all := view.Costs{By: c.By, Groups: []view.CostGroup{}}
	names, err := home.Operations.Workspaces(ctx)
	if err != nil {
		return all, err
	}
	for _, name := range names {
		one, err := home.Operations.Costs(ctx, name, o)
		if err != nil {
			return all, err
		}
		all.Groups = append(all.Groups, one.Groups...)
		all.Total.Plus(one.Total)
		all.Twice.Machines += one.Twice.Machines
		all.Twice.Services += one.Twice.Services
	}
	view.SortCosts(c.By, all.Groups)
	return all, nil
}

func (a *console) showCosts(c view.Costs) {
	head := map[string][]any{view.CostsByRun: {"run", "script"}, view.CostsByNode: {"node", "script", "runs"},
		view.CostsByScript: {"script", "runs"}, view.CostsByDay: {"day", "runs"},
		view.CostsByWorkspace: {"workspace", "runs"}}
	t := a.newTable(append(head[c.By], "worked", "waited", "lost", "services", "cost")...).leaves("services", "script")
	var right []int
	for i := range 5 {
		right = append(right, len(head[c.By])+i+1)
	}
	rightAligned(t, right...)
	for _, g := range c.Groups {
		names := map[string][]any{view.CostsByRun: {g.Run, g.Script}, view.CostsByNode: {g.Node, g.Script, g.Runs},
			view.CostsByScript: {g.Script, g.Runs}, view.CostsByDay: {g.Day, g.Runs},
			view.CostsByWorkspace: {g.Workspace, g.Runs}}
		services := "-"
		if s := g.Services; s != nil && s.USD != nil {
			services = s.USD.String()
		}
		waited := "-"
		if g.Waited != nil {
			waited = span(seconds(g.Waited.Seconds))
		}
		t.AppendRow(append(names[c.By], span(seconds(g.Worked.Seconds)), waited, span(seconds(g.Lost.Seconds)), services,
			knownMoney(g.Total, g.Partial)))
	}
	t.Render()
	fmt.Fprintln(a.stdout)
	a.say("all", fmt.Sprintf("%s, %s of machines, %s", format.Counted(int64(c.Total.Runs), "run", "runs"),
		span(seconds(c.Total.Seconds())), strings.Replace(knownMoney(c.Total.Total, c.Total.Partial), "-", "no price", 1)))
	if c.By == view.CostsByNode && c.Total.Waited != nil {
		text := "waited " + partText(*c.Total.Waited)
		if c.Total.Services != nil {
			text += "; services " + partText(*c.Total.Services)
		}
		a.say("of no node", text)
	}
	var twice []string
	if s := c.Twice.Machines; s >= 0.001 {
		twice = append(twice, span(seconds(s))+" of machines")
	}
	if s := c.Twice.Services; s >= 0.001 {
		twice = append(twice, span(seconds(s))+" of services")
	}
	if len(twice) > 0 {
		a.say("paid twice", strings.Join(twice, ", ")+", by runs with workers of their own at once")
	}
	switch {
	case c.Total.Unpriced > 0:
		a.say("without a price", span(seconds(c.Total.Unpriced))+" of machines; show says of which")
	case c.Total.Partial:
		a.say("without a price", "some of the services; show says which")
	}
	a.say("prices of", strings.Join(c.Total.Dates, ", "))
	if n := c.Total.Unmeasured; n > 0 {
		a.say("not known", format.Counted(int64(n), "run has", "runs have")+" no time sheets")
	}
}

// sayBill says what a run cost, by what was paid for.
func (a *console) sayBill(b *view.Bill) {
	if b == nil {
		return
	}
	text := "worked " + partText(b.Worked) + ", waited " + partText(b.Waited) + ", lost " + partText(b.Lost)
	if b.Services != nil {
		text += "; services " + partText(*b.Services)
	}
	a.say("machines", text)
	a.say("prices of", strings.Join(b.Dates, ", "))
	for _, m := range b.Machines {
		switch {
		case m.PerHour != nil || m.Seconds == 0:
		case m.Machine == "":
			a.say("without a price", span(seconds(m.Seconds))+" of a machine of unknown type: THALWEG_MACHINE names it")
		default:
			a.say("without a price", fmt.Sprintf("%s of %s: the file in THALWEG_PRICES can give it one",
				span(seconds(m.Seconds)), m.Machine))
		}
	}
	for _, o := range b.Beside {
		if o.PerHour == nil {
			a.say("without a price", strconv.Itoa(o.Count)+" × "+o.Name+", of the services")
		}
	}
	if b.BringUp != nil {
		a.say("bring-up", partText(*b.BringUp)+", paid once and not in the sums")
	}
}

func partText(p view.BillPart) string {
	text := span(seconds(p.Seconds))
	if p.USD != nil && p.Seconds > 0 {
		text += " (" + p.USD.String() + ")"
	}
	return text
}

// knownMoney writes an amount: "-" if it is not known, with ≥ before it if more is not.
func knownMoney(m *view.Money, partial bool) string {
	switch {
	case m == nil:
		return "-"
	case partial:
		return "≥ " + m.String()
	}
	return m.String()
}
