package sqlite

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

const nodeQuery = `SELECT r.workspace, r.run, n.node, n.kind, n.ordinal, n.inputs, n.status,
	n.batches_total, n.batches_done, n.batches_failed, n.rows_in, n.rows_out, n.bytes_in, n.bytes_out,
	n.started_ms, n.finished_ms, p.node_id IS NOT NULL, p.plan
	FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN node_plans p ON p.node_id = n.id
	WHERE r.workspace = ? AND r.run = ? `

// Nodes implements state.Store.
func (s *Store) Nodes(ctx context.Context, key state.RunKey) (nodes []state.Node, err error) {
	err = s.view(ctx, "list nodes of "+nameRun(key), func(tx *sql.Tx) error {
		if _, _, err := findRun(ctx, tx, key); err != nil {
			return err
		}
		nodes, err = list(ctx, tx, scanNode, nodeQuery+`ORDER BY n.ordinal, n.id`, key.Workspace, key.Run)
		return err
	})
	return nodes, err
}

// Node implements state.Store.
func (s *Store) Node(ctx context.Context, key state.NodeKey) (node state.Node, err error) {
	err = s.view(ctx, "read "+nameNode(key), func(tx *sql.Tx) error {
		node, err = scanNode(tx.QueryRowContext(ctx, nodeQuery+`AND n.node = ?`, key.Workspace, key.Run, key.Node))
		return orNotFound(err)
	})
	return node, err
}

func scanNode(row scanner) (n state.Node, err error) {
	var started, finished moment
	var planned bool
	err = row.Scan(&n.Workspace, &n.Run, &n.Node, &n.Kind, &n.Ordinal, asDocument(&n.Inputs), &n.Status,
		&n.BatchesTotal, &n.BatchesDone, &n.BatchesFailed, &n.RowsIn, &n.RowsOut, &n.BytesIn, &n.BytesOut,
		&started, &finished, &planned, &n.Plan)
	if planned && n.Plan == nil {
		n.Plan = []byte{} // the driver reads an empty value as nil, which would mean not planned
	}
	n.Name = n.Node
	n.Started, n.Finished = started.Time, finished.Time
	return n, err
}

// PlanNode implements state.Store.
func (s *Store) PlanNode(ctx context.Context, key state.NodeKey, plan []byte, batches []state.BatchSpec) error {
	what := "plan " + nameNode(key)
	for i, b := range batches {
		if b.Batch != i {
			return fmt.Errorf("%s: %w", what, fault.New(fault.Bug, "batches are not numbered in order: number %d at place %d", b.Batch, i))
		}
	}
	digest := digestPlan(plan, batches)
	return s.update(ctx, what, func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		if n.planned.Valid {
			if n.planned.String != digest {
				return state.ErrExists
			}
			return nil
		}
		if n.runStatus != state.Running || n.status != state.Pending {
			return state.ErrConflict
		}
		return insertPlan(ctx, tx, n.id, digest, plan, batches)
	})
}

func insertPlan(ctx context.Context, tx *sql.Tx, nodeID int64, digest string, plan []byte, batches []state.BatchSpec) error {
	if plan == nil {
		plan = []byte{} // the column bears no NULL
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO node_plans (node_id, digest, plan) VALUES (?, ?, ?)`, nodeID, digest, plan); err != nil {
		return err
	}
	specs, err := tx.PrepareContext(ctx, `INSERT INTO batch_specs (node_id, batch, rows_in, bytes_in, work) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	states, err := tx.PrepareContext(ctx, `INSERT INTO batches (node_id, batch, status) VALUES (?, ?, ?)`)
	if err != nil {
		return err
	}
	for _, b := range batches {
		if _, err := specs.ExecContext(ctx, nodeID, b.Batch, b.RowsIn, b.BytesIn, b.Work); err != nil {
			return err
		}
		if _, err := states.ExecContext(ctx, nodeID, b.Batch, state.Pending); err != nil {
			return err
		}
	}
	return exactlyOne(tx.ExecContext(ctx, `UPDATE nodes SET status = ?, batches_total = ? WHERE id = ? AND status = ?`,
		state.Running, len(batches), nodeID, state.Pending))
}

// digestPlan identifies a plan's contents. Each field is preceded by its
// length, so that no two plans can run together to the same bytes.
func digestPlan(plan []byte, batches []state.BatchSpec) string {
	h := sha256.New()
	var word [8]byte
	number := func(n int64) {
		binary.BigEndian.PutUint64(word[:], uint64(n))
		h.Write(word[:])
	}
	text := func(b []byte) {
		number(int64(len(b)))
		h.Write(b)
	}
	text(plan)
	for _, b := range batches {
		number(b.RowsIn)
		number(b.BytesIn)
		text(b.Work)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// SetNodeStatus implements state.Store.
func (s *Store) SetNodeStatus(ctx context.Context, key state.NodeKey, from, to state.Status) error {
	what := fmt.Sprintf("move %s from %s to %s", nameNode(key), from, to)
	if !state.CanMove("node", from, to) {
		return fmt.Errorf("%s: %w", what, state.ErrIllegalMove)
	}
	return s.update(ctx, what, func(tx *sql.Tx) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE nodes SET status = ?, finished_ms = ? WHERE id = ? AND status = ?`,
			to, s.finished(to), n.id, from))
	})
}

// nodeRow is what a decision about a node needs.
type nodeRow struct {
	id        int64
	status    state.Status
	runStatus state.Status
	planned   sql.NullString // digest of the plan
}

func findNode(ctx context.Context, tx *sql.Tx, key state.NodeKey) (n nodeRow, err error) {
	err = tx.QueryRowContext(ctx, `SELECT n.id, n.status, r.status, p.digest
		FROM runs r JOIN nodes n ON n.run_id = r.id LEFT JOIN node_plans p ON p.node_id = n.id
		WHERE r.workspace = ? AND r.run = ? AND n.node = ?`,
		key.Workspace, key.Run, key.Node).Scan(&n.id, &n.status, &n.runStatus, &n.planned)
	return n, orNotFound(err)
}
