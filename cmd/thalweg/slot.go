package main

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"

	"thalweg/internal/app/worker"
	"thalweg/internal/base/keeper"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/sandbox"
)

// slotCmd is a slot of a worker that isolates: `thalweg worker --isolate` starts it.
type slotCmd struct{}

// slotProcess makes a slot's process. It is this program: scripts name our variables.
func slotProcess() keeper.Program {
	return keeper.Program{Path: ownExecutable, Name: "thalweg", Args: []string{sandbox.Command}, Env: keeper.All()}
}

func (*slotCmd) Run() error {
	// What ends a worker (a signal to all of a service's processes, say) lets it
	// drain: its slots end when it does.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	conn, err := sandbox.Inherited()
	if err != nil {
		return err
	}
	return worker.ServeSlot(conn, func(client json.RawMessage, p sandbox.Parent) (*remote.Client, error) {
		var flags remoteFlags
		if err := json.Unmarshal(client, &flags); err != nil {
			return nil, fmt.Errorf("read the flags of a slot: %w", err)
		}
		return flags.client(p.Logger)
	})
}
