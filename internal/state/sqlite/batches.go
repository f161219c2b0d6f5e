package sqlite

import (
	"context"
	"database/sql"
	"time"

	"thalweg/internal/state"
)

// Batches implements state.Store.
func (s *Store) Batches(ctx context.Context, key state.NodeKey) (batches []state.Batch, err error) {
	err = s.view(ctx, "list batches of "+nameNode(key), func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		batches, err = list(ctx, tx, scanBatch(key), `SELECT b.batch, s.rows_in, s.bytes_in, s.work, b.status, b.attempt, b.owner,
			b.lease_ms, b.started_ms, b.finished_ms, b.stats, b.failure
			FROM batches b JOIN batch_specs s ON s.node_id = b.node_id AND s.batch = b.batch
			WHERE b.node_id = ? ORDER BY b.batch`, n.id)
		return err
	})
	return batches, err
}

func scanBatch(key state.NodeKey) func(scanner) (state.Batch, error) {
	return func(row scanner) (state.Batch, error) {
		b := state.Batch{BatchKey: state.BatchKey{NodeKey: key}}
		var lease, started, finished moment
		err := row.Scan(&b.BatchKey.Batch, &b.RowsIn, &b.BytesIn, &b.Work, &b.Status, &b.Attempt, &b.Owner,
			&lease, &started, &finished, asDocument(&b.Stats), asDocument(&b.Failure))
		b.BatchSpec.Batch = b.BatchKey.Batch
		b.Lease, b.Started, b.Finished = lease.Time, started.Time, finished.Time
		return b, err
	}
}

// Attempts implements state.Store.
func (s *Store) Attempts(ctx context.Context, key state.NodeKey) (attempts []state.Attempt, err error) {
	err = s.view(ctx, "list attempts of "+nameNode(key), func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		attempts, err = list(ctx, tx, scanAttempt(key), `SELECT batch, attempt, owner, status, started_ms, finished_ms, failure
			FROM attempts WHERE node_id = ? ORDER BY batch, attempt`, n.id)
		return err
	})
	return attempts, err
}

func scanAttempt(key state.NodeKey) func(scanner) (state.Attempt, error) {
	return func(row scanner) (state.Attempt, error) {
		a := state.Attempt{BatchKey: state.BatchKey{NodeKey: key}}
		var started, finished moment
		err := row.Scan(&a.Batch, &a.Attempt, &a.Owner, &a.Status, &started, &finished, asDocument(&a.Failure))
		a.Started, a.Finished = started.Time, finished.Time
		return a, err
	}
}

// batchRow is what a decision about a batch needs.
type batchRow struct {
	runStatus  state.Status
	nodeID     int64
	nodeStatus state.Status
	status     state.Status
	attempt    int
	lease      moment
}

func findBatch(ctx context.Context, tx *sql.Tx, key state.BatchKey) (b batchRow, err error) {
	err = tx.QueryRowContext(ctx, `SELECT r.status, n.id, n.status, b.status, b.attempt, b.lease_ms
		FROM runs r JOIN nodes n ON n.run_id = r.id JOIN batches b ON b.node_id = n.id
		WHERE r.workspace = ? AND r.run = ? AND n.node = ? AND b.batch = ?`,
		key.Workspace, key.Run, key.Node, key.Batch).
		Scan(&b.runStatus, &b.nodeID, &b.nodeStatus, &b.status, &b.attempt, &b.lease)
	return b, orNotFound(err)
}

// Claim implements state.Store.
func (s *Store) Claim(ctx context.Context, key state.BatchKey, owner string, now, lease time.Time) (state.Claim, error) {
	claim := state.Claim{BatchKey: key, Owner: owner, Lease: stored(lease)}
	err := s.update(ctx, "claim "+nameBatch(key), func(tx *sql.Tx) error {
		b, err := findBatch(ctx, tx, key)
		if err != nil {
			return err
		}
		if err := b.makePending(ctx, tx, key.Batch, now); err != nil {
			return err
		}
		claim.Attempt = b.attempt + 1
		if err := insertAttempt(ctx, tx, b.nodeID, claim, now); err != nil {
			return err
		}
		claim.Spec.Batch = key.Batch
		return tx.QueryRowContext(ctx, `SELECT rows_in, bytes_in, work FROM batch_specs WHERE node_id = ? AND batch = ?`,
			b.nodeID, key.Batch).Scan(&claim.Spec.RowsIn, &claim.Spec.BytesIn, &claim.Spec.Work)
	})
	if err != nil {
		return state.Claim{}, err
	}
	return claim, nil
}

// makePending lets a claim go on: it ends an attempt whose lease is over, and
// refuses whatever cannot be claimed.
func (b batchRow) makePending(ctx context.Context, tx *sql.Tx, batch int, now time.Time) error {
	if b.runStatus != state.Running || b.nodeStatus != state.Running {
		return state.ErrNotClaimable
	}
	if b.status == state.Pending {
		return nil
	}
	if b.status != state.Claimed || !b.lease.Before(stored(now)) {
		return state.ErrNotClaimable
	}
	if err := endAttempt(ctx, tx, b.nodeID, batch, b.attempt, state.Lost, now, nil); err != nil {
		return err
	}
	return resetBatch(ctx, tx, b.nodeID, batch, state.Claimed)
}

func insertAttempt(ctx context.Context, tx *sql.Tx, nodeID int64, c state.Claim, now time.Time) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO attempts (node_id, batch, attempt, owner, status, started_ms) VALUES (?, ?, ?, ?, ?, ?)`,
		nodeID, c.Batch, c.Attempt, c.Owner, state.Claimed, moment{now})
	if err != nil {
		return err
	}
	err = exactlyOne(tx.ExecContext(ctx, `UPDATE batches SET status = ?, attempt = ?, owner = ?, lease_ms = ?, started_ms = ?
		WHERE node_id = ? AND batch = ? AND status = ?`,
		state.Claimed, c.Attempt, c.Owner, moment{c.Lease}, moment{now}, nodeID, c.Batch, state.Pending))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE nodes SET started_ms = ? WHERE id = ? AND started_ms IS NULL`, moment{now}, nodeID)
	return err
}

// endAttempt moves an attempt from Claimed to one of its last states.
func endAttempt(ctx context.Context, tx *sql.Tx, nodeID int64, batch, attempt int, to state.Status, now time.Time, failure *state.Failure) error {
	if !state.CanMove("attempt", state.Claimed, to) {
		return state.ErrIllegalMove
	}
	return exactlyOne(tx.ExecContext(ctx, `UPDATE attempts SET status = ?, finished_ms = ?, failure = ?
		WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
		to, moment{now}, asDocument(failure), nodeID, batch, attempt, state.Claimed))
}

// resetBatch gives a batch back to Pending: only its number of attempts stays.
func resetBatch(ctx context.Context, tx *sql.Tx, nodeID int64, batch int, from state.Status) error {
	if !state.CanMove("batch", from, state.Pending) {
		return state.ErrIllegalMove
	}
	return exactlyOne(tx.ExecContext(ctx, `UPDATE batches SET status = ?, owner = '', lease_ms = NULL,
		started_ms = NULL, finished_ms = NULL, stats = NULL, failure = NULL
		WHERE node_id = ? AND batch = ? AND status = ?`, state.Pending, nodeID, batch, from))
}
