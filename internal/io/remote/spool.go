package remote

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
)

// Copy is a local copy of a remote file.
type Copy struct {
	Path    string
	Version string // which of the file: Version.Encode
}

// Spool keeps copies of remote files in a directory: one of each, of one
// version, for as long as the directory lives. Its methods may be called by
// many goroutines at once; of several processes only one may use a directory.
type Spool struct {
	c       *Client
	dir     string
	secrets Secrets
	mu      sync.Mutex
	bytes   int64 // of the copies that are there or on their way
	files   map[string]*spooled
}

// spooled is one file's copy. Who holds busy may use the rest.
type spooled struct {
	busy chan struct{}
	copy *Copy // nil: not looked at yet by this process
}

// Spool keeps copies in dir, which is made when it is needed. secrets are those
// of the addresses; nil: none.
func (c *Client) Spool(dir string, secrets Secrets) *Spool {
	return &Spool{c: c, dir: dir, secrets: secrets, files: map[string]*spooled{}}
}

// spoolNote stands beside a complete copy.
type spoolNote struct {
	URL     string  `json:"url"` // without secrets, for people
	Bytes   int64   `json:"bytes"`
	Version Version `json:"version"`
}

// Look asks the servers which versions they have of files, and copies none.
func (s *Spool) Look(ctx context.Context, urls []string) ([]Version, error) {
	out := make([]Version, len(urls))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transfersMax)
	for i, url := range urls {
		group.Go(func() error {
			loc, err := locate(url, s.secrets)
			if err != nil {
				return err
			}
			out[i], err = s.c.stat(ctx, loc)
			return placed(err, loc)
		})
	}
	return out, group.Wait()
}

// Key names the copy of a file. It says nothing of the address.
func Key(url string) string {
	sum := sha256.Sum256([]byte(url))
	return fmt.Sprintf("%x", sum[:12])
}

// Ensure gives the copy of a file, and makes it if it is not there. planned is
// the version that the caller counts on, "" if it has seen none yet. A copy
// that another process made is used if the server still has that version; a
// file that changed since is an error: the copies of a run are of one version.
func (s *Spool) Ensure(ctx context.Context, url, planned string) (Copy, error) {
	loc, err := locate(url, s.secrets)
	if err != nil {
		return Copy{}, err
	}
	f := s.file(url)
	select {
	case f.busy <- struct{}{}:
		defer func() { <-f.busy }()
	case <-ctx.Done():
		return Copy{}, canceled(ctx)
	}
	if f.copy == nil {
		c, err := s.make(ctx, loc, Key(url), planned)
		if err != nil {
			return Copy{}, placed(err, loc)
		}
		f.copy = &c
	}
	if planned != "" && planned != f.copy.Version {
		want, err := decodeVersion(planned)
		if err != nil {
			return Copy{}, err
		}
		have, err := decodeVersion(f.copy.Version)
		if err != nil {
			return Copy{}, err
		}
		if !have.same(want) {
			return Copy{}, changed(loc, want, have)
		}
	}
	return *f.copy, nil
}

func (s *Spool) file(url string) *spooled {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[url]
	if f == nil {
		f = &spooled{busy: make(chan struct{}, 1)}
		s.files[url] = f
	}
	return f
}

// make takes the copy that is there, or makes one, of the version that the
// plan, or an older copy, says.
func (s *Spool) make(ctx context.Context, loc address.Location, key, planned string) (Copy, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Copy{}, localFault("make the directory for copies of remote files", err)
	}
	path := filepath.Join(s.dir, key)
	want, err := s.wanted(path, planned)
	if err != nil {
		return Copy{}, err
	}
	if st, err := os.Stat(path); err == nil && want != nil && want.dated() && st.Size() == want.copied {
		now, err := s.c.stat(ctx, loc)
		if err != nil {
			return Copy{}, err
		}
		switch {
		case now.same(want.Version):
			s.count(st.Size())
			return Copy{Path: path, Version: want.Encode()}, nil
		case planned != "":
			return Copy{}, changed(loc, want.Version, now)
		}
	}
	if planned == "" {
		want = nil // a copy that nothing was planned with: what is there now counts
	}
	v, err := s.fetch(ctx, loc, path, want)
	if err != nil {
		return Copy{}, err
	}
	return Copy{Path: path, Version: v.Encode()}, nil
}

// wantedVersion is a version that a copy must have.
type wantedVersion struct {
	Version
	copied int64 // size of a copy that is there, -1 if there is none
}

// wanted reads what is known of the version; nil if nothing is.
func (s *Spool) wanted(path, planned string) (*wantedVersion, error) {
	data, err := readLimited(path+".json", noteBytesMax)
	var note spoolNote
	if err == nil && json.Unmarshal(data, &note) == nil {
		return &wantedVersion{Version: note.Version, copied: note.Bytes}, nil
	}
	if planned == "" {
		return nil, nil
	}
	v, err := decodeVersion(planned)
	return &wantedVersion{Version: v, copied: -1}, err
}

