package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"thalweg/internal/run/python"
)

const (
	// instanceTasksMax limits the tasks that an instance serves: memory that DuckDB does not give back ends
	// with it.
	instanceTasksMax = 64
	// instanceBytesMax limits the memory that an instance may hold between two tasks.
	instanceBytesMax = 8 << 20
)

// Instances keeps instances from task to task: to open, fence in and close one
// costs ten milliseconds, many times what a small batch needs. A task gets a
// connection of its own, with which its temporary tables, macros and settings
// end, and an instance goes on only from a task that succeeded. Two kinds of
// tasks have an instance to themselves, as from Execute: those with SQL that
// people wrote (Task.Secluded) and those that had to put rows aside.
//
// What DuckDB may touch cannot be changed while it runs. So the instances that
// are shared may touch the directories of all tasks so far, and one that is
// asked for more is replaced. Their SQL is all ours.
//
// Its methods may be called by any number of goroutines.
type Instances struct {
	dir string // of the spill directories

	mu     sync.Mutex
	roots  []string // directories that tasks have named
	idle   []*Instance
	spares []<-chan spare // each gives one
	opened int            // databases so far
	spills int            // spill directories so far
	closed bool           // no instance is kept any more

	released int64          // what the process held after the last release
	wg       sync.WaitGroup // goroutines that open and close databases
}

// spare is a database that nobody has used, or why there is none.
type spare struct {
	db  *sql.DB
	err error
}

// Executor executes tasks as Instances do; tests have others that fail.
type Executor interface {
	Execute(ctx context.Context, cfg InstanceConfig, pool *python.Pool, task Task) (Result, error)
}

var _ Executor = (*Instances)(nil)

// NewInstances makes no instance yet. Their spill directories will be in dir;
// roots are directories that tasks will name. The caller closes it.
func NewInstances(dir string, roots ...string) *Instances {
	p := &Instances{dir: dir}
	p.Allow(roots...)
	return p
}

// Prepare begins to open databases in the background for the first n instances.
func (p *Instances) Prepare(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && p.opened+len(p.spares) < n {
		ready := make(chan spare, 1)
		p.spares = append(p.spares, ready)
		p.wg.Go(func() {
			db, err := openDatabase()
			ready <- spare{db, err}
		})
	}
}

// Allow names directories that tasks will read or write, so that instances
// need not be replaced for them.
func (p *Instances) Allow(dirs ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow(dirs)
}

func (p *Instances) allow(dirs []string) {
	for _, dir := range dirs {
		if dir = absolute(dir); !covered(p.roots, dir) {
			p.roots = append(p.roots, dir)
		}
	}
}

// covered reports whether a path is one of the roots or below.
func covered(roots []string, path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+string(filepath.Separator))
	})
}

// Execute does what the function Execute does, in an instance that other tasks
// have used if that is possible: then its spill directory is not cfg.SpillDir.
// Of nil Instances each task has its own.
func (p *Instances) Execute(ctx context.Context, cfg InstanceConfig, pool *python.Pool, task Task) (Result, error) {
	if p == nil {
		return Execute(ctx, cfg, pool, task)
	}
	if task.Secluded {
		return execute(ctx, cfg, pool, task, fresh{p.database})
	}
	return execute(ctx, cfg, pool, task, p)
}

// Lend gives an instance that others have used if that is possible, for statements that are all ours. The caller gives
// it back by done, and says whether they succeeded and left nothing behind.
func (p *Instances) Lend(ctx context.Context, cfg InstanceConfig) (in *Instance, done func(clean bool) error, err error) {
	if in, err = p.open(ctx, cfg); err != nil {
		return nil, nil, err
	}
	return in, func(clean bool) error { return p.close(in, clean) }, nil
}

// database gives a spare, or else opens one.
func (p *Instances) database() (*sql.DB, error) {
	p.mu.Lock()
	p.opened++
	var ready <-chan spare
	if len(p.spares) > 0 {
		ready, p.spares = p.spares[0], p.spares[1:]
	}
	p.mu.Unlock()
	if ready == nil {
		return openDatabase()
	}
	s := <-ready
	return s.db, s.err
}

// open implements lender.
func (p *Instances) open(ctx context.Context, cfg InstanceConfig) (*Instance, error) {
	in, worn := p.take(cfg)
	if worn != nil {
		if err := worn.Close(); err != nil {
			return nil, err
		}
	}
	var err error
	if in == nil {
		in, err = p.another(ctx, cfg)
	} else if err = in.adapt(ctx, cfg); err != nil {
		err = errors.Join(err, in.Close())
	}
	if err == nil && cfg.Profile { // of the connection
		in.profiled = true
		if err = in.set(ctx, profileSettings); err != nil {
			err = errors.Join(err, in.Close())
		}
	}
	return in, err
}

