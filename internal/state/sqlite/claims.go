package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

// Extend implements state.Store.
func (s *Store) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	return s.update(ctx, "extend lease on "+nameBatch(c.BatchKey), func(tx *sql.Tx) error {
		h, err := findHeld(ctx, tx, c)
		if err != nil {
			return err
		}
		if !h.valid {
			return state.ErrLeaseLost
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE batches SET lease_ms = ? WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
			moment{lease}, h.nodeID, c.Batch, c.Attempt, state.Claimed))
	})
}

// Commit implements state.Store.
func (s *Store) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	what := "commit " + nameBatch(c.BatchKey)
	if err := checkParts(out.Parts); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.end(ctx, what, c, state.Succeeded, nil, now, func(tx *sql.Tx, nodeID int64) error {
		if err := publish(ctx, tx, nodeID, c.Batch, out); err != nil {
			return err
		}
		if err := finishBatch(ctx, tx, nodeID, c, state.Succeeded, now, &out.Stats, nil); err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE nodes SET batches_done = batches_done + 1,
			rows_in = rows_in + ?, rows_out = rows_out + ?, bytes_in = bytes_in + ?, bytes_out = bytes_out + ? WHERE id = ?`,
			out.Stats.RowsIn, out.Stats.RowsOut, out.Stats.BytesIn, out.Stats.BytesOut, nodeID))
	})
}

// Fail implements state.Store.
func (s *Store) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome, now time.Time) error {
	what := "fail " + nameBatch(c.BatchKey)
	if err := errors.Join(checkParts(out.Parts), onlyBeside(out)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.end(ctx, what, c, state.Failed, &failure, now, func(tx *sql.Tx, nodeID int64) error {
		if err := publish(ctx, tx, nodeID, c.Batch, out); err != nil {
			return err
		}
		if err := finishBatch(ctx, tx, nodeID, c, state.Failed, now, &out.Stats, &failure); err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE nodes SET batches_failed = batches_failed + 1 WHERE id = ?`, nodeID))
	})
}

// Release implements state.Store.
func (s *Store) Release(ctx context.Context, c state.Claim, now time.Time) error {
	return s.end(ctx, "release "+nameBatch(c.BatchKey), c, state.Released, nil, now, func(tx *sql.Tx, nodeID int64) error {
		return resetBatch(ctx, tx, nodeID, c.Batch, state.Claimed)
	})
}

// end moves an attempt to its last state, together with what then does to its
// batch and node: all of it or nothing. An attempt that is there already needs
// nothing more.
func (s *Store) end(ctx context.Context, what string, c state.Claim, to state.Status, failure *state.Failure, now time.Time,
	then func(tx *sql.Tx, nodeID int64) error) error {
	return s.update(ctx, what, func(tx *sql.Tx) error {
		h, err := findHeld(ctx, tx, c)
		switch {
		case err != nil:
			return err
		case h.status == to:
			return nil
		case !h.valid:
			return state.ErrLeaseLost
		}
		if err := endAttempt(ctx, tx, h.nodeID, c.Batch, c.Attempt, to, now, failure); err != nil {
			return err
		}
		return then(tx, h.nodeID)
	})
}

// held is what has become of a claim.
type held struct {
	nodeID int64
	status state.Status // of the attempt
	valid  bool         // it is the latest attempt, at work, in a run that goes on
}

// findHeld looks a claim up. An attempt that never was, or was another
// owner's, is a lost lease: nobody may act on it.
func findHeld(ctx context.Context, tx *sql.Tx, c state.Claim) (held, error) {
	b, err := findBatch(ctx, tx, c.BatchKey)
	if err != nil {
		return held{}, err
	}
	h := held{nodeID: b.nodeID}
	err = tx.QueryRowContext(ctx, `SELECT status FROM attempts WHERE node_id = ? AND batch = ? AND attempt = ? AND owner = ?`,
		b.nodeID, c.Batch, c.Attempt, c.Owner).Scan(&h.status)
	if errors.Is(err, sql.ErrNoRows) {
		return held{}, state.ErrLeaseLost
	}
	h.valid = h.status == state.Claimed && b.status == state.Claimed && b.attempt == c.Attempt && b.runStatus == state.Running
	return h, err
}

func finishBatch(ctx context.Context, tx *sql.Tx, nodeID int64, c state.Claim, to state.Status, now time.Time,
	stats *state.Stats, failure *state.Failure) error {
	if !state.CanMove("batch", state.Claimed, to) {
		return state.ErrIllegalMove
	}
	return exactlyOne(tx.ExecContext(ctx, `UPDATE batches SET status = ?, lease_ms = NULL, finished_ms = ?, stats = ?, failure = ?
		WHERE node_id = ? AND batch = ? AND attempt = ? AND status = ?`,
		to, moment{now}, asDocument(stats), asDocument(failure), nodeID, c.Batch, c.Attempt, state.Claimed))
}

func checkParts(parts []state.Part) error {
	seen := make(map[int]bool, len(parts))
	for _, p := range parts {
		if p.Key == "" || seen[p.Seq] {
			return fault.New(fault.Bug, "part %q has no key or shares its place %d with another", p.Key, p.Seq)
		}
		seen[p.Seq] = true
	}
	return nil
}

// onlyBeside refuses, of an attempt that failed, what only one that succeeded
// may publish.
func onlyBeside(out state.Outcome) error {
	for _, p := range out.Parts {
		if p.Side == "" {
			return fault.New(fault.Bug, "a failed attempt publishes part %s of its table", p.Key)
		}
	}
	if len(out.Files) > 0 {
		return fault.New(fault.Bug, "a failed attempt publishes file %s", out.Files[0].URL)
	}
	return nil
}

// publish adds a batch's parts and files to the manifest, and what its checks
// found. They belong to the batch that ends, whatever they say.
func publish(ctx context.Context, tx *sql.Tx, nodeID int64, batch int, out state.Outcome) error {
	for _, p := range out.Parts {
		_, err := tx.ExecContext(ctx, `INSERT INTO parts (node_id, batch, seq, key, side, bucket, rows, bytes, raw_bytes, schema, checksum)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			nodeID, batch, p.Seq, p.Key, p.Side, p.Bucket, p.Rows, p.Bytes, p.RawBytes, p.Schema, p.Checksum)
		if err != nil {
			return err
		}
	}
	for i, f := range out.Files {
		_, err := tx.ExecContext(ctx, `INSERT INTO files (node_id, batch, seq, url, rows, bytes, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			nodeID, batch, i, f.URL, f.Rows, f.Bytes, f.Checksum)
		if err != nil {
			return err
		}
	}
	for i, c := range out.Checks {
		_, err := tx.ExecContext(ctx, `INSERT INTO checks (node_id, batch, seq, result) VALUES (?, ?, ?, ?)`, nodeID, batch, i, asDocument(&c))
		if err != nil {
			return err
		}
	}
	return nil
}