// fetch makes the copy: under a temporary name first, then whole.
func (s *Spool) fetch(ctx context.Context, loc address.Location, path string, want *wantedVersion) (v Version,
	err error) {
	temp := path + ".part"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return v, localFault("make a copy of a remote file", err)
	}
	to := &spoolTarget{s: s, f: f}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			s.count(-to.bytes)
			_ = os.Remove(temp) // what stays is overwritten by the next try and goes with the run
		}
	}()
	v, err = s.c.download(ctx, loc, to, func(v Version) error {
		if want != nil && want.dated() && v.dated() && !v.same(want.Version) {
			return changed(loc, want.Version, v)
		}
		return s.room(v.Bytes)
	})
	if err != nil {
		return v, err
	}
	if !v.dated() {
		if v.Sum, err = sumOf(f); err != nil {
			return v, localFault("read the copy of a remote file", err)
		}
	}
	if want != nil && !v.same(want.Version) {
		return v, changed(loc, want.Version, v)
	}
	return v, s.keep(loc, f, path, to.bytes, v)
}

// keep gives a complete copy its name, and its note after that.
func (s *Spool) keep(loc address.Location, f *os.File, path string, bytes int64, v Version) error {
	err := f.Sync()
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	var note []byte
	if err == nil {
		note, err = json.Marshal(spoolNote{URL: loc.String(), Bytes: bytes, Version: v})
	}
	if err == nil {
		err = writeWhole(path+".json", note)
	}
	if err != nil {
		return localFault("keep the copy of a remote file", err)
	}
	return nil
}

// count adds to the bytes of all copies and gives their sum.
func (s *Spool) count(bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += bytes
	return s.bytes
}

// Name is an address without its secrets.
func (s *Spool) Name(url string) string {
	loc, err := locate(url, s.secrets)
	if err != nil {
		return address.Redact(url)
	}
	return loc.String()
}

// Counted writes to a file beside the copies, within their limit. forget says that the file
// is gone again.
func (s *Spool) Counted(f *os.File) (to io.Writer, forget func()) {
	t := &spoolTarget{s: s, f: f}
	return t, func() { s.count(-t.bytes) }
}

// limit is the most that all copies may have.
func (s *Spool) limit() int64 {
	if s.c == nil {
		return SpoolBytesDefault
	}
	return s.c.cfg.SpoolBytes
}

// room refuses a file that would not fit.
func (s *Spool) room(bytes int64) error {
	if bytes < 0 {
		return nil // told while it is written
	}
	if s.count(0)+bytes > s.limit() {
		return s.tooMuch()
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.dir, &st); err != nil {
		return nil // the disk will tell
	}
	if free := int64(st.Bavail) * int64(st.Bsize); free < bytes+freeDiskBytesMin {
		return &fault.Error{Kind: fault.Environment,
			Message: fmt.Sprintf("the file has %d MiB, but only %d MiB are free in %s", bytes>>20, free>>20, s.dir),
			Hint: "remote inputs are copied to the state directory: free space, or choose another one with " +
				"{{set state}}"}
	}
	return nil
}

func (s *Spool) tooMuch() error {
	return &fault.Error{Kind: fault.Environment,
		Message: fmt.Sprintf("the copies of the run's inputs would have more than %d MiB", s.limit()>>20),
		Hint:    "raise the limit with {{set spool-limit}} (THALWEG_SPOOL_LIMIT)"}
}

// spoolTarget is a copy that is being written.
type spoolTarget struct {
	s     *Spool
	f     *os.File
	bytes int64
}

func (t *spoolTarget) Write(p []byte) (int, error) {
	if t.s.count(int64(len(p))) > t.s.limit() {
		t.s.count(-int64(len(p)))
		return 0, t.s.tooMuch()
	}
	n, err := t.f.Write(p)
	t.s.count(int64(n - len(p)))
	t.bytes += int64(n)
	if err != nil {
		return n, localFault("copy a remote file", err)
	}
	return n, nil
}

func (t *spoolTarget) reset() error {
	t.s.count(-t.bytes)
	t.bytes = 0
	err := t.f.Truncate(0)
	if err == nil {
		_, err = t.f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return localFault("copy a remote file", err)
	}
	return nil
}

func sumOf(f *os.File) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", h.Sum(nil)), nil
}

// changed is the fault of an input that is not what the run has read of it.
func changed(loc address.Location, was, now Version) error {
	f := fault.New(fault.UserData, "the input file changed after the run read it (%s; now %s)", was, now)
	f.Hint = "start a new run"
	return placed(f, loc)
}

// OneVersion refuses two encoded versions of a file that are not of the same content.
func OneVersion(url, was, now string) error {
	loc, err := address.Parse(url)
	if err != nil {
		return err
	}
	before, err := decodeVersion(was)
	if err != nil {
		return err
	}
	after, err := decodeVersion(now)
	if err != nil || after.same(before) {
		return err
	}
	return changed(loc, before, after)
}

// noteBytesMax is more than a note of a copy ever has.
const noteBytesMax = 64 << 10

// writeWhole writes a small file so that it is there whole or not at all.
func writeWhole(path string, data []byte) (err error) {
	temp := path + ".new"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
