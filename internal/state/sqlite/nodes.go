package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"thalweg/internal/state"
)

// nodeQuery reads nodes. Their counters are kept beside the batches, written
// with them, and part of no condition.
const nodeQuery = `SELECT r.workspace, r.run, n.node, n.kind, n.table_name, n.ordinal, n.inputs, n.fingerprint, n.status, n.epoch, n.generation,
	n.gate, n.failure, p.reused_from, coalesce(p.input_digest, ''), n.batches_total, n.batches_done, n.batches_failed,
	n.rows_in, n.rows_out, n.bytes_in, n.bytes_out, n.started_ms, n.finished_ms, coalesce(p.digest, ''),
	(SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.run_id = n.run_id AND e.node_id = n.id), %s
	FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN plans p ON p.id = n.plan_id
	WHERE r.workspace = ? AND r.run = ? `

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) (nodes []state.Node, err error) {
	err = s.view(ctx, "list nodes of "+nameRun(key), func(tx *sql.Tx) error {
		if _, err := findRun(ctx, tx, key); err != nil {
			return err
		}
		nodes, err = list(ctx, tx, scanNode, fmt.Sprintf(nodeQuery, "NULL")+`ORDER BY n.ordinal, n.id`, key.Workspace, key.Run)
		return err
	})
	return nodes, err
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (node state.Node, err error) {
	err = s.view(ctx, "read "+nameNode(key), func(tx *sql.Tx) error {
		node, err = scanNode(tx.QueryRowContext(ctx, fmt.Sprintf(nodeQuery, "p.record")+`AND n.node = ?`, key.Workspace, key.Run, key.Node))
		return orNotFound(err)
	})
	return node, err
}

func scanNode(row scanner) (n state.Node, err error) {
	var started, finished moment
	err = row.Scan(&n.Workspace, &n.Run, &n.Node, &n.Kind, &n.Table, &n.Ordinal, asDocument(&n.Inputs), &n.Fingerprint, &n.Status, &n.Epoch, &n.Generation,
		&n.Gate, asDocument(&n.Failure), asDocument(&n.ReusedFrom), &n.InputDigest, &n.BatchesTotal, &n.BatchesDone, &n.BatchesFailed,
		&n.RowsIn, &n.RowsOut, &n.BytesIn, &n.BytesOut, &started, &finished, &n.PlanDigest, &n.Revision, &n.Plan)
	n.Name = n.Node
	n.Started, n.Finished = started.Time, finished.Time
	return n, err
}

// MoveNode implements state.Store.
func (s *Store) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	what := fmt.Sprintf("move %s from %s to %s", nameNode(key), m.From, m.To)
	if !state.Settles(m.From, m.To) {
		return fmt.Errorf("%s: %w", what, state.ErrIllegalMove)
	}
	return s.update(ctx, what, func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		switch {
		case err != nil:
			return err
		case n.epoch == m.Epoch && n.status == m.To:
			return nil
		case n.epoch != m.Epoch || n.status != m.From:
			return state.ErrConflict
		}
		m = m.Kept()
		_, err = tx.ExecContext(ctx, `UPDATE nodes SET status = ?, finished_ms = ?, failure = ?, gate = ? WHERE id = ?`,
			m.To, finishedAt(m.To, m.Now), asDocument(m.Failure), m.Gate, n.id)
		if err != nil {
			return err
		}
		return record(ctx, tx, n.runID, n.id, state.NodeMoved, m.Actor, m.Now, state.EventData{Status: m.To, Failure: m.Failure})
	})
}

// finishedAt is the moment to record for a node that moves to a status.
func finishedAt(to state.Status, now time.Time) moment {
	if to.Terminal() {
		return moment{now}
	}
	return moment{}
}

// nodeRow is what a decision about a node needs.
type nodeRow struct {
	id, runID  int64
	status     state.Status
	epoch      int64
	generation int
	finished   moment
	planID     sql.NullInt64
	plan       sql.NullString // its digest
}

func findNode(ctx context.Context, tx *sql.Tx, key state.NodeKey) (n nodeRow, err error) {
	err = tx.QueryRowContext(ctx, `SELECT n.id, r.id, n.status, n.epoch, n.generation, n.finished_ms, n.plan_id, p.digest
		FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN plans p ON p.id = n.plan_id
		WHERE r.workspace = ? AND r.run = ? AND n.node = ?`,
		key.Workspace, key.Run, key.Node).Scan(&n.id, &n.runID, &n.status, &n.epoch, &n.generation, &n.finished, &n.planID, &n.plan)
	return n, orNotFound(err)
}
