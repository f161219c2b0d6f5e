package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// StagePlan implements state.Store.
func (s *Store) StagePlan(ctx context.Context, key state.NodeKey, digest string, piece state.PlanPiece) error {
	return s.update(ctx, "store a piece of the plan of "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		_, err = stage(ctx, tx, n.id, digest, piece)
		return err
	})
}

// stage stores a piece of a plan and gives the plan's place.
func stage(ctx context.Context, tx *txn, nodeID int64, digest string, piece state.PlanPiece) (id int64, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id FROM plans WHERE node_id = ? AND digest = ?`, nodeID, digest).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		var result sql.Result
		if result, err = tx.ExecContext(ctx, `INSERT INTO plans (node_id, digest) VALUES (?, ?)`, nodeID,
			digest); err == nil {
			id, err = result.LastInsertId()
		}
	}
	if err != nil {
		return 0, err
	}
	err = each(ctx, tx, `INSERT OR IGNORE INTO plan_batches (plan_id, batch, phase, class, rows_in, bytes_in, work) `+
		`VALUES (?, ?, ?, ?, ?, ?, ?)`, piece.Batches, func(_ int, b state.BatchSpec) []any {
		return []any{id, b.Batch, b.Phase, b.Class, b.RowsIn, b.BytesIn, b.Work}
	})
	if err != nil {
		return 0, err
	}
	return id, each(ctx, tx, `INSERT OR IGNORE INTO plan_inputs (plan_id, seq, input) VALUES (?, ?, ?)`,
		piece.Inputs, func(i int, in state.Input) []any { return []any{id, piece.First + i, asDocument(&in)} })
}

// each executes one statement for each value.
func each[T any](ctx context.Context, tx *txn, statement string, all []T, args func(int, T) []any) error {
	if len(all) == 0 {
		return nil
	}
	prepared, err := tx.PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	for i, v := range all {
		if _, err := prepared.ExecContext(ctx, args(i, v)...); err != nil {
			return errors.Join(err, prepared.Close())
		}
	}
	return prepared.Close()
}

// AdoptPlan implements state.Store.
func (s *Store) AdoptPlan(ctx context.Context, key state.NodeKey, f state.Adoption) (standing string, err error) {
	what := "plan " + nameNode(key)
	err = s.update(ctx, what, func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		switch {
		case err != nil:
			return err
		case n.epoch != f.Epoch:
			return state.ErrConflict
		case n.plan.Valid:
			standing = n.plan.String
			return nil
		case n.status != state.Pending:
			return state.ErrConflict
		}
		id, err := stage(ctx, tx, n.id, f.Digest, f.Rest)
		if err != nil {
			return err
		}
		standing = f.Digest
		return n.plans(ctx, tx, id, f)
	})
	return standing, err
}

// plans makes a stored plan the node's.
func (n nodeRow) plans(ctx context.Context, tx *txn, id int64, f state.Adoption) error {
	_, err := tx.ExecContext(ctx, `UPDATE plans SET record = ?, input_digest = ?, reused_from = ? WHERE id = ?`,
		bytesOf(f.Record), f.InputDigest, asDocument(f.ReusedFrom), id)
	if err != nil {
		return err
	}
	// A batch that was there in an earlier plan goes on counting its attempts.
	result, err := tx.ExecContext(ctx, `INSERT INTO batches (node_id, batch, phase, status, attempt)
		SELECT ?1, p.batch, p.phase, ?2, coalesce((SELECT max(a.attempt) FROM attempts a
			WHERE a.node_id = ?1 AND a.batch = p.batch), 0)
		FROM plan_batches p WHERE p.plan_id = ?3 ORDER BY p.batch`, n.id, state.Pending, id)
	if err != nil {
		return err
	}
	if stored, err := result.RowsAffected(); err != nil || stored != int64(f.Batches) {
		return errors.Join(err, fault.New(fault.Bug, "a plan of %d batches has %d stored", f.Batches, stored))
	}
	_, err = tx.ExecContext(ctx,
		`UPDATE nodes SET status = ?, plan_id = ?, batches_total = ?, tally = '{}' WHERE id = ?`,
		state.Running, id, f.Batches, n.id)
	if err != nil {
		return err
	}
	return record(ctx, tx, n.runID, n.id, state.NodePlanned, f.Actor, f.Now,
		state.EventData{Status: state.Running, Batches: f.Batches, Digest: f.Digest, ReusedFrom: f.ReusedFrom})
}

// Specs implements state.Store.
func (s *Store) Specs(ctx context.Context, key state.NodeKey, page state.Page) ([]state.BatchSpec, int64, error) {
	return planned(ctx, s, key, page, "list the planned batches of ", func(row scanner) (b state.BatchSpec, err error) {
		err = row.Scan(&b.Batch, &b.Phase, &b.Class, &b.RowsIn, &b.BytesIn, &b.Work)
		return b, err
	}, `SELECT batch, phase, class, rows_in, bytes_in, work FROM plan_batches WHERE plan_id = ? AND batch >= ? ORDER `+
		`BY batch LIMIT ?`)
}

// Inputs implements state.Store.
func (s *Store) Inputs(ctx context.Context, key state.NodeKey, page state.Page) ([]state.Input, int64, error) {
	return planned(ctx, s, key, page, "list the input files of ", func(row scanner) (in state.Input, err error) {
		err = row.Scan(asDocument(&in))
		return in, err
	}, `SELECT input FROM plan_inputs WHERE plan_id = ? AND seq >= ? ORDER BY seq LIMIT ?`)
}

// planned reads a page of what a node's plan numbers from 0 without gaps.
func planned[T any](ctx context.Context, s *Store, key state.NodeKey, page state.Page, what string,
	scan func(scanner) (T, error), query string) (all []T, next int64, err error) {
	err = s.view(ctx, what+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil || !n.planID.Valid {
			return err
		}
		limit := pageLimit(page.Limit)
		if all, err = list(ctx, tx, scan, query, n.planID, page.From, limit); err == nil && len(all) == limit {
			next = page.From + int64(limit)
		}
		return err
	})
	return all, next, err
}
