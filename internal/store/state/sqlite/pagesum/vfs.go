package pagesum

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Name is the value of a connection's parameter vfs, once Register has been called.
const Name = "thalweg-pagesum"

// Suffix of the file with the checksums.
const Suffix = "-sums"

// registry is SQLite's, of which a process has one: what its callbacks find
// by the address of a file.
type registry struct {
	once     sync.Once
	err      error
	original uintptr // the system's VFS
	mu       sync.RWMutex
	methods  map[uintptr]uintptr // of the original file methods: ours
	files    map[uintptr]*file   // open files, by address
}

// process is the one registry that SQLite's callbacks, which are plain
// functions, can reach.
var process = registry{methods: map[uintptr]uintptr{}, files: map[uintptr]*file{}}

// file is an open database file.
type file struct {
	methods uintptr // the original ones
	sums    *sums
}

// Register makes the VFS known to SQLite. It may be called more than once.
func Register() error {
	process.once.Do(func() { process.err = process.register() })
	return process.err
}

func (r *registry) register() error {
	tls := libc.NewTLS()
	defer tls.Close()
	r.original = sqlite3.Xsqlite3_vfs_find(tls, 0)
	if r.original == 0 {
		return fmt.Errorf("SQLite has no file system")
	}
	name, err := libc.CString(Name) // lives as long as the process
	if err != nil {
		return fmt.Errorf("name the file system of state files: %w", err)
	}
	vfs := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{})))
	if vfs == 0 {
		return fmt.Errorf("no memory for the file system of state files")
	}
	v := at[sqlite3.Tsqlite3_vfs](vfs)
	*v = *at[sqlite3.Tsqlite3_vfs](r.original)
	v.FpNext, v.FzName, v.FxOpen = 0, name, address(open)
	if rc := sqlite3.Xsqlite3_vfs_register(tls, vfs, 0); rc != sqlite3.SQLITE_OK {
		return fmt.Errorf("register the file system of state files: SQLite's code %d", rc)
	}
	return nil
}

// at returns a pointer to the value at an address of SQLite's own memory.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// address is a Go function as SQLite's translated code calls it.
func address(f any) uintptr {
	type words [2]uintptr
	return (*words)(unsafe.Pointer(&f))[1]
}

// function is the reverse: the Go function at an address.
func function[F any](p uintptr) F {
	type holder struct{ p uintptr }
	h := &holder{p}
	return *(*F)(unsafe.Pointer(h))
}

// bytesAt is a buffer of SQLite's.
func bytesAt(p uintptr, n int32) []byte { return unsafe.Slice(at[byte](p), n) }

func (r *registry) find(p uintptr) *file {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.files[p]
}

// ours gives the methods of our own that stand before original ones.
func (r *registry) ours(tls *libc.TLS, original uintptr) uintptr {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.methods[original]; m != 0 {
		return m
	}
	m := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	if m == 0 {
		return 0
	}
	t := at[sqlite3.Tsqlite3_io_methods](m)
	*t = *at[sqlite3.Tsqlite3_io_methods](original)
	t.FiVersion = min(t.FiVersion, 2) // no memory maps: their pages would not pass here
	t.FxClose, t.FxRead, t.FxWrite = address(closeFile), address(read), address(write)
	t.FxTruncate, t.FxSync = address(truncate), address(syncFile)
	r.methods[original] = m
	return m
}

type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	plainFunc = func(tls *libc.TLS, file uintptr) int32
	bytesFunc = func(tls *libc.TLS, file, buffer uintptr, bytes int32, offset int64) int32
	sizeFunc  = func(tls *libc.TLS, file uintptr, size int64) int32
	flagsFunc = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// open opens a file as the system's VFS does, and a database with its checksums.
func open(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	system := at[sqlite3.Tsqlite3_vfs](process.original)
	rc := function[openFunc](system.FxOpen)(tls, process.original, name, p, flags, outFlags)
	if rc != sqlite3.SQLITE_OK || flags&sqlite3.SQLITE_OPEN_MAIN_DB == 0 {
		return rc
	}
	head := at[sqlite3.Tsqlite3_file](p)
	f := &file{methods: head.FpMethods}
	var err error
	if f.sums, err = openSums(libc.GoString(name) + Suffix); err == nil {
		if ours := process.ours(tls, f.methods); ours != 0 {
			process.mu.Lock()
			process.files[p] = f
			process.mu.Unlock()
			head.FpMethods = ours
			return sqlite3.SQLITE_OK
		}
		_ = f.sums.close() // nothing was written
	}
	function[plainFunc](f.original().FxClose)(tls, p)
	head.FpMethods = 0
	if os.IsPermission(err) {
		return sqlite3.SQLITE_READONLY
	}
	return sqlite3.SQLITE_CANTOPEN
}

func (f *file) original() *sqlite3.Tsqlite3_io_methods {
	return at[sqlite3.Tsqlite3_io_methods](f.methods)
}

func closeFile(tls *libc.TLS, p uintptr) int32 {
	f := process.find(p)
	process.mu.Lock()
	delete(process.files, p)
	process.mu.Unlock()
	rc := function[plainFunc](f.original().FxClose)(tls, p)
	if err := f.sums.close(); err != nil && rc == sqlite3.SQLITE_OK {
		rc = sqlite3.SQLITE_IOERR_CLOSE
	}
	return rc
}

func read(tls *libc.TLS, p, buffer uintptr, bytes int32, offset int64) int32 {
	f := process.find(p)
	rc := function[bytesFunc](f.original().FxRead)(tls, p, buffer, bytes, offset)
	if bytes < PageBytes { // the header, which is read as a page afterwards
		return rc
	}
	if rc != sqlite3.SQLITE_OK && rc != sqlite3.SQLITE_IOERR_SHORT_READ {
		return rc
	}
	if bytes != PageBytes || offset%PageBytes != 0 || !f.sums.matches(offset/PageBytes, bytesAt(buffer, bytes),
		rc == sqlite3.SQLITE_IOERR_SHORT_READ) {
		return sqlite3.SQLITE_IOERR_DATA
	}
	return rc
}

func write(tls *libc.TLS, p, buffer uintptr, bytes int32, offset int64) int32 {
	f := process.find(p)
	rc := function[bytesFunc](f.original().FxWrite)(tls, p, buffer, bytes, offset)
	if rc != sqlite3.SQLITE_OK {
		return rc
	}
	if bytes != PageBytes || offset%PageBytes != 0 || f.sums.note(offset/PageBytes, bytesAt(buffer, bytes)) != nil {
		return sqlite3.SQLITE_IOERR_WRITE
	}
	return rc
}

func truncate(tls *libc.TLS, p uintptr, size int64) int32 {
	f := process.find(p)
	rc := function[sizeFunc](f.original().FxTruncate)(tls, p, size)
	if rc == sqlite3.SQLITE_OK && f.sums.truncate((size+PageBytes-1)/PageBytes) != nil {
		return sqlite3.SQLITE_IOERR_TRUNCATE
	}
	return rc
}

// syncFile makes the checksums durable before the pages: SQLite forgets its log
// when the file is synced.
func syncFile(tls *libc.TLS, p uintptr, flags int32) int32 {
	f := process.find(p)
	if f.sums.sync() != nil {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return function[flagsFunc](f.original().FxSync)(tls, p, flags)
}
