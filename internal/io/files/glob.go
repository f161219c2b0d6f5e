package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
)

// MaxMatchedFilesCount bounds the files that the names of one reader stand for.
const MaxMatchedFilesCount = 100_000

// isPattern reports whether a name may stand for several files: it contains * (any
// characters but /), ? (one of them) or ** (as a part: directories, any number of them). Web servers do not list
// theirs, and databases have none.
func isPattern(u string) bool {
	return strings.ContainsAny(u, "*?") && (!address.Remote(u) || RemotePattern(u))
}

// RemotePattern reports whether a name may stand for several files of a server.
func RemotePattern(u string) bool {
	s := address.Scheme(u)
	return (s == "s3" || s == "sftp") && strings.ContainsAny(u, "*?")
}

// Expand replaces names with * or ? by the local files that match, in the
// order of their bytes. A file whose name is exactly that counts as itself.
// Names that begin with a dot match only a pattern that does. A pattern
// without a match is a fault.UserData. Relative names are seen from at.Dir, and
// stay relative. What matches on servers has been listed before: at.Listed. A directory that at.Policy does not let be
// read is not listed.
func Expand(ctx context.Context, at Places, urls []script.FileURL) ([]script.FileURL, error) {
	if !slices.ContainsFunc(urls, func(u script.FileURL) bool { return isPattern(u.URL) }) {
		return urls, nil
	}
	var out []script.FileURL
	for _, u := range urls {
		names := []string{u.URL}
		var err error
		switch {
		case RemotePattern(u.URL):
			names, err = at.listed(u)
		case isPattern(u.URL):
			names, err = matches(ctx, at, u)
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, script.FileURL{URL: name, Pos: u.Pos}) // readers know the patterns
		}
		if len(out) > MaxMatchedFilesCount {
			return nil, placed(u, tooMany(u.URL+": more than", "files match"))
		}
	}
	return out, nil
}

// tooMany is the fault of a pattern of which more is found than MaxMatchedFilesCount.
func tooMany(before, behind string) *fault.Error {
	f := fault.New(fault.UserData, "%s %d %s", before, MaxMatchedFilesCount, behind)
	f.Hint = "make the pattern narrower, and read the files in several nodes"
	return f
}

// listed gives what was found for a pattern on a server.
func (at Places) listed(u script.FileURL) ([]string, error) {
	names, ok := at.Listed[u.URL]
	switch {
	case !ok:
		return nil, placed(u, fault.New(fault.Environment,
			"%s is on another machine: its files are listed when a run begins", address.Redact(u.URL)))
	case len(names) == 0:
		return nil, noMatch(u)
	}
	return names, nil
}

func noMatch(u script.FileURL) error {
	err := fault.New(fault.UserData, "no file matches %s", address.Redact(u.URL))
	err.Hint = "* stands for any characters but /, ? for one, **/ for any directories; check the directory the " +
		"command runs in"
	if address.Remote(u.URL) {
		err.Hint = "* stands for any characters but /, ? for one, **/ for any directories, and none of them for a " +
			"dot at the beginning of a name"
	}
	return placed(u, err)
}

// matches lists the files that a pattern stands for.
func matches(ctx context.Context, at Places, u script.FileURL) ([]string, error) {
	pattern, err := address.Local(u.URL)
	if err != nil {
		return nil, placed(u, fault.Of(err))
	}
	if _, err := os.Lstat(address.Seen(at.Dir, pattern)); err == nil {
		return []string{u.URL}, nil
	}
	parts := strings.Split(filepath.ToSlash(pattern), "/")
	found := []string{""}
	if parts[0] == "" {
		parts, found = parts[1:], []string{"/"}
	}
	parts = address.EachLevel(parts)
	for i, part := range parts {
		if part == "" {
			continue
		}
		if part == address.AnyLevels {
			if found, err = descend(ctx, at, found); err != nil {
				return nil, placed(u, fault.Of(err))
			}
			continue
		}
		var next []string
		for _, dir := range found {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			names, err := matchIn(at, dir, part, i == len(parts)-1)
			if fault.CodeOf(err) == fault.Forbidden {
				return nil, placed(u, fault.Of(err))
			}
			if err != nil {
				return nil, placed(u, &fault.Error{Kind: fault.Environment,
					Message: fmt.Sprintf("cannot look for files that match %s", u.URL), Err: err})
			}
			next = append(next, names...)
			if len(next) > MaxMatchedFilesCount {
				return nil, placed(u, tooMany(u.URL+": more than", "files match"))
			}
		}
		found = next
	}
	if len(found) == 0 {
		return nil, noMatch(u)
	}
	slices.Sort(found)
	return slices.Compact(found), nil // by two ** a file may be found twice
}

// descend lists directories, and all that are below them. Those that begin with a dot are left out,
// and links to directories are not followed: they may lead back.
func descend(ctx context.Context, at Places, dirs []string) (out []string, err error) {
	seen := map[string]bool{}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		if dirs = dirs[:len(dirs)-1]; seen[dir] {
			continue
		}
		seen[dir] = true
		if out = append(out, dir); len(out) > MaxMatchedFilesCount {
			return nil, tooMany("more than", "directories would be looked through for **")
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		entries, err := at.list(dir)
		if err != nil && !notThere(err) {
			if fault.CodeOf(err) == fault.Forbidden {
				return nil, err
			}
			return nil, &fault.Error{Kind: fault.Environment, Message: "look through the directories for **", Err: err,
				Hint: "check the permissions of the directory, or write a narrower pattern"}
		}
		for _, e := range entries {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				dirs = append(dirs, dir+e.Name()+"/")
			}
		}
	}
	return out, nil
}

// matchIn lists what is in dir, seen from base, under names that match one part of a pattern.
// Behind the last part these are files, before it directories.
func matchIn(at Places, dir, part string, last bool) ([]string, error) {
	if !strings.ContainsAny(part, "*?") {
		name := dir + part
		if !last {
			return []string{name + "/"}, nil
		}
		if _, err := os.Stat(address.Seen(at.Dir, name)); notThere(err) {
			return nil, nil
		}
		return []string{name}, nil
	}
	entries, err := at.list(dir)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plain := strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(part)
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".") {
			continue
		}
		if ok, _ := path.Match(plain, e.Name()); !ok { // it is well-formed: only * and ? mean something
			continue
		}
		name := dir + e.Name()
		st, err := os.Stat(address.Seen(at.Dir, name))
		switch {
		case err != nil && !notThere(err):
			return nil, err
		case err != nil: // a link to nothing, or just removed
		case last && !st.IsDir():
			out = append(out, name)
		case !last && st.IsDir():
			out = append(out, name+"/")
		}
	}
	return out, nil
}

// list lists a directory.
func (at Places) list(dir string) ([]fs.DirEntry, error) {
	path := address.Seen(at.Dir, cmp.Or(dir, "."))
	if err := at.Policy.MayRead(path); err != nil {
		return nil, err
	}
	return os.ReadDir(path)
}

// notThere reports that a path leads nowhere, or through a file.
func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// placed puts a failure where the script names the file.
func placed(u script.FileURL, f *fault.Error) *fault.Error {
	f.Place = scriptPlace(u.Pos)
	return f
}
