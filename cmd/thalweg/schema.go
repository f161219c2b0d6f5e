package main

import (
	"fmt"

	"thalweg/internal/script"
)

type schemaCmd struct{}

func (c *schemaCmd) Run(a *app) error {
	schema, err := script.JSONSchema()
	if err != nil {
		return fmt.Errorf("write the schema: %w", err)
	}
	if _, err := a.stdout.Write(schema); err != nil {
		return fmt.Errorf("print the schema: %w", err)
	}
	return nil
}
