package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// runColumns are those that lists have as well; pinColumns are for one run.
const (
	runColumns = `id, workspace, run, token, status, epoch, last_order, script, script_path, params_path, fingerprint, start_nodes,
	sources, description, actor, parent, deadline_ms, created_ms, finished_ms, failure, invalidated, dropped, program,
		engine, bucket_hash, priority, most`
	pinColumns = runColumns + `, pins`
)

// CreateRun implements state.Store.
func (s *Store) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	what := fmt.Sprintf("create run in workspace %q", run.Workspace)
	if err := checkNodes(run.Workspace, nodes); err != nil {
		return state.RunKey{}, fmt.Errorf("%s: %w", what, err)
	}
	if run.Created.IsZero() {
		run.Created = time.Now()
	}
	err := s.update(ctx, what, func(tx *txn) error {
		err := tx.QueryRowContext(ctx, `SELECT run FROM runs WHERE workspace = ? AND token = ? AND token <> ''`,
			run.Workspace, run.Token).Scan(&run.Run)
		if !errors.Is(err, sql.ErrNoRows) {
			return err // it was created before, or that cannot be known
		}
		err = tx.QueryRowContext(ctx, `SELECT coalesce(max(run), 0) + 1 FROM runs WHERE workspace = ?`,
			run.Workspace).Scan(&run.Run)
		if err != nil {
			return err
		}
		for _, b := range blobs {
			if _, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO blobs (digest, content) VALUES (?, ?)`, b.Digest,
				bytesOf(b.Content)); err != nil {
				return err
			}
		}
		if err := putNote(ctx, tx, run.Workspace, state.OpenNote(run.Run, "", run.Created)); err != nil {
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

// bytesOf is content for a column that bears no NULL.
func bytesOf(content []byte) []byte {
	if content == nil {
		return []byte{}
	}
	return content
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

func insertRun(ctx context.Context, tx *txn, run state.Run) (id int64, err error) {
	result, err := tx.ExecContext(ctx,
		`INSERT INTO runs (workspace, run, token, status, script, script_path, params_path, fingerprint, start_nodes,
		sources, description, actor, parent, deadline_ms, created_ms, program, engine, bucket_hash, priority, most, pins)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		run.Workspace, run.Run, run.Token, state.Running, run.Script, run.ScriptPath, run.ParamsPath, run.Fingerprint,
		asDocument(&run.StartNodes),
		asDocument(&run.Sources), run.Description, run.Actor, run.Parent, moment{run.Deadline}, moment{run.Created},
		run.Program, run.Engine,
		run.BucketHash, run.Priority, asDocument(run.Limit), asDocument(&run.Pins))
	if err != nil {
		return 0, err
	}
	if id, err = result.LastInsertId(); err != nil {
		return 0, err
	}
	return id, record(ctx, tx, id, 0, state.RunCreated, run.Actor, run.Created, state.EventData{Status: state.Running})
}

func insertNodes(ctx context.Context, tx *txn, runID int64, nodes []state.NodeSpec) error {
	for _, n := range nodes {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO nodes (run_id, node, kind, table_name, ordinal, inputs, fingerprint, status)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			runID, n.Name, n.Kind, n.Table, n.Ordinal, asDocument(&n.Inputs), n.Fingerprint, state.Pending)
		if err != nil {
			return err
		}
	}
	return nil
}

// Run implements state.Store.
func (s *Store) Run(ctx context.Context, key state.RunKey) (run state.Run, err error) {
	err = s.view(ctx, "read "+nameRun(key), func(tx *txn) error {
		row := tx.QueryRowContext(ctx, `SELECT `+pinColumns+` FROM runs WHERE workspace = ? AND run = ?`,
			key.Workspace, key.Run)
		r, err := scanRun(row, asDocument(&run.Pins))
		r.run.Pins = run.Pins
		run = r.run
		return orNotFound(err)
	})
	return run, err
}

