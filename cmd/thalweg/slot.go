package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"

	"thalweg/internal/app"
)

// slotCmd is a slot of a worker that isolates: `thalweg worker --isolate` starts it.
type slotCmd struct{}

func (*slotCmd) Run() error {
	// What ends a worker (a signal to all of a service's processes, say) lets it
	// drain: its slots end when it does.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return app.ServeSlot(func(client json.RawMessage, logger *slog.Logger) (*app.Remote, error) {
		var flags remoteFlags
		if err := json.Unmarshal(client, &flags); err != nil {
			return nil, fmt.Errorf("read the flags of a slot: %w", err)
		}
		return flags.client(logger)
	})
}
