package worker

import (
	"encoding/json"
	"log/slog"

	"thalweg/internal/base/keeper"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/sandbox"
)

// EngineVersion is the version of DuckDB in this program.
const EngineVersion = engine.Version

// SlotCommand is the word by which a slot's process is started.
const SlotCommand = sandbox.Command

// Fixed says how much is done at once, instead of what is found by measuring.
type Fixed = concurrency.Fixed

// ParseFixed reads settings, each as N, CLASS=N or CLASS.KNOB=N.
func ParseFixed(texts []string) (Fixed, error) { return concurrency.ParseFixed(texts) }

// SlotProgram starts a slot's process. It is this program, at path: scripts name our variables.
func SlotProgram(path string) keeper.Program {
	return keeper.Program{Path: path, Name: "thalweg", Args: []string{SlotCommand}, Env: keeper.All()}
}

// IsolationBy starts each slot from the program at path; client is what ServeSlot makes its remote.Client of.
func IsolationBy(path string, client any) *Isolation {
	return &Isolation{Client: client, Command: func() keeper.Program { return SlotProgram(path) }}
}

// Kept runs the keeper, which ends the processes that formulas have started, if args
// are those of a keeper. is reports whether they are; code is the exit code.
func Kept(args []string) (code int, is bool) {
	if !keeper.Called(args) {
		return 0, false
	}
	return keeper.Main(args, keeper.Cgroups()), true
}

// ServeInherited runs a slot's process, over the connection that it was started with.
func ServeInherited(open func(client json.RawMessage, logger *slog.Logger) (*remote.Client, error)) error {
	conn, err := sandbox.Inherited()
	if err != nil {
		return err
	}
	return ServeSlot(conn, func(client json.RawMessage, p sandbox.Parent) (*remote.Client, error) {
		return open(client, p.Logger)
	})
}
