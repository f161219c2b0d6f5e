package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/app"
)

// runsAtOnce is the default number of runs that a scheduler works on at once.
const runsAtOnce = 2

// schedulerCmd begins runs by the clock and for new files.
type schedulerCmd struct {
	Scripts []string          `arg:"" name:"script" help:"Scripts with a schedule or watch, or directories of them."`
	Params  string            `help:"File with the scripts' parameters." placeholder:"FILE"`
	Param   map[string]string `help:"One parameter; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Lenient bool              `help:"Warn of unknown and repeated keys instead of failing."`
	AtOnce  int               `name:"at-once" help:"Runs that are worked on at once." default:"2" placeholder:"N"`
	hookFlags
	engineFlags
	remoteFlags
	limitFlags
	openLineageFlag
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
	stateFlags
}

// Run implements kong's command.
func (c *schedulerCmd) Run(ctx context.Context, a *console) error {
	c.away = app.NewOutage(logTo(a, levelOf(c.Verbose)), a.drain)
	place, err := openWorkplace(ctx, a, c.placeFlags, c.engineFlags, c.remoteFlags, c.Verbose)
	if err != nil {
		return err
	}
	defer place.close()
	hooks, err := c.loadHooks(ctx, a, place)
	if err != nil {
		return err
	}
	if err := a.confirm(ctx, "begins runs that replace the files of",
		[]replaced{{What: strings.Join(c.Scripts, ", ")}}); err != nil {
		return err
	}
	if c.AtOnce < 1 {
		c.AtOnce = runsAtOnce
	}
	if place.home.Cluster() == nil { // else its workers execute
		if err := c.findPython(nil, place.logger); err != nil {
			return err
		}
	}
	told, err := place.home.Tell(ctx, c.OpenLineage)
	if err != nil {
		return err
	}
	defer told.Close()
	opts := app.WorkOptions{Most: c.AtOnce, Joined: a.joined}
	opts.Observe, opts.Waiting = a.observeWork, a.waiting
	told.WrapWorker(ctx, &opts)
	return place.home.Schedule(ctx, a.caller(), app.ScheduleOptions{
		WorkerOptions: opts,
		Workspace:     c.Workspace, Scripts: c.Scripts, ParamsPath: c.Params, Params: c.Param,
		Lenient: c.Lenient, Exclusive: a.protected(), Hooks: hooks, Limits: c.ask(),
		Serving: func(served []app.Served) { a.printServed(served) },
	})
}

// printServed says what is served, so that a mistake is seen before the night.
func (a *console) printServed(served []app.Served) {
	count := 0
	for _, sv := range served {
		for _, sc := range sv.Script.Schedules {
			fmt.Fprintf(a.stderr, "%s: schedule %s: next %s\n", sv.Path, sc.Name, sc.Times.Next(time.Now()).
				Format(time.RFC3339))
			count++
		}
		for _, w := range sv.Script.Watches {
			fmt.Fprintf(a.stderr, "%s: watch %s\n", sv.Path, w.Name)
			count++
		}
	}
	if count == 0 {
		fmt.Fprintln(a.stderr, "no script has a schedule or watch yet; they are looked at again every few seconds")
	}
}
