package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/budget"
	"thalweg/internal/engine"
	"thalweg/internal/fault"
	"thalweg/internal/pipeline"
	"thalweg/internal/plan"
	"thalweg/internal/sqltext"
	"thalweg/internal/state"
)

// queryRunsMax is how many of a workspace's latest runs a query can see.
const queryRunsMax = 1_000

// QueryOptions of a query over the tables of a workspace's runs.
type QueryOptions struct {
	Workspace   string
	SQL         string // user's own: it can read parts of this workspace and nothing else
	MemoryBytes int64
	RowsMax     int // 0: all
}

// QueryResult holds a query's rows; cells are string, int64, float64, bool or nil.
type QueryResult struct {
	Columns []string
	Rows    [][]any
	More    bool // there were more than RowsMax
}

// Query runs SQL over tables named NAME (of the latest run that wrote it) and
// runN.NAME. Only committed parts are seen.
func Query(ctx context.Context, home *Home, opts QueryOptions) (res QueryResult, err error) {
	views, err := queryViews(ctx, home, opts)
	if err != nil {
		return res, err
	}
	work, err := home.WorkDir()
	if err != nil {
		return res, err
	}
	in, err := engine.OpenInstance(ctx, engine.InstanceConfig{MemoryBytes: opts.MemoryBytes, Threads: budget.Cores(),
		SpillDir: filepath.Join(work, "query-spill"), Paths: []string{filepath.Join(home.Dir, "parts")}})
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	for _, v := range views {
		if err := in.Exec(ctx, v); err != nil {
			return res, fmt.Errorf("open the tables: %w", err)
		}
	}
	rows, err := in.Query(ctx, opts.SQL)
	if err != nil {
		return res, queryFault(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := readRows(rows, opts.RowsMax, &res); err != nil {
		return res, queryFault(ctx, err)
	}
	return res, nil
}

func queryFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return &fault.Error{Kind: fault.Canceled, Message: "the query was interrupted", Err: context.Cause(ctx)}
	}
	var db *duckdb.Error
	if errors.As(err, &db) && db.Type != duckdb.ErrorTypeInternal && db.Type != duckdb.ErrorTypeFatal {
		return &fault.Error{Kind: fault.Script, Message: db.Msg, Hint: "thalweg nodes lists what a run wrote; tables have the names in the script"}
	}
	return err
}

// queryViews makes the statements that define the tables which the query's
// text may mean.
func queryViews(ctx context.Context, home *Home, opts QueryOptions) ([]string, error) {
	runs, err := home.State.Runs(ctx, opts.Workspace)
	if err != nil {
		return nil, fmt.Errorf("read the runs of workspace %s: %w", opts.Workspace, err)
	}
	runs = runs[max(len(runs)-queryRunsMax, 0):]
	text := strings.ToLower(opts.SQL)
	latest := map[string]string{}
	var stmts []string
	for _, r := range runs {
		tables, err := runTables(ctx, home, r, text)
		if err != nil {
			return nil, err
		}
		schema := fmt.Sprintf("run%d", r.Run)
		for i, t := range tables {
			if i == 0 {
				stmts = append(stmts, "CREATE SCHEMA "+sqltext.Ident(schema))
			}
			stmts = append(stmts, fmt.Sprintf("CREATE VIEW %s.%s AS %s", sqltext.Ident(schema), sqltext.Ident(t.name), t.query))
			latest[t.name] = schema
		}
	}
	for name, schema := range latest {
		stmts = append(stmts, fmt.Sprintf("CREATE VIEW %s AS FROM %s.%s", sqltext.Ident(name), sqltext.Ident(schema), sqltext.Ident(name)))
	}
	return stmts, nil
}

type queryTable struct{ name, query string }

// runTables lists a run's tables whose names are in the query's text.
func runTables(ctx context.Context, home *Home, r state.Run, text string) ([]queryTable, error) {
	nodes, err := home.State.Nodes(ctx, r.RunKey)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", r.Run, err)
	}
	var out []queryTable
	for _, n := range nodes {
		if n.Plan == nil {
			continue
		}
		np, err := plan.DecodeNodePlan(n.Plan)
		if err != nil {
			return nil, err
		}
		name := np.Table
		if name == "" || !strings.Contains(text, strings.ToLower(name)) {
			continue
		}
		t, err := pipeline.ReadTable(ctx, home.State, n.NodeKey)
		if err != nil {
			return nil, err
		}
		paths := plan.Paths{}
		for _, p := range t.Parts {
			path, release, err := home.Parts.Fetch(ctx, p.Key, "")
			if err != nil {
				return nil, &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("read table %s of run %d", name, r.Run), Err: err, Hint: "the state directory was changed by something else"}
			}
			defer release()
			paths[p.Key] = path
		}
		out = append(out, queryTable{name: name, query: t.SelectAll(paths)})
	}
	return out, nil
}

// readRows reads up to limit rows.
func readRows(rows *sql.Rows, limit int, res *QueryResult) error {
	var err error
	if res.Columns, err = rows.Columns(); err != nil {
		return err
	}
	for rows.Next() {
		if limit > 0 && len(res.Rows) == limit {
			res.More = true
			return nil
		}
		row := make([]any, len(res.Columns))
		ptrs := make([]any, len(row))
		for i := range row {
			ptrs[i] = &row[i]
		}
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		for i, v := range row {
			row[i] = plainCell(v)
		}
		res.Rows = append(res.Rows, row)
	}
	return rows.Err()
}

// plainCell turns the driver's values into what can be printed as text or JSON.
func plainCell(v any) any {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return v
	case int32:
		return int64(v)
	case time.Time:
		if v.Hour() == 0 && v.Minute() == 0 && v.Second() == 0 && v.Nanosecond() == 0 {
			return v.Format(time.DateOnly)
		}
		return v.Format("2006-01-02 15:04:05.999")
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprint(v)
}
