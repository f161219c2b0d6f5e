package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/expr"
	"thalweg/internal/sqltext"
)

// Version is the DuckDB release this binary embeds, as its bindings name it.
// Bucket layouts of earlier versions carry it because DuckDB does not promise that hash() stays
// the same between releases.
const Version = "duckdb-1.5.5"

// memoryBytesMin is the least memory that an instance is opened with: below
// it DuckDB cannot hold the blocks of a single operator.
const memoryBytesMin = 32 << 20

// InstanceConfig bounds an instance.
type InstanceConfig struct {
	MemoryBytes int64    // DuckDB's memory_limit; raised to 32 MiB if less
	Threads     int      // at least 1
	SpillDir    string   // private to this instance; made on open, removed on close
	SpillBytes  int64    // cap of the spill directory, 0: DuckDB's own (90 % of the disk)
	Paths       []string // directories and files that SQL may read and write; nothing else
	Profile     bool     // keep the operator counts of queries
	JSONErrors  bool     // failures can be taken apart: see Diagnose
	Unlocked    bool     // leave settings open to Tolerantly; what SQL may touch is fenced in all the same
}

// Instance is an in-memory DuckDB with one connection. It is not safe for
// concurrent use.
type Instance struct {
	conn   *sql.Conn
	db     *sql.DB
	spill  string
	macros *macros
}

// OpenInstance starts an instance; the caller closes it.
func OpenInstance(ctx context.Context, cfg InstanceConfig) (_ *Instance, err error) {
	if err := os.MkdirAll(cfg.SpillDir, 0o700); err != nil {
		return nil, fmt.Errorf("make spill directory: %w", err)
	}
	cfg.MemoryBytes = max(cfg.MemoryBytes, memoryBytesMin)
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	in := &Instance{db: sql.OpenDB(connector), spill: cfg.SpillDir, macros: newMacros(expr.TextBytes(cfg.MemoryBytes, cfg.Threads))}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	if in.conn, err = in.db.Conn(ctx); err != nil {
		return nil, fmt.Errorf("connect to DuckDB: %w", err)
	}
	if err := RegisterGo(in.conn); err != nil {
		return nil, err
	}
	for _, stmt := range settings(cfg) {
		if _, err := in.conn.ExecContext(ctx, stmt); err != nil {
			return nil, fmt.Errorf("configure DuckDB (%s): %w", stmt, err)
		}
	}
	return in, nil
}

// settings lists the statements that fence an instance in. The lock comes last.
func settings(cfg InstanceConfig) []string {
	var dirs, files []string
	for _, p := range append([]string{cfg.SpillDir}, cfg.Paths...) {
		if abs, err := filepath.Abs(p); err == nil {
			p = abs
		}
		if st, err := os.Stat(p); err == nil && st.IsDir() {
			dirs = append(dirs, p)
		} else {
			files = append(files, p)
		}
		// DuckDB compares what it may read with a pattern before it resolves
		// the pattern, so a path with wildcard characters is allowed twice.
		if escaped := sqltext.Glob(p); escaped != p {
			dirs, files = append(dirs, escaped), append(files, escaped)
		}
	}
	list := []string{
		fmt.Sprintf("SET threads = %d", max(cfg.Threads, 1)),
		fmt.Sprintf("SET memory_limit = '%dB'", cfg.MemoryBytes),
		"SET temp_directory = " + sqltext.String(cfg.SpillDir),
		"SET preserve_insertion_order = true",
		"SET TimeZone = 'UTC'",
		"SET autoinstall_known_extensions = false",
		"SET autoload_known_extensions = false",
		"SET errors_as_json = " + sqltext.Bool(cfg.JSONErrors),
	}
	if cfg.SpillBytes > 0 {
		list = append(list, fmt.Sprintf("SET max_temp_directory_size = '%dB'", cfg.SpillBytes))
	}
	if cfg.Profile {
		list = append(list, profileSettings...)
	}
	if len(dirs) > 0 {
		list = append(list, "SET allowed_directories = "+sqltext.Strings(dirs))
	}
	if len(files) > 0 {
		list = append(list, "SET allowed_paths = "+sqltext.Strings(files))
	}
	list = append(list, "SET enable_external_access = false")
	if !cfg.Unlocked {
		list = append(list, "SET lock_configuration = true")
	}
	return list
}

// Exec runs a statement that returns nothing of interest.
func (in *Instance) Exec(ctx context.Context, query string) error {
	if err := in.prepare(ctx, query); err != nil {
		return err
	}
	_, err := in.conn.ExecContext(ctx, query)
	return err
}

// Query runs a query. Its result is materialised by DuckDB within the memory limit.
func (in *Instance) Query(ctx context.Context, query string) (*sql.Rows, error) {
	return in.QueryContext(ctx, query)
}

// QueryContext lets an Instance stand where a database/sql querier is wanted.
func (in *Instance) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := in.prepare(ctx, query); err != nil {
		return nil, err
	}
	return in.conn.QueryContext(ctx, query, args...)
}

// prepare shows a statement to whoever follows them and defines its macros.
func (in *Instance) prepare(ctx context.Context, query string) error {
	in.trace(ctx, query)
	return in.macros.define(query, func(statement string) error {
		if _, err := in.conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("define a macro of a statement: %w", err)
		}
		return nil
	})
}

// InRollback runs f within a transaction that leaves nothing behind.
func (in *Instance) InRollback(ctx context.Context, f func() error) (err error) {
	if err := in.Exec(ctx, "BEGIN TRANSACTION"); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() {
		in.macros.forget() // macros are rolled back as well
		err = errors.Join(err, in.Exec(context.WithoutCancel(ctx), "ROLLBACK"))
	}()
	return f()
}

// Raw gives the driver's connection to f, for what database/sql does not cover.
// Statements that f runs there have the macros only that earlier ones used.
func (in *Instance) Raw(f func(driverConn any) error) error { return in.conn.Raw(f) }

// Close ends the instance and removes its spill directory.
func (in *Instance) Close() error {
	var errs []error
	if in.conn != nil {
		errs = append(errs, in.conn.Close())
	}
	errs = append(errs, in.db.Close(), os.RemoveAll(in.spill))
	return errors.Join(errs...)
}
