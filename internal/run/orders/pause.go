package orders

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/store/state"
)

// Pause lets a run finish the batches that are at work and begin no others,
// until it goes on. It answers with the status that the run has then: one that
// was not running stays as it is.
func Pause(ctx context.Context, s state.Store, key state.RunKey, by state.Mark) (state.Status, error) {
	err := state.Direct(ctx, s, key, state.Command{Kind: state.CommandPause, Token: by.OrderToken(), Mark: by})
	if err != nil && !errors.Is(err, state.ErrConflict) {
		return "", fmt.Errorf("pause run %d: %w", key.Run, err)
	}
	run, err := s.Run(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read run %d: %w", key.Run, err)
	}
	return run.Status, nil
}
