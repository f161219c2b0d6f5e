package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// nodeQuery reads nodes. Their counters are kept beside the batches, written
// with them, and part of no condition.
const nodeQuery = `SELECT r.workspace, r.run, n.node, n.kind, n.table_name, n.ordinal, n.inputs, n.fingerprint,
	n.status, n.epoch, n.fence, n.generation,
	n.gate, n.gate_digest, n.decision, n.dropped, n.failure, p.reused_from, coalesce(p.input_digest, ''),
	n.batches_total, n.batches_done, n.batches_failed,
	n.rows_in, n.rows_out, n.bytes_in, n.bytes_out, n.worked_ms, n.lost_ms, n.started_ms, n.finished_ms, coalesce(p.digest, ''),
	(SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.run_id = n.run_id AND e.node_id = n.id), %s
	FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN plans p ON p.id = n.plan_id
	WHERE r.workspace = ? AND r.run = ? `

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) (nodes []state.Node, err error) {
	err = s.view(ctx, "list nodes of "+nameRun(key), func(tx *txn) error {
		if _, err := findRun(ctx, tx, key); err != nil {
			return err
		}
		nodes, err = list(ctx, tx, scanNode, fmt.Sprintf(nodeQuery, "NULL")+`ORDER BY n.ordinal, n.id`,
			key.Workspace, key.Run)
		return err
	})
	return nodes, err
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (node state.Node, err error) {
	err = s.view(ctx, "read "+nameNode(key), func(tx *txn) error {
		node, err = readNode(ctx, tx, key, "p.record")
		return err
	})
	return node, err
}

// readNode reads a node, and what is given as its plan.
func readNode(ctx context.Context, tx *txn, key state.NodeKey, plan string) (state.Node, error) {
	n, err := scanNode(tx.QueryRowContext(ctx, fmt.Sprintf(nodeQuery, plan)+`AND n.node = ?`, key.Workspace,
		key.Run, key.Node))
	return n, orNotFound(err)
}

func scanNode(row scanner) (n state.Node, err error) {
	var started, finished moment
	var worked, lost int64
	err = row.Scan(&n.Workspace, &n.Run, &n.Node, &n.Kind, &n.Table, &n.Ordinal, asDocument(&n.Inputs), &n.Fingerprint,
		&n.Status, &n.Epoch, &n.Fence, &n.Generation,
		&n.Gate, &n.GateDigest, asDocument(&n.Decision), &n.Dropped, asDocument(&n.Failure), asDocument(&n.ReusedFrom),
		&n.InputDigest, &n.BatchesTotal, &n.BatchesDone, &n.BatchesFailed,
		&n.RowsIn, &n.RowsOut, &n.BytesIn, &n.BytesOut, &worked, &lost, &started, &finished, &n.PlanDigest, &n.Revision,
		&n.Plan)
	n.Name, n.Spent = n.Node, spentOf(worked, lost)
	n.Started, n.Finished = started.Time, finished.Time
	return n, err
}

// spentOf is what the columns of a node say.
func spentOf(worked, lost int64) state.Spent {
	return state.Spent{Worked: time.Duration(worked) * time.Millisecond, Lost: time.Duration(lost) * time.Millisecond}
}

// MoveNode implements state.Store.
func (s *Store) MoveNode(ctx context.Context, key state.NodeKey, m state.Move) error {
	what := fmt.Sprintf("move %s from %s to %s", nameNode(key), m.From, m.To)
	if !state.Settles(m.From, m.To) {
		return fmt.Errorf("%s: %w", what, state.ErrIllegalMove)
	}
	return s.update(ctx, what, func(tx *txn) error {
		at, before, err := findWhole(ctx, tx, key)
		if err != nil {
			return err
		}
		if made, err := m.On(before); made || err != nil {
			return err
		}
		after := m.Moves(before)
		if err := at.write(ctx, tx, after); err != nil {
			return err
		}
		return record(ctx, tx, at.runID, at.id, state.NodeMoved, m.Actor, m.Now, m.Tells())
	})
}

// findWhole reads a node with its place in the file.
func findWhole(ctx context.Context, tx *txn, key state.NodeKey) (nodeRow, state.Node, error) {
	at, err := findNode(ctx, tx, key)
	if err != nil {
		return at, state.Node{}, err
	}
	n, err := readNode(ctx, tx, key, "NULL")
	return at, n, err
}

// write stores what moves and orders change of a node.
func (n nodeRow) write(ctx context.Context, tx *txn, to state.Node) error {
	_, err := tx.ExecContext(ctx,
		`UPDATE nodes SET status = ?, epoch = ?, fence = ?, generation = ?, gate = ?, gate_digest = ?, decision = ?,
			dropped = ?,
		failure = ?, finished_ms = ? WHERE id = ?`,
		to.Status, to.Epoch, to.Fence, to.Generation, to.Gate, to.GateDigest, asDocument(to.Decision), to.Dropped,
		asDocument(to.Failure), moment{to.Finished}, n.id)
	return err
}

// nodeRow holds the columns that a decision about a node needs.
type nodeRow struct {
	id, runID  int64
	status     state.Status
	epoch      int64
	fence      int64
	generation int
	planID     sql.NullInt64
	plan       sql.NullString // its digest
}

func findNode(ctx context.Context, tx *txn, key state.NodeKey) (n nodeRow, err error) {
	err = tx.QueryRowContext(ctx, `SELECT n.id, r.id, n.status, n.epoch, n.fence, n.generation, n.plan_id, p.digest
		FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN plans p ON p.id = n.plan_id
		WHERE r.workspace = ? AND r.run = ? AND n.node = ?`,
		key.Workspace, key.Run, key.Node).Scan(&n.id, &n.runID, &n.status, &n.epoch, &n.fence, &n.generation,
		&n.planID, &n.plan)
	return n, orNotFound(err)
}
