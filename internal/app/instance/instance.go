package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/clusterconfig"
	"thalweg/internal/store/cassandra"
	"thalweg/internal/store/parts"
	partslocal "thalweg/internal/store/parts/local"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

// DefaultDir is the state directory of a working directory.
const DefaultDir = ".thalweg"

// DefaultWorkspace is used when nobody names one.
const DefaultWorkspace = state.DefaultWorkspace

// workspaceName matches the names that a workspace may have. They become part of file names and, on
// a fleet, of keys.
var workspaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,47}$`)

// CheckWorkspace refuses names that cannot be workspaces.
func CheckWorkspace(name string) error {
	if workspaceName.MatchString(name) {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("%q cannot be the name of a workspace", name),
		Hint: "use 1 to 48 letters, digits, - and _, beginning with a letter or digit"}
}

// Instance is an open state directory, or a cluster's state.
type Instance struct {
	Dir   string // of what this machine keeps for itself; of a state directory: all of it
	State state.Store
	Parts parts.Store
	Files durable.FS
	tmp   *workDir
	Told  func(text string) string // a text whose commands are typed in another directory or shell; nil: as it is

	BaseDir       string                // directory that paths of scripts are seen from; "": they are whole
	HooksIn       string                // directory that may have hooks of all runs
	PartsDir      string                // where the files of parts lie, or of their copies
	Liveness      liveness              // who works on which run
	ClusterConfig *clusterconfig.Config // nil: a state directory
	fleet         string                // its id; "": it has no queue
	Costs         clusterconfig.Cost    // what bills rest on

	Cassandra *cassandra.Session // nil: none
	Clock     *Clock             // by which leases and notes are judged
	observers Observers          // of a cluster
	copies    *os.File           // lock of the directory of copies of parts; nil: they go with tmp
}

// Cluster is the configuration of a cluster; nil if this is a state directory's.
func (h *Instance) Cluster() *clusterconfig.Config { return h.ClusterConfig }

// Open opens a state directory, making it if create is set. Without create a
// missing one is an error that says so.
func Open(ctx context.Context, dir string, create bool) (*Instance, error) {
	return OpenOn(ctx, durable.FS{}, dir, create)
}

// OpenOn is Open on a file system of the caller's, for the directory, the parts
// and the output files of this machine.
func OpenOn(ctx context.Context, files durable.FS, dir string, create bool) (_ *Instance, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the state directory: %w", err)
	}
	if _, err := os.Stat(filepath.Join(abs, "state.db")); errors.Is(err, fs.ErrNotExist) && !create {
		return nil, &fault.Error{Kind: fault.Script, Message: "there is no state in " + dir,
			Hint: "run a script first, or name another directory with {{set state}}"}
	}
	if strings.Contains(abs, `\`) { // DuckDB takes it for the end of a directory's name where it looks for files
		return nil, &fault.Error{Kind: fault.Script, Message: "the path of the state directory " + abs +
			" has a backslash in it, with which its files are not found",
			Hint: "name a directory without one: {{set state=DIR}}"}
	}
	if err := files.MakeAll(abs, 0o700); err != nil {
		return nil, Fault(dir, "make the state directory", err)
	}
	if err := makeSubs(abs); err != nil {
		return nil, Fault(dir, "make the state directory", err)
	}
	if err := usable(abs); err != nil {
		return nil, err
	}
	h := &Instance{Clock: &Clock{}, tmp: &workDir{}, Dir: abs, Files: files, BaseDir: filepath.Dir(abs), HooksIn: abs,
		PartsDir: filepath.Join(abs, "parts"), Liveness: fileLocks{abs, &sync.Mutex{}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	store, err := sqlite.Open(ctx, filepath.Join(abs, "state.db"))
	if err != nil {
		return nil, err
	}
	h.State = store // only now: an interface that holds a nil pointer is not nil
	partStore, err := partslocal.OpenOn(files, h.PartsDir)
	if err != nil {
		return nil, Fault(dir, "open the parts", err)
	}
	h.Parts = partStore
	if err := sweepTmp(filepath.Join(abs, "tmp")); err != nil {
		return nil, Fault(dir, "clear what dead processes left", err)
	}
	return h, nil
}

// Lending is what a process lends to one that looks at its instance.
type Lending struct {
	Dir, Beside, PartsDir string // see Instance: Dir, BaseDir and PartsDir
	Work                  string // the directory of who borrows, for what it keeps; it is removed by others
	State                 state.Store
	Parts                 parts.Store
}

// Lent returns an instance that another process lends to this one. It is not closed.
func Lent(from Lending) *Instance {
	return &Instance{Clock: &Clock{}, Dir: from.Dir, BaseDir: from.Beside, PartsDir: from.PartsDir, State: from.State,
		Parts: from.Parts, tmp: &workDir{dir: &lockedDir{path: from.Work}}}
}

// makeSubs makes the directories that a machine has for itself.
func makeSubs(dir string) error {
	for _, sub := range []string{"locks", "tmp", "remote"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// WorkDir is a directory private to this process, made on first use and
// removed by Close, or by a later process if this one dies.
func (h *Instance) WorkDir() (string, error) {
	h.tmp.mu.Lock()
	defer h.tmp.mu.Unlock()
	if h.tmp.dir == nil {
		dir, err := newLockedDir(filepath.Join(h.Dir, "tmp"))
		if err != nil {
			return "", Fault(h.Dir, "make a directory for temporary files", err)
		}
		h.tmp.dir = dir
	}
	return h.tmp.dir.path, nil
}

// Scratch makes a directory within WorkDir for one caller, who removes it; Close does so at the latest.
func (h *Instance) Scratch() (string, error) {
	work, err := h.WorkDir()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(work, "s-")
	if err != nil {
		return "", Fault(h.Dir, "make a directory for temporary files", err)
	}
	return dir, nil
}

// Close closes the stores and removes temporary files.
func (h *Instance) Close() error {
	var errs []error
	if h.Parts != nil {
		errs = append(errs, h.Parts.Close())
	}
	if h.copies != nil {
		errs = append(errs, leaveCopies(h.copies))
	}
	if h.tmp != nil {
		h.tmp.mu.Lock()
		if h.tmp.dir != nil {
			errs = append(errs, h.tmp.dir.remove())
		}
		h.tmp.mu.Unlock()
	}
	if h.State != nil {
		errs = append(errs, h.State.Close())
	}
	if h.Cassandra != nil {
		h.Cassandra.Close()
	}
	return errors.Join(errs...)
}

// workDir holds what WorkDir has made.
type workDir struct {
	mu  sync.Mutex
	dir *lockedDir // nil: nothing yet
}

// lockedDir is a directory that lives as long as its process: another process
// may remove it once the lock on it is free.
type lockedDir struct {
	path string
	lock *os.File
}

const LockSuffix = ".lock"

// guard keeps sweepers away from directories that are being made: between a
// lock file's creation and its locking it looks like a dead process's.
func guard(parent string) (*os.File, error) {
	f, err := openGuard(parent)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func openGuard(parent string) (*os.File, error) {
	return os.OpenFile(filepath.Join(parent, "guard"), os.O_CREATE|os.O_RDWR, 0o600)
}

func newLockedDir(parent string) (_ *lockedDir, err error) {
	g, err := guard(parent)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	dir, err := os.MkdirTemp(parent, fmt.Sprintf("p%d-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(dir+LockSuffix, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lockedDir{path: dir, lock: f}, nil
}

func (d *lockedDir) remove() error {
	return errors.Join(os.RemoveAll(d.path), os.Remove(d.path+LockSuffix), d.lock.Close())
}

// sweepTmp removes the directories whose processes are gone, unless somebody else
// has the guard: who only looks at a state does not wait for one who may stand still.
func sweepTmp(parent string) (err error) {
	g, err := openGuard(parent)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if err := unix.Flock(int(g.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
		return err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), LockSuffix)
		if e.IsDir() {
			if _, err := os.Lstat(filepath.Join(parent, e.Name()+LockSuffix)); errors.Is(err, fs.ErrNotExist) {
				if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
					// its process died before it could lock it
					return err
				}
			}
		}
		if !isLock {
			continue
		}
		f, err := os.OpenFile(filepath.Join(parent, e.Name()), os.O_RDWR, 0)
		if err != nil {
			continue // somebody else is sweeping
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = errors.Join(os.RemoveAll(filepath.Join(parent, name)), os.Remove(f.Name()))
		}
		if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