// take takes an idle instance that may touch what a task names. If none may,
// one is worn out: its successor may touch all that was ever named.
func (p *Instances) take(cfg InstanceConfig) (fit, worn *Instance) {
	dirs := directories(cfg.Paths)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow(dirs)
	last := len(p.idle) - 1
	for i := last; i >= 0; i-- {
		in := p.idle[i]
		reaches := !slices.ContainsFunc(dirs, func(dir string) bool { return !covered(in.cfg.roots, dir) })
		if reaches && in.cfg.SpillBytes == cfg.SpillBytes {
			p.idle = slices.Delete(p.idle, i, i+1)
			return in, nil
		}
	}
	if last >= 0 {
		worn = p.idle[last]
		p.idle = p.idle[:last]
	}
	return nil, worn
}

// another makes one more instance to be shared.
func (p *Instances) another(ctx context.Context, cfg InstanceConfig) (*Instance, error) {
	db, err := p.database()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	cfg.Paths, cfg.roots = nil, slices.Clone(p.roots)
	p.spills++
	cfg.SpillDir = filepath.Join(p.dir, fmt.Sprintf("spill-%d", p.spills))
	p.mu.Unlock()
	cfg.Unlocked, cfg.Profile = true, false
	return fenceIn(ctx, db, cfg)
}

// directories are those that paths are, or are in.
func directories(paths []string) []string {
	var dirs []string
	for _, path := range paths {
		if path = absolute(path); !isDir(path) {
			path = filepath.Dir(path)
		}
		if !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// adapt makes an idle instance that of a task.
func (in *Instance) adapt(ctx context.Context, cfg InstanceConfig) error {
	in.useMacros(cfg)
	if cfg.MemoryBytes == in.cfg.MemoryBytes && cfg.Threads == in.cfg.Threads {
		return nil
	}
	in.cfg.MemoryBytes, in.cfg.Threads = cfg.MemoryBytes, cfg.Threads
	return in.set(ctx, resourceSettings(cfg))
}

// close implements lender: an instance that a task leaves as it found it
// waits for the next one, all others end.
func (p *Instances) close(in *Instance, clean bool) error {
	defer p.release()
	if in.tasks++; !clean || in.lasting || in.tasks >= instanceTasksMax {
		return in.Close()
	}
	if clean, err := in.renew(); err != nil || !clean {
		return errors.Join(err, in.Close())
	}
	p.mu.Lock()
	keep := !p.closed
	if keep {
		p.idle = append(p.idle, in)
	}
	p.mu.Unlock()
	if keep {
		return nil
	}
	return in.Close()
}

// passing are the beginnings of statements that leave nothing behind when their
// connection ends. All others end the instance with their task.
var passing = []string{"SELECT ", "WITH ", "FROM ", "EXPLAIN ", "COPY ", "DROP ", "CREATE TEMP ",
	"CREATE OR REPLACE TEMP "}

// lasts reports whether a statement may leave something behind.
func lasts(statement string) bool {
	return !slices.ContainsFunc(passing, func(begin string) bool { return strings.HasPrefix(statement, begin) })
}

// renew ends the connection, and with it all that a task has made there, and
// reports whether nothing else of the task is left.
func (in *Instance) renew() (clean bool, err error) {
	ctx := context.Background() // the task is over, whatever became of its context
	if err := in.conn.Close(); err != nil {
		return false, fmt.Errorf("end a connection to DuckDB: %w", err)
	}
	if err := in.connect(ctx); err != nil {
		return false, err
	}
	in.profiled, in.csvRows, in.partsRead = false, 0, false
	left, err := os.ReadDir(in.cfg.SpillDir)
	if err != nil || len(left) > 0 {
		return false, err
	}
	var bytes int64
	err = in.conn.QueryRowContext(ctx, "SELECT CAST(sum(memory_usage_bytes) AS BIGINT) FROM duckdb_memory()").
		Scan(&bytes)
	return err == nil && bytes <= instanceBytesMax, err
}

// Close ends the instances that are idle; those in use end with their tasks.
func (p *Instances) Close() error {
	p.mu.Lock()
	p.closed = true
	idle, spares := p.idle, p.spares
	p.idle, p.spares = nil, nil
	p.mu.Unlock()
	errs := make([]error, len(idle)+len(spares))
	for i, in := range idle {
		p.wg.Go(func() { errs[i] = in.Close() })
	}
	for i, ready := range spares {
		p.wg.Go(func() {
			if s := <-ready; s.err == nil {
				errs[len(idle)+i] = s.db.Close()
			}
		})
	}
	p.wg.Wait()
	return errors.Join(errs...)
}
