package main

import (
	"context"
	"fmt"
	"slices"

	"thalweg/internal/app"
)

// hookFlags say who is told of all runs.
type hookFlags struct {
	Hooks string `help:"More hooks than the script has; default: hooks.yaml in the state directory." placeholder:"FILE"`
}

func (f hookFlags) loadHooks(ctx context.Context, a *console, place *workplace) ([]app.Hook, error) {
	return place.home.Hooks(ctx, f.Hooks)
}

// hooksCmd has commands about hooks.
type hooksCmd struct {
	Test hooksTestCmd `cmd:"" help:"Send an example to each hook that wants to know of an event."`
}

type hooksTestCmd struct {
	Script string            `arg:"" optional:"" help:"Script whose hooks are tried; without one those of the file."`
	Params string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param  map[string]string `help:"One parameter; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Event  string            `help:"Event: ${enum}." enum:"waiting,failed,done,late,stopped" default:"failed"`
	hookFlags
	remoteFlags
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
	placeFlags
}

// Run implements kong's command.
func (c *hooksTestCmd) Run(ctx context.Context, a *console) error {
	logger := newLogger(a, c.Verbose)
	client, err := c.client(logger)
	if err != nil {
		return err
	}
	defer client.Close()
	process := a.process(func(p *app.Process) { p.Remote, p.Logger = client, logger })
	beside, err := c.hooksDir(a)
	if err != nil {
		return err
	}
	hooks, err := app.HooksIn(ctx, beside, process, c.hookFlags.Hooks)
	if err != nil {
		return err
	}
	if c.Script != "" {
		own, err := (&app.ScriptService{Remote: client, Known: a.known}).Hooks(ctx,
			app.NamedScript{Path: c.Script, ParamsPath: c.Params, Params: c.Param})
		if err != nil {
			return err
		}
		hooks = slices.Concat(own, hooks)
	}
	sent, failed := 0, 0
	app.TryHooks(ctx, process, hooks, c.Event, a.away.text, func(t app.Tried) {
		result := "ok"
		switch {
		case !t.Wants:
			result = "is not told of " + c.Event
			sent--
		case t.Err != nil:
			result = t.Err.Error()
			failed++
		}
		sent++
		fmt.Fprintf(a.stdout, "%s: %s\n", t.Hook, result)
	})
	switch {
	case failed > 0:
		return errReported{exitOurs}
	case sent == 0:
		fmt.Fprintf(a.stderr, "no hook is told of %s\n", c.Event)
	}
	return nil
}
