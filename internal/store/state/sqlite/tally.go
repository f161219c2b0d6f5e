package sqlite

import (
	"context"

	"thalweg/internal/store/state"
)

// Tally implements state.Store.
func (s *Store) Tally(ctx context.Context, key state.NodeKey) (t state.Tally, err error) {
	err = s.view(ctx, "sum up "+nameNode(key), func(tx *txn) error {
		n, err := findNode(ctx, tx, key)
		if err != nil {
			return err
		}
		t, _, err = keptTally(ctx, tx, n.id)
		return err
	})
	return t, err
}

// keptTally reads a node's tally. A node that ended batches before there were
// tallies has none: it is summed up from them.
func keptTally(ctx context.Context, tx *txn, nodeID int64) (t state.Tally, kept bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT tally IS NOT NULL, tally FROM nodes WHERE id = ?`, nodeID).Scan(&kept,
		asDocument(&t))
	if err != nil || kept {
		return t, kept, err
	}
	t, err = sumUp(ctx, tx, nodeID)
	return t, false, err
}

// sumUp reads all ended batches of a node.
func sumUp(ctx context.Context, tx *txn, nodeID int64) (t state.Tally, err error) {
	type counted struct{}
	_, err = list(ctx, tx, func(row scanner) (counted, error) {
		var batch int
		var status state.Status
		var stats state.Stats
		err := row.Scan(&batch, &status, asDocument(&stats))
		if err == nil {
			t.Count(batch, status, stats)
		}
		return counted{}, err
	}, `SELECT batch, status, stats FROM batches WHERE node_id = ? AND status IN ('succeeded', 'failed') `+
		`ORDER BY batch`, nodeID)
	return t, err
}

// tallyWith is the tally of a node with a batch that has just ended.
func tallyWith(ctx context.Context, tx *txn, nodeID int64, batch int, as state.Status, stats state.Stats) (state.Tally,
	error) {
	t, kept, err := keptTally(ctx, tx, nodeID)
	if kept { // else it is among those that were summed up
		t.Count(batch, as, stats)
	}
	return t, err
}

// retally sums up again what is left after batches went back to Pending.
func retally(ctx context.Context, tx *txn, nodeID int64) error {
	t, kept, err := keptTally(ctx, tx, nodeID)
	if err != nil || !kept {
		return err
	}
	var ended int
	err = tx.QueryRowContext(ctx, `SELECT batches_done + batches_failed FROM nodes WHERE id = ?`, nodeID).Scan(&ended)
	if err != nil || ended == t.Batches {
		return err
	}
	if t, err = sumUp(ctx, tx, nodeID); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `UPDATE nodes SET tally = ? WHERE id = ?`, asDocument(&t), nodeID)
	return err
}
