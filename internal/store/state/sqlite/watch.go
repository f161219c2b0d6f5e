package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"thalweg/internal/store/state"
)

// watch is the connection of DataVersion. SQLite's data_version means something within one connection only.
type watch struct {
	mu    sync.Mutex
	pool  *pool // nil until it is asked
	ended bool
}

// end returns the connection, which is not used any more; nil if there is none.
func (w *watch) end() *pool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	return w.pool
}

// DataVersion returns a number that changes when anything has been written to the file, by this process or by
// another one. It reads no page of the file where nothing has.
func (s *Store) DataVersion(ctx context.Context) (version int64, err error) {
	const what = "ask whether the state has changed"
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return 0, s.explain(ctx, what, sql.ErrConnDone)
	}
	if w.pool == nil {
		if w.pool, err = openPool(s.path, s.sync, 1, "deferred", true); err != nil {
			return 0, s.explain(ctx, what, err)
		}
	}
	return version, s.explain(ctx, what, s.untilUnlocked(ctx, func() error {
		return w.pool.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	}))
}

// Revisions returns for each run the number of its events and of those of its nodes; 0 if there is no such run.
// It sees one committed state.
func (s *Store) Revisions(ctx context.Context, keys []state.RunKey) (revisions []int64, err error) {
	err = s.view(ctx, "ask which runs have changed", func(tx *txn) error {
		revisions = make([]int64, len(keys))
		for i, key := range keys {
			if err := tx.QueryRowContext(ctx, `SELECT
				(SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.run_id = r.id AND e.node_id = 0) +
				(SELECT coalesce(sum((SELECT max(e.seq) FROM events e WHERE e.run_id = r.id AND e.node_id = n.id)), 0)
					FROM nodes n WHERE n.run_id = r.id)
				FROM runs r WHERE r.workspace = ? AND r.run = ?`, key.Workspace, key.Run,
			).Scan(&revisions[i]); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return nil
	})
	return revisions, err
}
