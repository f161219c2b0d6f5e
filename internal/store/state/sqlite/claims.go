package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// Extend implements state.Store.
func (s *Store) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return s.update(ctx, "extend lease on "+nameBatch(c.BatchKey), func(tx *txn) error {
		_, err := extend(ctx, tx, c, lease)
		return err
	})
}

func extend(ctx context.Context, tx *txn, c state.Claim, lease time.Time) (held, error) {
	h, err := findHeld(ctx, tx, c)
	if err != nil {
		return h, err
	}
	if !h.valid {
		return h, state.ErrLeaseLost
	}
	_, err = tx.ExecContext(ctx, `UPDATE batches SET lease_ms = max(lease_ms, ?) WHERE node_id = ? AND batch = ?`,
		moment{lease}, h.node.id, c.Batch)
	return h, err
}

// Announce implements state.Store.
func (s *Store) Announce(ctx context.Context, c state.Claim, publications []state.Publication, lease time.Time) error {
	return s.update(ctx, "announce what is published of "+nameBatch(c.BatchKey), func(tx *txn) error {
		h, err := extend(ctx, tx, c, lease)
		if err != nil {
			return err
		}
		return each(ctx, tx, `INSERT OR IGNORE INTO publications (node_id, batch, attempt, seq, publication) VALUES `+
			`(?, ?, ?, ?, ?)`, publications, func(_ int, p state.Publication) []any {
			p.Owner = c.Owner
			return []any{h.node.id, c.Batch, c.Attempt, p.Seq, asDocument(&p)}
		})
	})
}

func forget(ctx context.Context, tx *txn, nodeID int64, batch, attempt int) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM publications WHERE node_id = ? AND batch = ? AND attempt = ?`, nodeID,
		batch, attempt)
	return err
}

// Forget implements state.Store.
func (s *Store) Forget(ctx context.Context, key state.BatchKey, attempt int) error {
	return s.update(ctx, "forget what was announced of "+nameBatch(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key.NodeKey)
		if err != nil {
			return err
		}
		return forget(ctx, tx, n.id, key.Batch, attempt)
	})
}

// Publications implements state.Store.
func (s *Store) Publications(ctx context.Context, key state.NodeKey, page state.Page) (all []state.Publication,
	next int64, err error) {
	err = s.view(ctx, "list what is being published of "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		end, err := pageEnd(ctx, tx, "publications", n.id, page, &next)
		if err != nil {
			return err
		}
		all, err = list(ctx, tx, func(row scanner) (state.Publication, error) {
			var p state.Publication
			var batch, attempt, seq int
			err := row.Scan(&batch, &attempt, &seq, asDocument(&p))
			p.BatchKey, p.Attempt, p.Seq = state.BatchKey{NodeKey: key, Batch: batch}, attempt, seq
			return p, err
		}, `SELECT batch, attempt, seq, publication FROM publications WHERE node_id = ? AND batch BETWEEN ? AND ? `+
			`ORDER BY batch, attempt, seq`, n.id, page.From, end)
		return err
	})
	return all, next, err
}

// Commit implements state.Store.
func (s *Store) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	what := "commit " + nameBatch(c.BatchKey)
	if err := out.Check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.end(ctx, what, c, state.Succeeded, nil, out.Stats, now, func(tx *txn, h held) error {
		if err := publish(ctx, tx, h.node.id, c, out); err != nil {
			return err
		}
		if err := finishBatch(ctx, tx, h, c, state.Succeeded, now, &out.Stats, nil); err != nil {
			return err
		}
		t, err := tallyWith(ctx, tx, h.node.id, c.Batch, state.Succeeded, out.Stats)
		if err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE nodes SET batches_done = batches_done + 1, tally = ?,
			rows_in = rows_in + ?, rows_out = rows_out + ?, bytes_in = bytes_in + ?, bytes_out = bytes_out + ?
			WHERE id = ?`,
			asDocument(&t), out.Stats.RowsIn, out.Stats.RowsOut, out.Stats.BytesIn, out.Stats.BytesOut, h.node.id))
	})
}

// Fail implements state.Store.
func (s *Store) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome,
	now time.Time) error {
	what := "fail " + nameBatch(c.BatchKey)
	if err := errors.Join(out.Check(), out.CheckFailed()); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.end(ctx, what, c, state.Failed, &failure, out.Stats, now, func(tx *txn, h held) error {
		if err := publish(ctx, tx, h.node.id, c, out); err != nil {
			return err
		}
		if err := finishBatch(ctx, tx, h, c, state.Failed, now, &out.Stats, &failure); err != nil {
			return err
		}
		t, err := tallyWith(ctx, tx, h.node.id, c.Batch, state.Failed, out.Stats)
		if err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx,
			`UPDATE nodes SET batches_failed = batches_failed + 1, tally = ? WHERE id = ?`, asDocument(&t), h.node.id))
	})
}

