package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

type eventsCmd struct {
	Which  runRef `arg:"" name:"run" optional:"" default:"last" help:"Number of the run, or last."`
	Follow bool   `help:"Go on until the run is over, or waits for people."`
	Wait   bool   `help:"With --follow: also while the run is paused, waits for people, or nobody works on it."`
	After  int64  `help:"Begin behind line N." placeholder:"N"`
	stateFlags
}

// Run implements kong's command.
func (c *eventsCmd) Run(ctx context.Context, a *console) error {
	switch {
	case c.After < 0:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("--after %d: lines are numbered from 1", c.After)}
	case c.Wait && !c.Follow:
		return &fault.Error{Kind: fault.Script, Message: "--wait says how long --follow goes on",
			Hint: "give --follow as well"}
	}
	home, run, err := c.Which.open(ctx, a, c.stateFlags)
	if err != nil {
		return err
	}
	defer home.Close()
	tell := func(lines []view.EventLine) error { return printLines(a.stdout, lines) }
	if c.Follow {
		err = home.Operations.Follow(ctx, run.RunKey, app.FollowOptions{After: c.After, Stay: c.Wait,
			Alone: a.nobodyTakes(run.RunKey)}, tell)
	} else {
		err = home.Operations.Events(ctx, run.RunKey, c.After, tell)
	}
	if errors.Is(err, syscall.EPIPE) {
		return nil // nobody reads any more: head has seen enough
	}
	return err
}

// printLines writes events, one a line.
func printLines(w io.Writer, lines []view.EventLine) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("write an event: %w", err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write events: %w", err)
	}
	return nil
}
