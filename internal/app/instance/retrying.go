package instance

import (
	"log/slog"

	"thalweg/internal/store/state"
	"thalweg/internal/store/state/retrying"
)

// Control is the state as people's orders reach it: what cannot be reached for
// a moment is asked again.
func (h *Instance) Control() state.Store { return retrying.New(h.State, retrying.Config{}) }

// Waiting is the state for who follows runs: it is waited for while it cannot be
// reached, which the logger is told once.
func (h *Instance) Waiting(logger *slog.Logger) state.Store {
	return retrying.New(h.State, retrying.Config{Within: retrying.Forever, Logger: logger})
}
