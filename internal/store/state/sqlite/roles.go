package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// Acquire implements state.Store.
func (s *Store) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (got state.Role, err error) {
	err = s.update(ctx, fmt.Sprintf("take the role %s of %s", role, nameRun(key)), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		got = state.Role{Name: role}
		var end moment
		err = tx.QueryRowContext(ctx, `SELECT owner, term, until_ms FROM roles WHERE run_id = ? AND role = ?`, r.id,
			role).
			Scan(&got.Owner, &got.Term, &end)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		got.Until = end.Time
		if !got.Take(owner, stored(now), stored(until)) {
			return state.ErrHeld
		}
		_, err = tx.ExecContext(ctx,
			`INSERT OR REPLACE INTO roles (run_id, role, owner, term, until_ms) VALUES (?, ?, ?, ?, ?)`,
			r.id, role, got.Owner, got.Term, moment{got.Until})
		return err
	})
	return got, err
}

// Resign implements state.Store.
func (s *Store) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return s.update(ctx, fmt.Sprintf("give up the role %s of %s", role, nameRun(key)), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			`UPDATE roles SET owner = '', until_ms = NULL WHERE run_id = ? AND role = ? AND owner = ?`,
			r.id, role, owner)
		return err
	})
}
