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

func (*slotCmd) Run() error { return serveChild(app.ServeSlot) }

// peekCmd is a child that answers questions about tables: a server starts it.
type peekCmd struct{}

func (*peekCmd) Run() error { return serveChild(app.ServePeek) }

// serveChild runs a child of this program.
func serveChild(serve func(open func(json.RawMessage, *slog.Logger) (*app.Remote, error)) error) error {
	// What ends a worker (a signal to all of a service's processes, say) lets it
	// drain: its children end when it does.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	return serve(func(client json.RawMessage, logger *slog.Logger) (*app.Remote, error) {
		var flags remoteFlags
		if err := json.Unmarshal(client, &flags); err != nil {
			return nil, fmt.Errorf("read the flags of a child: %w", err)
		}
		return flags.client(logger)
	})
}
