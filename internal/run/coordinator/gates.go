package coordinator

import (
	"context"
	"errors"
	"fmt"

	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// wait moves a gate to Waiting. It first puts a note of it into the workspace, so
// that nobody has to search all runs for gates that wait.
func (c *Coordinator) wait(ctx context.Context, n state.Node, r gate.Record) error {
	now := c.cfg.Now()
	r = r.Begin(now)
	data, err := r.Encode()
	if err != nil {
		return err
	}
	if err := gate.Note(ctx, c.cfg.Store, n.NodeKey, now); err != nil {
		return err
	}
	c.cfg.Checkpoint(job.Noted)
	err = c.cfg.Store.MoveNode(ctx, n.NodeKey, state.Move{Epoch: n.Epoch, From: n.Status, To: state.Waiting, Gate: data,
		GateDigest: r.Digest, Actor: c.cfg.Owner, Now: now})
	if errors.Is(err, state.ErrConflict) {
		return nil // somebody else came first, or an order: read again
	}
	if err != nil {
		return fmt.Errorf("let gate %s wait: %w", r.Gate, err)
	}
	c.cfg.Checkpoint(job.Asked)
	return nil
}
