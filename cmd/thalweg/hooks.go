package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"thalweg/internal/app/runner"
	"thalweg/internal/app/scripts"
	"thalweg/internal/base/calendar"
	"thalweg/internal/base/message"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
)

// hookFlags say who is told of all runs.
type hookFlags struct {
	Hooks string `help:"File of hooks, who are told beside those of the script; default: hooks.yaml in the state directory." placeholder:"FILE"`
}

func (f hookFlags) loadHooks(ctx context.Context, a *app, place *workplace) ([]script.Hook, error) {
	return runner.Hooks(ctx, place.home, place.client, a.known, f.Hooks)
}

// hooksCmd has commands about hooks.
type hooksCmd struct {
	Test hooksTestCmd `cmd:"" help:"Send an example to each hook that wants to know of an event."`
}

type hooksTestCmd struct {
	Script string            `arg:"" optional:"" help:"Script whose hooks are tried; without one those of the file."`
	Params string            `help:"File with the script's parameters." placeholder:"FILE"`
	Param  map[string]string `help:"One parameter, instead of the file's; may be repeated." placeholder:"NAME=VALUE" mapsep:"none"`
	Event  string            `help:"Event that the example is of: waiting, failed, done, late or stopped." enum:"waiting,failed,done,late,stopped" default:"failed"`
	hookFlags
	remoteFlags
	Verbose bool `short:"v" help:"Log what the machinery does, to standard error."`
	placeFlags
}

// Run implements kong's command.
func (c *hooksTestCmd) Run(ctx context.Context, a *app) error {
	logger := newLogger(a, c.Verbose)
	client, err := c.client(logger)
	if err != nil {
		return err
	}
	defer client.Close()
	beside, err := c.hooksDir(a)
	if err != nil {
		return err
	}
	hooks, err := runner.HooksIn(ctx, beside, client, a.known, c.hookFlags.Hooks)
	if err != nil {
		return err
	}
	if c.Script != "" {
		src := scripts.Sources(client, "", c.Script, c.Params)
		src.Known, src.Params = a.known, c.Param
		s, diags := script.LoadServing(ctx, src)
		if diags.HasErrors() {
			return &scripts.InvalidScriptError{Diagnostics: diags}
		}
		hooks = slices.Concat(s.Notify, hooks)
	}
	m := message.Example(message.Kind(c.Event))
	m.Say(a.away.text)
	m.Time, m.ID = time.Now().UTC(), fmt.Sprintf("evt_test_%d", time.Now().UnixNano())
	sender := &notify.Sender{Post: client, Keeper: ownExecutable, Environment: os.LookupEnv, Known: a.known,
		Clock: calendar.System{}, Logger: logger}
	return a.tryHooks(ctx, sender, hooks, m)
}

// tryHooks sends a message to each hook that wants it, and says what came of it.
func (a *app) tryHooks(ctx context.Context, sender *notify.Sender, hooks []script.Hook, m message.Message) error {
	sent, failed := 0, 0
	for _, h := range hooks {
		if !slices.Contains(h.On, m.Event) {
			fmt.Fprintf(a.stdout, "%s: is not told of %s\n", notify.Name(h), m.Event)
			continue
		}
		sent++
		if err := sender.Send(ctx, h, m, ""); err != nil {
			failed++
			fmt.Fprintf(a.stdout, "%s: %s\n", notify.Name(h), err)
			continue
		}
		fmt.Fprintf(a.stdout, "%s: ok\n", notify.Name(h))
	}
	switch {
	case failed > 0:
		return errReported{exitOurs}
	case sent == 0:
		fmt.Fprintf(a.stderr, "no hook is told of %s\n", m.Event)
	}
	return nil
}
