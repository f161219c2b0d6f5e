package sqlite

import (
	"context"
	"time"

	"thalweg/internal/store/state"
)

// record writes an event in the transaction of what it tells of. node is 0 for
// an event of the run itself.
func record(ctx context.Context, tx *txn, run, node int64, kind state.EventKind, actor string, at time.Time,
	data state.EventData) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO events (run_id, node_id, seq, version, time_ms, actor, kind, data)
		VALUES (?1, ?2, (SELECT coalesce(max(seq), 0) + 1 FROM events WHERE run_id = ?1 AND node_id = ?2), ?3, ?4, ?5,
		?6, ?7)`,
		run, node, state.EventVersion, moment{at}, actor, kind, asDocument(&data))
	return err
}

// Events implements state.Store.
func (s *Store) Events(ctx context.Context, key state.NodeKey, after int64, limit int) (events []state.Event,
	err error) {
	err = s.view(ctx, "list events of "+nameNode(key), func(tx *txn) error {
		var n nodeRow
		if key.Node == "" {
			r, err := findRun(ctx, tx, key.RunKey)
			if err != nil {
				return err
			}
			n.runID = r.id
		} else if n, err = findNode(ctx, tx, key); err != nil {
			return err
		}
		events, err = list(ctx, tx, func(row scanner) (state.Event, error) {
			e := state.Event{NodeKey: key}
			var at moment
			err := row.Scan(&e.Seq, &e.Version, &at, &e.Actor, &e.Kind, asDocument(&e.EventData))
			e.Time = at.Time
			return e, err
		}, `SELECT seq, version, time_ms, actor, kind, data FROM events
			WHERE run_id = ? AND node_id = ? AND seq > ? ORDER BY seq LIMIT ?`, n.runID, n.id, after, pageLimit(limit))
		return err
	})
	return events, err
}

func pageLimit(limit int) int {
	if limit <= 0 || limit > state.PageMax {
		return state.PageMax
	}
	return limit
}
