package main

import (
	"fmt"

	"thalweg/internal/app"
)

type schemaCmd struct {
	Of string `arg:"" optional:"" enum:"script,cluster,serve" default:"script" help:"What it is of: ${enum}."`
}

func (c *schemaCmd) Run(a *console) error {
	schema, err := app.Schema(c.Of)
	if err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	if _, err := a.stdout.Write(schema); err != nil {
		return fmt.Errorf("print the schema: %w", err)
	}
	return nil
}