// Retry implements state.Store.
func (s *Store) Retry(ctx context.Context, c state.Claim, failure state.Failure, stats state.Stats, notBefore,
	now time.Time) error {
	return s.end(ctx, "retry "+nameBatch(c.BatchKey), c, state.Failed, &failure, stats, now,
		func(tx *txn, h held) error {
			return h.giveBack(ctx, tx, c, 1, notBefore)
		})
}

// Release implements state.Store.
func (s *Store) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return s.end(ctx, "release "+nameBatch(c.BatchKey), c, state.Released, nil, state.Stats{}, now,
		func(tx *txn, h held) error {
			return h.giveBack(ctx, tx, c, 0, time.Time{})
		})
}

// giveBack makes a claimed batch pending: only what counts attempts stays.
func (h held) giveBack(ctx context.Context, tx *txn, c state.Claim, tries int, notBefore time.Time) error {
	return exactlyOne(tx.ExecContext(ctx,
		`UPDATE batches SET status = ?, owner = '', token = '', lease_ms = NULL, started_ms = NULL,
		tries = tries + ?, not_before_ms = ? WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
		state.Pending, tries, moment{notBefore}, h.node.id, c.Batch, c.Attempt, state.Claimed))
}

// end moves an attempt to its last state, together with what then does to its
// batch and node: all of it or nothing. An attempt that is there already needs
// nothing more.
func (s *Store) end(ctx context.Context, what string, c state.Claim, to state.Status, failure *state.Failure,
	stats state.Stats, now time.Time,
	then func(tx *txn, h held) error) error {
	return s.update(ctx, what, func(tx *txn) error {
		h, err := findHeld(ctx, tx, c)
		switch {
		case err != nil:
			return err
		case h.ended == to:
			return nil
		case !h.valid:
			return state.ErrLeaseLost
		}
		if err := h.endAttempt(ctx, tx, c.Batch, c.Attempt, c.Owner, to, now, now, failure, stats); err != nil {
			return err
		}
		if h.announced && to == state.Succeeded {
			if err := forget(ctx, tx, h.node.id, c.Batch, c.Attempt); err != nil {
				return err
			}
		}
		return then(tx, h)
	})
}

// held is the present state of a claim.
type held struct {
	batchRow
	ended state.Status // of the attempt
	valid bool         // it is the latest attempt, at work, and no order since has fenced it off

	announced bool // it has said what it is about to publish
}

// findHeld looks a claim up. An attempt that never was, or was another
// owner's, is a lost lease: nobody may act on it.
func findHeld(ctx context.Context, tx *txn, c state.Claim) (held, error) {
	b, ok, err := findBatch(ctx, tx, c.BatchKey)
	if err != nil {
		return held{}, err
	}
	h := held{batchRow: b}
	err = tx.QueryRowContext(ctx,
		`SELECT status, EXISTS (SELECT 1 FROM publications WHERE node_id = ?1 AND batch = ?2 AND attempt = ?3)
		FROM attempts WHERE node_id = ?1 AND batch = ?2 AND attempt = ?3 AND owner = ?4 AND epoch = ?5`,
		b.node.id, c.Batch, c.Attempt, c.Owner, c.Epoch).Scan(&h.ended, &h.announced)
	switch {
	case errors.Is(err, sql.ErrNoRows) && !ok && b.node.epoch == c.Epoch:
		return held{}, state.ErrNotFound
	case errors.Is(err, sql.ErrNoRows):
		return held{}, state.ErrLeaseLost
	}
	h.valid = h.ended == state.Claimed && b.status == state.Claimed && b.attempt == c.Attempt &&
		state.Node{Fence: b.node.fence}.Holds(c.Epoch)
	return h, err
}

func finishBatch(ctx context.Context, tx *txn, h held, c state.Claim, to state.Status, now time.Time,
	stats *state.Stats, failure *state.Failure) error {
	if !state.CanMove("batch", state.Claimed, to) {
		return state.ErrIllegalMove
	}
	return exactlyOne(tx.ExecContext(ctx,
		`UPDATE batches SET status = ?, lease_ms = NULL, finished_ms = ?, stats = ?, failure = ?
		WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
		to, moment{now}, asDocument(stats), asDocument(failure), h.node.id, c.Batch, c.Attempt, state.Claimed))
}

// publish stores what an attempt publishes as one value. It belongs to the
// attempt that ends, whatever it says.
func publish(ctx context.Context, tx *txn, nodeID int64, c state.Claim, out state.Outcome) error {
	if len(out.Parts)+len(out.Files)+len(out.Checks) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx,
		`INSERT INTO results (node_id, batch, attempt, parts, files, checks) VALUES (?, ?, ?, ?, ?, ?)`,
		nodeID, c.Batch, c.Attempt, documents(out.Parts), documents(out.Files), documents(out.Checks))
	return err
}
