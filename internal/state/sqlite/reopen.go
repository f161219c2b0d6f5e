package sqlite

import (
	"context"
	"database/sql"
	"time"

	"thalweg/internal/state"
)

// Reopen implements state.Store.
func (s *Store) Reopen(ctx context.Context, key state.RunKey, now time.Time) error {
	return s.update(ctx, "reopen "+nameRun(key), func(tx *sql.Tx) error {
		id, status, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		if status != state.Running && !state.CanMove("run", status, state.Running) {
			return state.ErrConflict
		}
		if err := reopenBatches(ctx, tx, id, now); err != nil {
			return err
		}
		if err := reopenNodes(ctx, tx, id); err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE runs SET status = ?, finished_ms = NULL, failure = NULL WHERE id = ? AND status = ?`,
			state.Running, id, status))
	})
}

// unfinished is a batch that a reopened run takes up again.
type unfinished struct {
	nodeID         int64
	batch, attempt int
	status         state.Status
}

func reopenBatches(ctx context.Context, tx *sql.Tx, runID int64, now time.Time) error {
	todo, err := list(ctx, tx, func(row scanner) (u unfinished, err error) {
		err = row.Scan(&u.nodeID, &u.batch, &u.attempt, &u.status)
		return u, err
	}, `SELECT b.node_id, b.batch, b.attempt, b.status FROM nodes n JOIN batches b ON b.node_id = n.id
		WHERE n.run_id = ? AND b.status IN (?, ?)`, runID, state.Failed, state.Claimed)
	if err != nil {
		return err
	}
	for _, u := range todo {
		if u.status == state.Claimed {
			if err := endAttempt(ctx, tx, u.nodeID, u.batch, u.attempt, state.Lost, now, nil); err != nil {
				return err
			}
		}
		if err := resetBatch(ctx, tx, u.nodeID, u.batch, u.status); err != nil {
			return err
		}
		if err := withdraw(ctx, tx, u.nodeID, u.batch); err != nil {
			return err
		}
	}
	_, err = tx.ExecContext(ctx, `UPDATE nodes SET batches_failed = 0 WHERE run_id = ?`, runID)
	return err
}

// withdraw takes back what a batch's failed attempt published: the next one
// publishes its own. The part store's objects stay until gc.
func withdraw(ctx context.Context, tx *sql.Tx, nodeID int64, batch int) error {
	for _, table := range []string{"parts", "checks"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE node_id = ? AND batch = ?`, nodeID, batch); err != nil {
			return err
		}
	}
	return nil
}

// reopenNodes moves failed and stopped nodes to Running, or to Pending if
// they have no plan yet.
func reopenNodes(ctx context.Context, tx *sql.Tx, runID int64) error {
	for _, from := range []state.Status{state.Failed, state.Stopped} {
		for _, to := range []state.Status{state.Pending, state.Running} {
			if !state.CanMove("node", from, to) {
				return state.ErrIllegalMove
			}
			_, err := tx.ExecContext(ctx, `UPDATE nodes SET status = ?, finished_ms = NULL WHERE run_id = ? AND status = ?
				AND (id IN (SELECT node_id FROM node_plans)) = ?`, to, runID, from, to == state.Running)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
