package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Limits of listings.
const (
	listedEntriesMax = 1_000_000 // that are looked at for one pattern
	listedDirsMax    = 10_000    // of them
	listedBytesMax   = 512 << 20 // of what a server says about one directory
	listingsMax      = 8         // at once, of one Client
)

// File is one that was listed.
type File struct {
	URL     string // by which it can be read
	Path    string // at its server; of s3 its key
	Version Version
}

// List lists the files that match a pattern, of s3 or sftp, in the order of
// their paths. Its parts are matched one by one, as those of files of this
// machine are: * stands for no /, and for no dot at the beginning of a name, ** for any number
// of directories that are neither hidden nor links. More
// than most files are an error. The versions are those that listings tell, and are
// to be compared with each other only.
func (c *Client) List(ctx context.Context, pattern string, most int) ([]File, error) {
	p, err := address.ParsePattern(pattern)
	if err != nil {
		return nil, err
	}
	select { // listings wait for each other only: copying files would keep them waiting for hours
	case c.listings <- struct{}{}:
		defer func() { <-c.listings }()
	case <-ctx.Done():
		return nil, canceled(ctx)
	}
	b, err := c.backend(ctx, p.Location)
	if err != nil {
		return nil, placed(err, p.Location)
	}
	l := &lister{c: c, b: b, pattern: p, most: most, left: listedEntriesMax, known: map[string][]entry{}}
	if err := l.walk(ctx); err != nil {
		return nil, placed(err, p.Location)
	}
	slices.SortFunc(l.out, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	// by two ** a file may be found twice
	return slices.CompactFunc(l.out, func(a, b File) bool { return a.Path == b.Path }), nil
}

// Matching lists the addresses of the files that match the name of an input, in which * and
// ? mean something and nothing else does.
func (c *Client) Matching(ctx context.Context, name string, most int) ([]string, error) {
	found, err := c.List(ctx, asGlob(name), most)
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.URL
	}
	return out, err
}

// asGlob lets only * and ? of a name mean something.
func asGlob(name string) string { return strings.NewReplacer(`\`, `\\`, "[", `\[`).Replace(name) }

// entry describes an entry of a server's directory.
type entry struct {
	name    string
	dir     bool
	link    bool // to what it is
	version Version
}

// lister lists the files of one pattern.
type lister struct {
	c       *Client
	b       backend
	pattern address.Pattern
	most    int
	left    int // entries that may be looked at yet
	watch   *watchdog
	out     []File
	known   map[string][]entry // of directories that are looked through
}

// walk goes through the pattern part by part.
func (l *lister) walk(ctx context.Context) error {
	parts := address.EachLevel(strings.Split(l.pattern.Glob, "/"))
	dirs, wild := []string{""}, false
	for i, part := range parts {
		if part == address.AnyLevels {
			var err error
			if dirs, err = l.descend(ctx, dirs, wild); err != nil {
				return err
			}
			wild = true
			continue
		}
		begin, all := literal(part)
		if last := i == len(parts)-1; !last && all {
			for at := range dirs {
				dirs[at] += begin + "/"
			}
			continue
		}
		var next []string
		for _, dir := range dirs {
			entries, err := l.list(ctx, dir, begin)
			if errors.Is(err, fs.ErrNotExist) && wild {
				continue // it is gone again
			}
			if err != nil {
				return err
			}
			if next, err = l.choose(next, dir, part, i == len(parts)-1, entries); err != nil {
				return err
			}
		}
		dirs, wild = next, true
	}
	return nil
}

// descend gives directories, and all that are below them, but for hidden ones and links, which may
// lead back. What was listed is not listed again.
func (l *lister) descend(ctx context.Context, dirs []string, wild bool) (out []string, err error) {
	seen := map[string]bool{}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		if dirs = dirs[:len(dirs)-1]; seen[dir] {
			continue
		}
		seen[dir] = true
		entries, err := l.list(ctx, dir, "")
		if errors.Is(err, fs.ErrNotExist) && (wild || len(out) > 0) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, dir); len(out) > listedDirsMax {
			return nil, tooMany("more than %d directories match", listedDirsMax)
		}
		l.known[dir] = entries
		for _, e := range entries {
			if e.dir && !e.link && !strings.HasPrefix(e.name, ".") {
				dirs = append(dirs, dir+e.name+"/")
			}
		}
	}
	return out, nil
}

// choose takes what matches a part: files behind the last one, else directories.
func (l *lister) choose(dirs []string, dir, part string, last bool, entries []entry) ([]string, error) {
	for _, e := range entries {
		ok, err := path.Match(part, e.name)
		switch {
		case err != nil:
			return nil, &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("the pattern %q cannot be read", part),
				Hint: "look for a [ without its ]; a [ of the name itself is written as [[]"}
		case !ok || e.dir == last || strings.HasPrefix(e.name, ".") && !strings.HasPrefix(part, "."):
		case !last:
			if dirs = append(dirs, dir+e.name+"/"); len(dirs) > listedDirsMax {
				return nil, tooMany("more than %d directories match", listedDirsMax)
			}
		default:
			if len(l.out) == l.most {
				return nil, tooMany("more than %d files match", l.most)
			}
			l.out = append(l.out, File{URL: l.pattern.Address(dir + e.name), Path: dir + e.name, Version: e.version})
		}
	}
	return dirs, nil
}

func tooMany(format string, args ...any) error {
	return &fault.Error{Kind: fault.UserData, Message: fmt.Sprintf(format, args...),
		Hint: "write a narrower pattern, or move away what was processed"}
}

// list lists a directory: at least what begins with a text.
func (l *lister) list(ctx context.Context, dir, begin string) (entries []entry, err error) {
	if entries, ok := l.known[dir]; ok {
		return entries, nil
	}
	left := l.left
	err = l.c.retry(ctx, l.pattern.Location, func(ctx context.Context) (bool, error) {
		ctx, l.watch = l.c.watch(ctx)
		defer l.watch.stop()
		l.left = left
		var err error
		entries, err = l.b.list(ctx, l.pattern.Location, dir, begin, l)
		return false, l.watch.explain(err)
	})
	return entries, err
}

// came takes note of so many entries that have come.
func (l *lister) came(entries int) error {
	l.watch.feed()
	if l.left -= entries; l.left < 0 {
		return tooMany("more than %d files and directories had to be looked at", listedEntriesMax)
	}
	return nil
}

// literal is the beginning of a part that stands for itself; all: it is all of it.
func literal(part string) (begin string, all bool) {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '*', '?', '[':
			return b.String(), false
		case '\\':
			if i++; i == len(part) {
				return b.String(), false
			}
		}
		b.WriteByte(part[i])
	}
	return b.String(), true
}