// Runs implements state.Store.
func (s *Store) Runs(ctx context.Context, workspace string, page state.Page) (runs []state.Run, next int64, err error) {
	err = s.view(ctx, fmt.Sprintf("list runs of workspace %q", workspace), func(tx *txn) error {
		below := page.From
		if below <= 0 {
			below = math.MaxInt64
		}
		limit := pageLimit(page.Limit)
		rows, err := list(ctx, tx, func(row scanner) (runRow, error) { return scanRun(row) },
			`SELECT `+runColumns+` FROM runs WHERE workspace = ? AND run < ? ORDER BY run DESC LIMIT ?`,
			workspace, below, limit)
		if err != nil || len(rows) == 0 {
			return err
		}
		at := make(map[int64]int, len(rows))
		runs = make([]state.Run, len(rows))
		for i, r := range rows {
			runs[i], at[r.id] = r.run, i
		}
		if last := runs[len(runs)-1].Run; len(runs) == limit && last > 1 {
			next = last
		}
		if page.Brief {
			return nil
		}
		return briefs(ctx, tx, rows[0].run.RunKey, runs[len(runs)-1].Run, func(run int64, b state.NodeBrief) {
			runs[at[run]].Nodes = append(runs[at[run]].Nodes, b)
		})
	})
	return runs, next, err
}

// briefs tells of the nodes of a workspace's runs from the one of number
// oldest to the latest.
func briefs(ctx context.Context, tx *txn, latest state.RunKey, oldest int64,
	tell func(runID int64, b state.NodeBrief)) error {
	type told struct{}
	_, err := list(ctx, tx, func(row scanner) (told, error) {
		var id int64
		var b state.NodeBrief
		var worked, lost int64
		err := row.Scan(&id, &b.Name, &b.Table, &b.Status, &b.RowsOut, &b.BytesOut, &worked, &lost)
		if err == nil {
			b.Spent = spentOf(worked, lost)
			tell(id, b)
		}
		return told{}, err
	},
		`SELECT n.run_id, n.node, n.table_name, n.status, n.rows_out, n.bytes_out, n.worked_ms, n.lost_ms
			FROM runs r
			JOIN nodes n ON n.run_id = r.id
		WHERE r.workspace = ? AND r.run BETWEEN ? AND ? ORDER BY r.run, n.ordinal, n.id`,
		latest.Workspace, oldest, latest.Run)
	return err
}

// Workspaces implements state.Store.
func (s *Store) Workspaces(ctx context.Context) (names []string, err error) {
	err = s.view(ctx, "list workspaces", func(tx *txn) error {
		names, err = list(ctx, tx, func(row scanner) (name string, err error) {
			err = row.Scan(&name)
			return name, err
		}, `SELECT DISTINCT workspace FROM runs ORDER BY workspace`)
		return err
	})
	return names, err
}

// Blob implements state.Store.
func (s *Store) Blob(ctx context.Context, digest string) (content []byte, err error) {
	err = s.view(ctx, "read blob "+digest, func(tx *txn) error {
		return orNotFound(tx.QueryRowContext(ctx, `SELECT content FROM blobs WHERE digest = ?`, digest).Scan(&content))
	})
	return content, err
}

// runRow is a run with its place in the file.
type runRow struct {
	id  int64
	run state.Run
}

func findRun(ctx context.Context, tx *txn, key state.RunKey) (runRow, error) {
	r, err := scanRun(tx.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs WHERE workspace = ? AND run = ?`,
		key.Workspace, key.Run))
	return r, orNotFound(err)
}

// scanRun reads runColumns, and what follows them into more.
func scanRun(row scanner, more ...any) (r runRow, err error) {
	run := &r.run
	var created, finished, deadline moment
	err = row.Scan(append([]any{&r.id, &run.Workspace, &run.Run, &run.Token, &run.Status, &run.Epoch,
		asDocument(&run.Command), &run.Script, &run.ScriptPath,
		&run.ParamsPath, &run.Fingerprint, asDocument(&run.StartNodes), asDocument(&run.Sources), &run.Description,
		&run.Actor, &run.Parent,
		&deadline, &created, &finished, asDocument(&run.Failure), asDocument(&run.Invalidated),
		asDocument(&run.Dropped), &run.Program, &run.Engine, &run.BucketHash, &run.Priority, asDocument(&run.Limit)},
		more...)...)
	run.Created, run.Finished, run.Deadline = created.Time, finished.Time, deadline.Time
	return r, err
}

// scanner is a row of a result.
type scanner interface{ Scan(dest ...any) error }

// list reads a query's rows.
func list[T any](ctx context.Context, tx *txn, scan func(scanner) (T, error), query string, args ...any) (all []T,
	err error) {
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
