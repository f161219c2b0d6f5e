package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

// Fault says why something cannot be done in a state directory, and what to do.
func Fault(dir, what string, err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	if abs, e := filepath.Abs(dir); e == nil {
		dir = abs
	}
	const another = "name another directory: {{set state=DIR}}"
	switch {
	case errors.Is(err, fs.ErrPermission):
		return denied(dir, pathOf(err, dir))
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		if file := fileIn(dir); file != "" {
			return &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("%s cannot be a state directory: %s is a file", dir,
					file), Hint: another}
		}
	case errors.Is(err, syscall.EROFS):
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("the state directory %s cannot be written: its file system is read-only", dir),
			Hint:    another}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("%s: the disk of the state directory %s is full",
				what, dir), Err: err,
			Hint: "free space there ({{do gc}} removes what nobody needs any more), or " + another}
	}
	return &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("%s (%s)", what, dir), Err: err,
		Hint: "check permissions and free space, or " + another}
}

// pathOf is the path that an error is about; dir if it names none.
func pathOf(err error, dir string) string {
	var p *fs.PathError
	if errors.As(err, &p) && filepath.IsAbs(p.Path) {
		return p.Path
	}
	return dir
}

// fileIn is the part of a path that is a file; "": there is none.
func fileIn(path string) string {
	for ; ; path = filepath.Dir(path) {
		if info, err := os.Stat(path); err == nil {
			if info.IsDir() {
				return ""
			}
			return path
		}
		if path == filepath.Dir(path) {
			return ""
		}
	}
}

// usable looks whether this user may read and write what is there of a state directory.
func usable(dir string) error {
	for _, name := range []string{".", "state.db", "state.db-wal", "state.db-shm", "locks", "tmp", "remote", "parts"} {
		path := filepath.Join(dir, name)
		mode := uint32(unix.R_OK | unix.W_OK)
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			mode |= unix.X_OK
		}
		if err := unix.Access(path, mode); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Fault(dir, "use the state directory", &fs.PathError{Op: "access", Path: path, Err: err})
		}
	}
	return nil
}

// denied says whose the state directory is, or what it would be made in.
func denied(dir, path string) error {
	var info fs.FileInfo
	for { // the parts of what may not be looked at are not seen
		var err error
		if info, err = os.Lstat(path); err == nil || path == filepath.Dir(path) {
			break
		}
		path = filepath.Dir(path)
	}
	f := &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the state directory %s may not be written by %s", dir,
		userName(os.Geteuid()))}
	const own = "name a directory of your own: {{set state=DIR}}"
	inside := path == dir || len(path) > len(dir) && path[:len(dir)+1] == dir+string(filepath.Separator)
	stat, ok := ownerOf(info)
	switch {
	case !ok:
		f.Hint = own
	case stat == os.Geteuid() && !inside:
		f.Message += fmt.Sprintf(": it is not there, and %s, in which it would be made, has the mode %v",
			path, info.Mode())
		f.Hint = own
	case stat == os.Geteuid():
		f.Message += fmt.Sprintf(": %s has the mode %v", path, info.Mode())
		f.Hint = fmt.Sprintf("chmod u+rwX %s, or %s", path, own)
	case inside:
		f.Message += fmt.Sprintf(": %s belongs to %s", path, userName(stat))
		f.Hint = fmt.Sprintf("%s; or work as its owner, or have it given to you: sudo chown -R %s %s", own,
			userName(os.Geteuid()), dir)
	default:
		f.Message += fmt.Sprintf(": it is not there, and %s, in which it would be made, belongs to %s",
			path, userName(stat))
		f.Hint = fmt.Sprintf("%s; or have it made for you: sudo install -d -m 700 -o %s %s", own,
			userName(os.Geteuid()), dir)
	}
	return f
}

// ownerOf is the user to whom a file belongs.
func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	if info == nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// userName is a user's name, or number if nobody knows it.
func userName(uid int) string {
	number := strconv.Itoa(uid)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}
