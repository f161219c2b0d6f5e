package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
)

// What a worker should have.
const (
	filesWarn     = 4096 // open at once
	filesBad      = 256
	processesWarn = 512 // beside those that are there
	processesBad  = 64
	freeWarn      = 5 << 30 // bytes of disk
	freeBad       = 512 << 20
)

// Machine holds the inputs of the checks of this machine.
type Machine struct {
	Program string // version of this program
	Engine  string // of DuckDB
	// Query asks DuckDB for its version.
	Query   func(ctx context.Context) (string, error)
	Memory  int64  // bytes that the worker is to use; 0: a share
	Cores   int    // 0: all
	Scratch string // "": none is named
	Cache   int64  // bytes of parts that are kept in it; 0: none
}

// Service gives the checks.
func (m Machine) Service() Service {
	s := Service{Name: "machine", Checks: []Check{
		{Name: "program", Look: m.program},
		{Name: "memory", Look: m.memory},
		{Name: "cores", Look: m.cores},
		{Name: "open files", Look: func(context.Context) Result { return files() }},
		{Name: "processes", Look: func(context.Context) Result { return processes() }},
		{Name: "clock", Look: func(context.Context) Result { return kept() }},
	}}
	if m.Scratch != "" {
		s.Checks = append(s.Checks,
			Check{Name: "scratch", Look: func(context.Context) Result { return Directory(m.Scratch, m.Cache, false) }})
	}
	return s
}

func (m Machine) program(ctx context.Context) Result {
	linked, err := m.Query(ctx)
	if err != nil {
		return Failed(err)
	}
	r := good("thalweg %s, DuckDB %s, %s/%s", m.Program, linked, runtime.GOOS, runtime.GOARCH)
	if strings.TrimPrefix(m.Engine, "duckdb-") != strings.TrimPrefix(linked, "v") {
		r.Verdict, r.Mend = Bad, "this program was built for "+m.Engine+": use the library that it came with"
	}
	return r
}

func (m Machine) memory(context.Context) Result {
	there := budget.MachineBytes()
	uses := m.Memory
	if uses == 0 {
		uses = budget.Default()
	}
	r := good("%s, of which a worker uses %s", format.Size(there), format.Size(uses))
	free := available()
	switch {
	case uses < budget.MemoryBytesMin:
		r.Verdict, r.Mend = Bad, "a run needs at least "+format.Size(budget.MemoryBytesMin)
	case uses > there:
		r.Verdict, r.Mend = Bad,
			"the system ends processes that use more than there is: name less, worker: {memory: SIZE}"
	case free > 0 && free < uses:
		r.Verdict, r.Seen = Warning, r.Seen+fmt.Sprintf("; others have left %s of it", format.Size(free))
		r.Mend = "name less, worker: {memory: SIZE}, or end what else needs memory here"
	}
	return r
}

// available returns the bytes that the system could give at once; 0 if that is unknown.
func available() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			if f := strings.Fields(rest); len(f) > 0 {
				kib, _ := strconv.ParseInt(f[0], 10, 64)
				return kib << 10
			}
		}
	}
	return 0
}

func (m Machine) cores(context.Context) Result {
	has := budget.Cores()
	r := good("%d", has)
	if m.Cores > 0 {
		r.Seen = fmt.Sprintf("%d, of which a worker uses %d", has, m.Cores)
	}
	if m.Cores > has {
		r.Verdict, r.Mend = Warning, "name at most as many as there are: worker: {cores: N}"
	}
	return r
}

func files() Result {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "ask for the limit of open files", Err: err})
	}
	return judgeLimit(limit.Cur, filesWarn, filesBad, "ulimit -n, or LimitNOFILE= of the service")
}

func judgeLimit(has, warn, bad uint64, how string) Result {
	r := good("%d at most", has)
	if has >= 1<<40 {
		r.Seen = "no limit"
	}
	switch {
	case has < bad:
		r.Verdict = Bad
	case has < warn:
		r.Verdict = Warning
	default:
		return r
	}
	r.Mend = fmt.Sprintf("allow %d or more: %s", warn, how)
	return r
}

// Directory says whether files can be kept in a directory. wanted is what is
// going to be kept there at most. shared is one that several processes lock
// files in.
func Directory(dir string, wanted int64, shared bool) Result {
	there := dir
	for { // it is made when it is needed
		if _, err := os.Stat(there); err == nil || filepath.Dir(there) == there {
			break
		}
		there = filepath.Dir(there)
	}
	f, err := os.CreateTemp(there, ".thalweg-doctor-*")
	if err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "make a file in " + there, Err: err,
			Hint: "check permissions and free space, or name another directory"})
	}
	defer func() { _ = os.Remove(f.Name()) }() // made a moment ago
	defer f.Close()
	if _, err := f.Write([]byte{0}); err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "write a file in " + there, Err: err,
			Hint: "free space on the disk, or name another directory"})
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "ask for the free space of " + there, Err: err})
	}
	if shared {
		if r := locks(f.Name()); r.Verdict != Good {
			return r
		}
	}
	return judgeDirectory(dir, st, wanted, shared)
}

func judgeDirectory(dir string, st unix.Statfs_t, wanted int64, shared bool) Result {
	free, kind := int64(st.Bavail)*int64(st.Bsize), fileSystem(int64(st.Type)) //nolint:unconvert,nolintlint // differs by machine
	r := good("%s, %s free", dir, format.Size(free))
	if kind.name != "" {
		r.Seen += ", " + kind.name
	}
	switch {
	case free < freeBad:
		r.Verdict, r.Mend = Bad, "free some space, or name another directory"
	case shared && kind.far:
		r.Verdict, r.Mend = Bad, "SQLite's state must be on a disk of the machine: over several machines, keep it in "+
			"Cassandra"
	case wanted > free:
		r.Verdict, r.Mend = Warning,
			fmt.Sprintf("the cache is to have up to %s: name less, worker: {cache: SIZE}, or another directory",
				format.Size(wanted))
	case free < freeWarn:
		r.Verdict, r.Mend = Warning, "free some space: what does not fit into memory is written to disk"
	case kind.far, kind.memory:
		r.Verdict, r.Mend = Warning, "a disk of the machine is faster for temporary files, and does not cost memory"
	}
	return r
}

// locks tries whether the file system keeps two processes apart.
func locks(path string) Result {
	one, err := os.Open(path)
	if err == nil {
		defer one.Close()
		err = unix.Flock(int(one.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	other, openErr := os.Open(path)
	if openErr == nil {
		defer other.Close()
	}
	if err != nil || openErr != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "lock a file in " + filepath.Dir(path), Err: err,
			Hint: "use a file system that can lock files"})
	}
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return Result{Verdict: Bad, Seen: "the file system lets two lock one file", Mend: "use a disk of the machine"}
	}
	return good("")
}

// kindOfFiles describes a type of file system.
type kindOfFiles struct {
	name        string
	far, memory bool
}
