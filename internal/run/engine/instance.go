package engine

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
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
	MemoryBytes int64                 // DuckDB's memory_limit; raised to 32 MiB if less
	Threads     int                   // at least 1
	TextBytes   int64                 // that an expression may make of a text; 0: what MemoryBytes holds
	SpillDir    string                // private to this instance; made on open, removed on close
	SpillBytes  int64                 // cap of the spill directory, 0: DuckDB's own (90 % of the disk)
	Paths       []string              // directories and files that SQL may read and write; nothing else
	Profile     bool                  // keep the operator counts of queries
	JSONErrors  bool                  // failures can be taken apart: see Diagnose
	roots       []string              // directories besides Paths, there or not; absolute
	Opened      func(spillDir string) // told where the instance that serves a task spills to; nil is allowed
	Unlocked    bool                  // leave settings open to Tolerantly; what SQL may touch is fenced in all the same
}

// Instance is an in-memory DuckDB with one connection. It is not safe for
// concurrent use.
type Instance struct {
	conn   *sql.Conn
	db     *sql.DB
	cfg    InstanceConfig // as it is set now
	tasks  int            // that it has served
	macros *macros
	// lasting says that a statement may have left something that does not end with the connection.
	lasting  bool
	profiled bool  // its queries are profiled
	csvRows  int64 // that CSV readers gave to the last COPY, if it was profiled
	// partsRead says that a statement may have left a part of texts unread: see Result.PartsRead.
	partsRead  bool
	scansWhole bool // what is left fails now: see expr.ScanWhole
	// hidesFailures says that statements of its task may go on where a value fails.
	hidesFailures bool
}

// OpenInstance starts an instance; the caller closes it.
func OpenInstance(ctx context.Context, cfg InstanceConfig) (*Instance, error) {
	db, err := openDatabase()
	if err != nil {
		return nil, err
	}
	return fenceIn(ctx, db, cfg)
}

// openDatabase starts DuckDB with the options that are the same everywhere.
// Nothing fences it in yet.
func openDatabase() (*sql.DB, error) {
	connector, err := duckdb.NewConnector(
		"?threads=1&autoinstall_known_extensions=false&autoload_known_extensions=false&enable_external_file_cache=false", nil)
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(0) // temporary tables, macros and settings end with their connection
	return db, nil
}

// fenceIn makes an instance of a database that nobody has used. It is closed
// when that fails.
func fenceIn(ctx context.Context, db *sql.DB, cfg InstanceConfig) (_ *Instance, err error) {
	in := &Instance{db: db, cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, in.Close())
		}
	}()
	if err := os.MkdirAll(cfg.SpillDir, 0o700); err != nil {
		return nil, fmt.Errorf("make spill directory: %w", err)
	}
	if err := in.connect(ctx); err != nil {
		return nil, err
	}
	if err := RegisterGo(in.conn); err != nil {
		return nil, err
	}
	in.useMacros(cfg)
	in.profiled = cfg.Profile
	return in, in.set(ctx, settings(cfg))
}

// connect gives the instance a connection, which sees nothing of earlier ones.
func (in *Instance) connect(ctx context.Context) (err error) {
	if in.conn, err = in.db.Conn(ctx); err != nil {
		return fmt.Errorf("connect to DuckDB: %w", err)
	}
	// The last rows of a row group, if few, would wait for others behind a join,
	// and come behind rows that come after them: texts could not be joined as
	// they come (docs/decisions/0005-order.md).
	return in.set(ctx, []string{"SET enable_caching_operators = false"})
}

// useMacros makes the macros those of an instance with so much memory.
func (in *Instance) useMacros(cfg InstanceConfig) {
	in.macros = newMacros(cmp.Or(cfg.TextBytes, expr.TextBytes(cfg.memory(), cfg.Threads)))
}

// set runs statements that configure the instance.
func (in *Instance) set(ctx context.Context, statements []string) error {
	for _, stmt := range statements {
		if _, err := in.conn.ExecContext(ctx, stmt); err != nil {
			return fmt.Errorf("configure DuckDB (%s): %w", stmt, err)
		}
	}
	return nil
}

// memory is DuckDB's limit.
func (cfg InstanceConfig) memory() int64 { return max(cfg.MemoryBytes, memoryBytesMin) }

// settings lists the statements that fence an instance in. The lock comes last.
func settings(cfg InstanceConfig) []string {
	list := slices.Concat(resourceSettings(cfg), []string{"SET temp_directory = " + sqltext.String(cfg.SpillDir),
		"SET GLOBAL TimeZone = 'UTC'"})
	if cfg.JSONErrors {
		list = append(list, "SET errors_as_json = true")
	}
	if cfg.Profile {
		list = append(list, profileSettings...)
	}
	list = append(list, pathSettings(append(slices.Clone(cfg.roots), cfg.SpillDir), cfg.Paths)...)
	list = append(list, "SET enable_external_access = false")
	if !cfg.Unlocked {
		list = append(list, "SET lock_configuration = true")
	}
	return list
}

// resourceSettings are those that bound an instance.
func resourceSettings(cfg InstanceConfig) []string {
	list := []string{
		fmt.Sprintf("SET threads = %d", max(cfg.Threads, 1)),
		fmt.Sprintf("SET memory_limit = '%dB'", cfg.memory()),
	}
	if cfg.SpillBytes > 0 {
		list = append(list, fmt.Sprintf("SET max_temp_directory_size = '%dB'", cfg.SpillBytes))
	}
	return list
}

// pathSettings are those that say which paths SQL may read and write: what is in
// directories that need not be there yet, and files or directories.
func pathSettings(dirs, paths []string) (list []string) {
	var files []string
	for _, p := range paths {
		if p = absolute(p); isDir(p) {
			dirs = append(dirs, p)
		} else {
			files = append(files, p)
		}
	}
	// DuckDB compares what it may read with a pattern before it resolves
	// the pattern, so a path with wildcard characters is allowed twice.
	for _, p := range slices.Concat(dirs, files) {
		if escaped := sqltext.Glob(p); escaped != p {
			dirs, files = append(dirs, escaped), append(files, escaped)
		}
	}
	if len(dirs) > 0 {
		list = append(list, "SET allowed_directories = "+sqltext.Strings(dirs))
	}
	if len(files) > 0 {
		list = append(list, "SET allowed_paths = "+sqltext.Strings(files))
	}
	return list
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
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
	in.lasting = in.lasting || lasts(query)
	return in.defineMacros(ctx, query)
}

// defineMacros defines the macros that a statement names.
func (in *Instance) defineMacros(ctx context.Context, query string) error {
	in.partsRead = in.partsRead || !in.scansWhole && strings.Contains(query, expr.ScanEnd+"(")
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
	errs = append(errs, in.db.Close(), os.RemoveAll(in.cfg.SpillDir))
	return errors.Join(errs...)
}
