package orders

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/store/state"
)

// Stop ends a run: nothing more of it is done, and what is under way goes
// nowhere. It answers with the status that the run had before; one that was
// over by itself is left as it is.
func Stop(ctx context.Context, s state.Store, key state.RunKey, by state.Mark) (before state.Status, err error) {
	run, err := s.Run(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read run %d: %w", key.Run, err)
	}
	err = state.Direct(ctx, s, key, state.Command{Kind: state.CommandStop, Token: by.OrderToken(), Mark: by})
	switch {
	case errors.Is(err, state.ErrConflict): // it is over, perhaps since a moment ago
		if run, err = s.Run(ctx, key); err != nil {
			return "", fmt.Errorf("read run %d: %w", key.Run, err)
		}
		return run.Status, nil
	case err != nil:
		return "", fmt.Errorf("stop run %d: %w", key.Run, err)
	}
	return run.Status, nil
}
