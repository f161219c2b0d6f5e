package sqlite

import (
	"context"

	"thalweg/internal/store/state"
)

// purgeRows limits the rows of a table that one transaction of a purge removes: it keeps others from writing
// meanwhile.
const purgeRows = 5_000

// purges are the statements of a purge, in order: each removes some rows of what
// belongs to a node, and is repeated until there are none. The plan goes from
// the node before it goes itself.
var purges = []string{
	`DELETE FROM results WHERE node_id = ?1 AND batch <= (SELECT max(batch) FROM (SELECT batch FROM results
		WHERE node_id = ?1 ORDER BY batch LIMIT ?2))`,
	`DELETE FROM attempts WHERE node_id = ?1 AND batch <= (SELECT max(batch) FROM (SELECT batch FROM attempts
		WHERE node_id = ?1 ORDER BY batch LIMIT ?2))`,
	`DELETE FROM publications WHERE node_id = ?1 AND batch <= (SELECT max(batch) FROM (SELECT batch FROM publications
		WHERE node_id = ?1 ORDER BY batch LIMIT ?2))`,
	`DELETE FROM batches WHERE node_id = ?1 AND batch <= (SELECT max(batch) FROM (SELECT batch FROM batches
		WHERE node_id = ?1 ORDER BY batch LIMIT ?2))`,
	`UPDATE nodes SET plan_id = NULL WHERE id = ?1 AND plan_id IS NOT NULL AND ?2 > 0`,
	`DELETE FROM plan_batches WHERE rowid IN (SELECT b.rowid FROM plans p JOIN plan_batches b ON b.plan_id = p.id
		WHERE p.node_id = ?1 LIMIT ?2)`,
	`DELETE FROM plan_inputs WHERE (plan_id, seq) IN (SELECT i.plan_id, i.seq FROM plans p
		JOIN plan_inputs i ON i.plan_id = p.id WHERE p.node_id = ?1 LIMIT ?2)`,
	`DELETE FROM plans WHERE node_id = ?1 AND ?2 > 0`,
}

// Purge implements state.Store.
func (s *Store) Purge(ctx context.Context, key state.NodeKey) error {
	for i := 0; i < len(purges); {
		var next int
		err := s.update(ctx, "purge "+nameNode(key), func(tx *txn) error {
			next = i
			n, of, err := findWhole(ctx, tx, key)
			if err != nil {
				return err
			}
			if !of.Dropped {
				return state.ErrConflict
			}
			for left := int64(purgeRows); next < len(purges) && left > 0; next++ {
				result, err := tx.ExecContext(ctx, purges[next], n.id, left)
				if err != nil {
					return err
				}
				removed, err := result.RowsAffected()
				if err != nil {
					return err
				}
				if left -= removed; removed > 0 {
					next-- // there may be more
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		i = next
	}
	return nil
}
