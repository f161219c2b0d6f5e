package sqlite

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// BeginCommand implements state.Store.
func (s *Store) BeginCommand(ctx context.Context, key state.RunKey, o state.Command) error {
	o.Done = false
	return s.update(ctx, fmt.Sprintf("%s %s", o.Kind, nameRun(key)), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		begun, err := o.Begins(r.run)
		if begun || err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET epoch = ?, last_order = ? WHERE id = ?`,
			o.Epoch, asDocument(&o), r.id); err != nil {
			return err
		}
		return record(ctx, tx, r.id, 0, state.OrderBegun, o.Actor, o.Time, state.EventData{Epoch: o.Epoch, Command: &o})
	})
}

// CommitCommand implements state.Store.
func (s *Store) CommitCommand(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	return s.update(ctx, fmt.Sprintf("end order %d of %s", epoch, nameRun(key)), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		if r.run.Epoch != epoch || r.run.Command == nil {
			return state.ErrConflict
		}
		if r.run.Command.Done {
			return nil
		}
		after := r.run.Command.Ends(r.run, stored(now))
		_, err = tx.ExecContext(ctx,
			`UPDATE runs SET status = ?, finished_ms = ?, failure = ?, invalidated = ?, dropped = ?, last_order = ?, most = ?
				WHERE id = ?`,
			after.Status, moment{after.Finished}, asDocument(after.Failure), asDocument(after.Invalidated),
			asDocument(after.Dropped), asDocument(after.Command), asDocument(after.Limit), r.id)
		if err != nil {
			return err
		}
		return record(ctx, tx, r.id, 0, state.OrderEnded, after.Command.Actor, now,
			state.EventData{Epoch: epoch, Status: after.Status})
	})
}

// CompleteRun implements state.Store.
func (s *Store) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return s.update(ctx, "complete "+nameRun(key), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		switch {
		case err != nil:
			return err
		case r.run.Epoch != epoch || r.run.Command.Pending():
			return state.ErrConflict
		case r.run.Status == state.Complete:
			return nil
		case r.run.Status != state.Running:
			return state.ErrConflict
		}
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET status = ?, finished_ms = ? WHERE id = ?`, state.Complete,
			moment{now}, r.id); err != nil {
			return err
		}
		return record(ctx, tx, r.id, 0, state.RunCompleted, actor, now, state.EventData{Status: state.Complete})
	})
}

// ApplyCommand implements state.Store.
func (s *Store) ApplyCommand(ctx context.Context, key state.NodeKey, o state.Command) error {
	return s.update(ctx, fmt.Sprintf("%s %s", o.Kind, nameNode(key)), func(tx *txn) error {
		at, before, err := findWhole(ctx, tx, key)
		if err != nil || before.Epoch >= o.Epoch {
			return err
		}
		e := o.On(before)
		if e.Status != before.Status && !state.CanMove("node", before.Status, e.Status) {
			return state.ErrIllegalMove
		}
		if err := at.follow(ctx, tx, e, o.Time); err != nil {
			return err
		}
		after := e.Hears(before, o)
		if err := at.write(ctx, tx, after); err != nil {
			return err
		}
		return record(ctx, tx, at.runID, at.id, state.NodeHeard, o.Actor, o.Time, e.Tells(before, after))
	})
}

// follow does to a node's batches what an order wants of them.
func (n nodeRow) follow(ctx context.Context, tx *txn, e state.Effect, now time.Time) error {
	if !e.Free {
		return nil
	}
	// Attempts are claimed only in batches that are: all of those go back.
	_, err := tx.ExecContext(ctx, `UPDATE attempts SET status = ?, finished_ms = ? WHERE node_id = ? AND status = ?`,
		state.Lost, moment{now}, n.id, state.Claimed)
	if err != nil {
		return err
	}
	if e.Unplan {
		if _, err := tx.ExecContext(ctx, `DELETE FROM batches WHERE node_id = ?`, n.id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			`UPDATE nodes SET plan_id = NULL, batches_total = 0, batches_done = 0, batches_failed = 0,
			rows_in = 0, rows_out = 0, bytes_in = 0, bytes_out = 0, tally = '{}' WHERE id = ?`, n.id)
		return err
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE batches SET status = ?1, owner = '', token = '', lease_ms = NULL, started_ms = NULL,
			finished_ms = NULL, stats = NULL, failure = NULL, tries = 0, not_before_ms = NULL
		WHERE node_id = ?2 AND (status IN ('claimed', 'failed') OR tries > 0 AND status = 'pending' OR ?3
		OR batch IN (SELECT value FROM json_each(?4)))`,
		state.Pending, n.id, e.All, asDocument(&e.These))
	if err != nil {
		return err
	}
	// The counters are those of the batches that are left.
	_, err = tx.ExecContext(ctx,
		`UPDATE nodes SET batches_failed = 0, (batches_done, rows_in, rows_out, bytes_in, bytes_out) =
		(SELECT count(*), coalesce(sum(stats ->> 'rows_in'), 0), coalesce(sum(stats ->> 'rows_out'), 0),
			coalesce(sum(stats ->> 'bytes_in'), 0), coalesce(sum(stats ->> 'bytes_out'), 0)
			FROM batches WHERE node_id = ?1 AND status = 'succeeded') WHERE id = ?1`, n.id)
	if err != nil {
		return err
	}
	return retally(ctx, tx, n.id)
}
