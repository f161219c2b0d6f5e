package orders

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/store/state"
)

// Given reports whether a run has had an order with a token, or has begun with it. One request can give
// several orders: their tokens go on behind a blank.
func Given(ctx context.Context, s state.Store, key state.RunKey, token string) (bool, error) {
	run, err := s.Run(ctx, key)
	if err != nil {
		return false, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	is := func(c *state.Command) bool {
		return c != nil && (c.Token == token || strings.HasPrefix(c.Token, token+" "))
	}
	if run.Token == token || is(run.Command) {
		return true, nil
	}
	if run.Epoch == 0 {
		return false, nil
	}
	for after := int64(0); ; {
		events, err := s.Events(ctx, state.NodeKey{RunKey: key}, after, state.PageMax)
		if err != nil {
			return false, fmt.Errorf("read the orders of run %d: %w", key.Run, err)
		}
		if len(events) == 0 {
			return false, nil
		}
		for _, e := range events {
			if after = e.Seq; is(e.Command) {
				return true, nil
			}
		}
	}
}
