package main

import (
	"context"
	"fmt"

	"thalweg/internal/app"
)

// openLineageFlag says where OpenLineage events go.
type openLineageFlag struct {
	OpenLineage string `name:"openlineage" help:"Where OpenLineage events go: file, address or off." placeholder:"DEST"`
}

// printEvents prints the OpenLineage events of a run.
func (c *lineageCmd) printEvents(ctx context.Context, a *console) error {
	logger := newLogger(a, false)
	client, err := c.client(logger)
	if err != nil {
		return err
	}
	home, run, err := c.runFlag.open(ctx, a, c.stateFlags, func(p *app.Process) { p.Remote, p.Logger = client, logger })
	if err != nil {
		return err
	}
	defer home.Close()
	events, err := home.Data.LineageEvents(ctx, run.RunKey)
	if err != nil {
		return err
	}
	for _, e := range events {
		line, err := e.Line()
		if err == nil {
			_, err = a.stdout.Write(line)
		}
		if err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}
