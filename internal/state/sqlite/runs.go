package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"thalweg/internal/fault"
	"thalweg/internal/state"
)

const runColumns = `workspace, run, status, script_path, params_path, fingerprint, start_nodes,
	description, created_ms, finished_ms, failure, definition, script, sources`

// CreateRun implements state.Store.
func (s *Store) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec) (state.RunKey, error) {
	what := fmt.Sprintf("create run in workspace %q", run.Workspace)
	if err := checkNodes(run.Workspace, nodes); err != nil {
		return state.RunKey{}, fmt.Errorf("%s: %w", what, err)
	}
	if run.Created.IsZero() {
		run.Created = s.clock()
	}
	err := s.update(ctx, what, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT coalesce(max(run), 0) + 1 FROM runs WHERE workspace = ?`,
			run.Workspace).Scan(&run.Run)
		if err != nil {
			return err
		}
		id, err := insertRun(ctx, tx, run)
		if err != nil {
			return err
		}
		return insertNodes(ctx, tx, id, nodes)
	})
	if err != nil {
		return state.RunKey{}, err
	}
	return run.RunKey, nil
}

func checkNodes(workspace string, nodes []state.NodeSpec) error {
	if workspace == "" {
		return fault.New(fault.Bug, "a run needs the name of a workspace")
	}
	seen := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		if n.Name == "" || seen[n.Name] {
			return fault.New(fault.Bug, "node name %q is empty or used twice in a run", n.Name)
		}
		seen[n.Name] = true
	}
	return nil
}

func insertRun(ctx context.Context, tx *sql.Tx, run state.Run) (id int64, err error) {
	result, err := tx.ExecContext(ctx, `INSERT INTO runs (`+runColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?, ?, ?)`,
		run.Workspace, run.Run, state.Running, run.ScriptPath, run.ParamsPath, run.Fingerprint,
		asDocument(&run.StartNodes), run.Description, moment{run.Created}, run.Definition, run.Script, asDocument(&run.Sources))
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

func insertNodes(ctx context.Context, tx *sql.Tx, runID int64, nodes []state.NodeSpec) error {
	for _, n := range nodes {
		_, err := tx.ExecContext(ctx, `INSERT INTO nodes (run_id, node, kind, ordinal, inputs, status) VALUES (?, ?, ?, ?, ?, ?)`,
			runID, n.Name, n.Kind, n.Ordinal, asDocument(&n.Inputs), state.Pending)
		if err != nil {
			return err
		}
	}
	return nil
}

// Run implements state.Store.
func (s *Store) Run(ctx context.Context, key state.RunKey) (run state.Run, err error) {
	err = s.view(ctx, "read "+nameRun(key), func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs WHERE workspace = ? AND run = ?`, key.Workspace, key.Run)
		run, err = scanRun(row)
		return orNotFound(err)
	})
	return run, err
}

// Runs implements state.Store.
func (s *Store) Runs(ctx context.Context, workspace string) (runs []state.Run, err error) {
	err = s.view(ctx, fmt.Sprintf("list runs of workspace %q", workspace), func(tx *sql.Tx) error {
		runs, err = list(ctx, tx, scanRun, `SELECT `+runColumns+` FROM runs WHERE workspace = ? ORDER BY run`, workspace)
		return err
	})
	return runs, err
}

// Workspaces implements state.Store.
func (s *Store) Workspaces(ctx context.Context) (names []string, err error) {
	err = s.view(ctx, "list workspaces", func(tx *sql.Tx) error {
		names, err = list(ctx, tx, func(row scanner) (name string, err error) {
			err = row.Scan(&name)
			return name, err
		}, `SELECT DISTINCT workspace FROM runs ORDER BY workspace`)
		return err
	})
	return names, err
}

// SetRunStatus implements state.Store.
func (s *Store) SetRunStatus(ctx context.Context, key state.RunKey, from, to state.Status, failure *state.Failure) error {
	what := fmt.Sprintf("move %s from %s to %s", nameRun(key), from, to)
	if !state.CanMove("run", from, to) {
		return fmt.Errorf("%s: %w", what, state.ErrIllegalMove)
	}
	if to != state.Failed {
		failure = nil
	}
	return s.update(ctx, what, func(tx *sql.Tx) error {
		id, _, err := findRun(ctx, tx, key)
		if err != nil {
			return err
		}
		return exactlyOne(tx.ExecContext(ctx, `UPDATE runs SET status = ?, finished_ms = ?, failure = ? WHERE id = ? AND status = ?`,
			to, s.finished(to), asDocument(failure), id, from))
	})
}

// finished is the moment to record for a run or node that moves to a status.
func (s *Store) finished(to state.Status) moment {
	if to.Terminal() {
		return moment{s.clock()}
	}
	return moment{}
}

func findRun(ctx context.Context, tx *sql.Tx, key state.RunKey) (id int64, status state.Status, err error) {
	err = tx.QueryRowContext(ctx, `SELECT id, status FROM runs WHERE workspace = ? AND run = ?`,
		key.Workspace, key.Run).Scan(&id, &status)
	return id, status, orNotFound(err)
}

func scanRun(row scanner) (run state.Run, err error) {
	var created, finished moment
	err = row.Scan(&run.Workspace, &run.Run, &run.Status, &run.ScriptPath, &run.ParamsPath, &run.Fingerprint,
		asDocument(&run.StartNodes), &run.Description, &created, &finished, asDocument(&run.Failure), &run.Definition, &run.Script, asDocument(&run.Sources))
	run.Created, run.Finished = created.Time, finished.Time
	return run, err
}

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// list reads a query's rows.
func list[T any](ctx context.Context, tx *sql.Tx, scan func(scanner) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}

func orNotFound(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return state.ErrNotFound
	}
	return err
}

func nameRun(key state.RunKey) string {
	return fmt.Sprintf("run %d of workspace %q", key.Run, key.Workspace)
}

func nameNode(key state.NodeKey) string {
	return fmt.Sprintf("node %q of %s", key.Node, nameRun(key.RunKey))
}

func nameBatch(key state.BatchKey) string {
	return fmt.Sprintf("batch %d of %s", key.Batch, nameNode(key.NodeKey))
}
