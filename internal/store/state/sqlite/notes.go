package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/store/state"
)

// PutNote implements state.Store.
func (s *Store) PutNote(ctx context.Context, workspace string, n state.Note) error {
	what := fmt.Sprintf("put note %q on %q in workspace %q", n.Name, n.Topic, workspace)
	if err := n.Check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.update(ctx, what, func(tx *txn) error { return putNote(ctx, tx, workspace, n) })
}

func putNote(ctx context.Context, tx *txn, workspace string, n state.Note) error {
	_, err := tx.ExecContext(ctx,
		`INSERT OR REPLACE INTO notes (workspace, topic, name, run, node, data, time_ms) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		workspace, n.Topic, n.Name, n.Run, n.Node, bytesOf(n.Data), moment{n.Time})
	return err
}

// RemoveNote implements state.Store.
func (s *Store) RemoveNote(ctx context.Context, workspace string, n state.Note) error {
	return s.update(ctx, fmt.Sprintf("remove note %q on %q in workspace %q", n.Name, n.Topic, workspace),
		func(tx *txn) error {
			_, err := tx.ExecContext(ctx,
				`DELETE FROM notes WHERE workspace = ? AND topic = ? AND name = ? AND run = ? AND node = ?
			AND coalesce(data, x'') = ? AND time_ms IS ?`, workspace, n.Topic, n.Name, n.Run, n.Node, bytesOf(n.Data), moment{n.Time})
			return err
		})
}

// Notes implements state.Store.
func (s *Store) Notes(ctx context.Context, workspace, topic, after string, limit int) (notes []state.Note, err error) {
	err = s.view(ctx, fmt.Sprintf("list notes on %q in workspace %q", topic, workspace), func(tx *txn) error {
		notes, err = list(ctx, tx, func(row scanner) (state.Note, error) {
			n := state.Note{Topic: topic}
			var at moment
			err := row.Scan(&n.Name, &n.Run, &n.Node, &n.Data, &at)
			n.Time = at.Time
			return n, err
		}, `SELECT name, run, node, data, time_ms FROM notes WHERE workspace = ? AND topic = ? AND name > ? ORDER BY `+
			`name LIMIT ?`, workspace, topic, after, pageLimit(limit))
		return err
	})
	return notes, err
}

// Fleet is the id of the processes that share the state: the same for all, whoever asks first.
func (s *Store) Fleet(ctx context.Context) (id string, err error) {
	const what = "read the fleet's id"
	read := func(tx *txn) error {
		return tx.QueryRowContext(ctx, `SELECT data FROM notes WHERE workspace = '' AND topic = ? AND name = ?`,
			state.TopicFleet, state.FleetName).Scan(&id)
	}
	if err = s.view(ctx, what, read); !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	err = s.update(ctx, what, func(tx *txn) error {
		if err := read(tx); !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		id = state.NewFleet()
		return putNote(ctx, tx, "", state.Note{Topic: state.TopicFleet, Name: state.FleetName, Data: []byte(id),
			Time: time.Now()})
	})
	return id, err
}

// Sequence implements state.Store.
func (s *Store) Sequence(ctx context.Context, key state.RunKey, page state.Page) (spans []state.Span, next int64,
	err error) {
	err = s.view(ctx, "read the order of the events of "+nameRun(key), func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		limit := pageLimit(page.Limit)
		if spans, err = readSpans(ctx, tx, r.id, page.From, limit); err == nil && len(spans) == limit {
			next = page.From + int64(limit)
		}
		return err
	})
	return spans, next, err
}

func readSpans(ctx context.Context, tx *txn, runID, from int64, limit int) ([]state.Span, error) {
	return list(ctx, tx, func(row scanner) (s state.Span, err error) {
		err = row.Scan(&s.Node, &s.From, &s.To)
		return s, err
	}, `SELECT node, first_seq, last_seq FROM spans WHERE run_id = ? AND place >= ? ORDER BY place LIMIT ?`, runID,
		from, limit)
}

// ExtendSequence implements state.Store.
func (s *Store) ExtendSequence(ctx context.Context, key state.RunKey, at int64, spans []state.Span) error {
	what := "go on with the order of the events of " + nameRun(key)
	if err := state.CheckSpans(at, spans); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.update(ctx, what, func(tx *txn) error {
		r, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		var length int64
		if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(place) + 1, 0) FROM spans WHERE run_id = ?`,
			r.id).Scan(&length); err != nil {
			return err
		}
		if length == at {
			return each(ctx, tx, `INSERT INTO spans (run_id, place, node, first_seq, last_seq) VALUES (?, ?, ?, ?, ?)`,
				spans,
				func(i int, s state.Span) []any { return []any{r.id, at + int64(i), s.Node, s.From, s.To} })
		}
		there, err := readSpans(ctx, tx, r.id, at, len(spans))
		if err == nil && (length < at || !slices.Equal(there, spans)) {
			err = state.ErrConflict
		}
		return err
	})
}
