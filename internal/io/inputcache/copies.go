package inputcache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/remote"
	"thalweg/internal/io/unpack"
	"thalweg/internal/lang/filespec"
)

// atOnce limits the copies that are made at once.
const atOnce = 8

// Want is a file of which a copy is wanted.
type Want struct {
	URL     string           `json:"url"`               // an address, or the path of a file of this machine
	Name    string           `json:"name,omitempty"`    // of a file of this machine, for people; "": its path
	Version string           `json:"version,omitempty"` // which one the run was planned with; "": none yet
	Text    bool             `json:"text,omitempty"`    // its text in UTF-8 is wanted, not its bytes
	Charset filespec.Charset `json:"charset,omitempty"` // of the text
	Records string           `json:"records,omitempty"` // that are taken of it and written as CSV: see package records

	Table string `json:"table,omitempty"` // of a database, which the address is of
	Query string `json:"query,omitempty"` // instead of a table
	// Millis are its columns that are read as datetimes (database.Source).
	Millis []string `json:"millis,omitempty"`
	// Optional: it is copied on the occasion, and a failure is said to whoever wants it otherwise.
	Optional bool `json:"optional,omitempty"`
}

// database reports whether a table or the result of a query is wanted.
func (w Want) database() bool { return w.Table != "" || w.Query != "" }

// Key names the copy of a file among others. It says nothing of the address.
func (w Want) Key() string {
	if w.database() {
		sum := sha256.Sum256([]byte(w.URL + "\x00" + w.Table + "\x00" + w.Query + "\x00" +
			strings.Join(w.Millis, "\x00")))
		return fmt.Sprintf("%x", sum[:12])
	}
	if w.Records != "" {
		sum := sha256.Sum256([]byte(w.URL + "\x00" + string(w.Charset) + "\x00" + w.Records))
		return fmt.Sprintf("%x", sum[:12])
	}
	if !w.Text || address.Remote(w.URL) && w.Charset == filespec.UTF8 {
		return remote.Key(w.URL)
	}
	sum := sha256.Sum256([]byte(w.URL + "\x00" + string(w.Charset)))
	return fmt.Sprintf("%x", sum[:12])
}

// Copy is a copy of a file, or the file itself where nothing has to be done.
type Copy struct {
	Path    string `json:"path"`
	Version string `json:"version"` // which of the file: text that only this package understands
}

// Store keeps the copies of a run in a directory. Its methods may be called by many
// goroutines at once; of several processes only one may use a directory.
type Store struct {
	dir     string
	spool   *remote.Spool // keeps the bytes of files of other machines, in the same directory
	client  *remote.Client
	secrets remote.Secrets
	mu      sync.Mutex
	texts   map[string]*text   // by key
	servers map[string]*server // databases, by address
}

// New keeps copies in dir, which is made when it is needed.
func New(dir string, client *remote.Client, secrets remote.Secrets) *Store {
	return &Store{dir: dir, spool: client.Spool(dir, secrets), client: client, secrets: secrets,
		texts: map[string]*text{}, servers: map[string]*server{}}
}

// Look asks servers which versions they have of files, and copies none.
func (s *Store) Look(ctx context.Context, urls []string) ([]remote.Version, error) {
	return s.spool.Look(ctx, urls)
}

// List lists the files of a server that match the name of an input.
func (s *Store) List(ctx context.Context, pattern string) ([]string, error) {
	return s.client.Matching(ctx, pattern, files.MaxMatchedFilesCount)
}

// EnsureAll gives copies of files, in their order, and makes those that are not there:
// of tables of one database from one snapshot of it. If several fail, the error is that of
// the first.
func (s *Store) EnsureAll(ctx context.Context, wants []Want) ([]Copy, error) {
	copies := make([]Copy, len(wants))
	errs := make([]error, len(wants))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	tables := map[string][]int{} // by database
	for i, w := range wants {
		if w.database() {
			at, _, _ := strings.Cut(w.URL, "#")
			tables[at] = append(tables[at], i)
			continue
		}
		group.Go(func() error {
			copies[i], errs[i] = s.ensure(inner, w)
			return errs[i]
		})
	}
	for _, at := range slices.Sorted(maps.Keys(tables)) {
		group.Go(func() error { return s.tables(inner, at, wants, tables[at], copies, errs) })
	}
	first := group.Wait()
	for _, err := range errs {
		if err != nil && fault.Of(err).Kind != fault.Canceled {
			return nil, err
		}
	}
	return copies, first
}

func (s *Store) ensure(ctx context.Context, w Want) (Copy, error) {
	if !address.Remote(w.URL) {
		return s.local(ctx, w)
	}
	raw, err := s.spool.Ensure(ctx, w.URL, w.Version)
	if err != nil || !w.Text {
		return Copy(raw), err
	}
	form, err := formOf(os.Open, raw.Path, s.spool.Name(w.URL), w)
	if err != nil || !form.Changes() {
		return Copy(raw), err
	}
	path, err := s.text(ctx, w.Key(), source{path: raw.Path, name: s.spool.Name(w.URL), version: raw.Version}, form)
	return Copy{Path: path, Version: raw.Version}, err
}

// local gives the text of a file of this machine.
func (s *Store) local(ctx context.Context, w Want) (Copy, error) {
	name := cmp.Or(w.Name, w.URL)
	before, err := files.StampOf(w.URL, name)
	if err != nil {
		return Copy{}, err
	}
	version := before.Encode()
	if w.Version != "" && w.Version != version {
		planned, err := files.DecodeStamp(w.Version)
		if err == nil {
			err = planned.Changed(name, before)
		}
		return Copy{}, err
	}
	form, err := formOf(s.client.Policy().Open, w.URL, name, w)
	if err != nil || !w.Text || !form.Changes() {
		return Copy{Path: w.URL, Version: version}, err
	}
	path, err := s.text(ctx, w.Key(), source{path: w.URL, name: name, version: version, unchanged: func() error {
		after, err := files.StampOf(w.URL, name)
		if err == nil && after.Encode() != version {
			err = before.Changed(name, after)
		}
		return err
	}}, form)
	return Copy{Path: path, Version: version}, err
}

// form identifies the conversion that makes a copy of a file.
type form struct {
	unpack.Form
	Records string `json:"records,omitempty"`
}

// Changes reports whether the copy is anything else than the file.
func (f form) Changes() bool { return f != form{} }

// formOf says how the text of a file is packed, and what is made of it.
func formOf(open func(path string) (*os.File, error), path, name string, w Want) (form form, err error) {
	form.Charset, form.Records = w.Charset, w.Records
	f, err := open(path)
	if err != nil {
		return form, files.OpenFault(name, err)
	}
	defer f.Close()
	form.Compression, err = unpack.CompressionIn(f)
	if err != nil {
		return form, files.OpenFault(name, err)
	}
	return form, nil
}

// Progress returns how many copies are complete, and the bytes of all, including those that are being made.
func (s *Store) Progress(wants []Want) (done int, bytes int64) {
	size := func(path string) (int64, bool) {
		st, err := os.Stat(path)
		if err != nil {
			return 0, false
		}
		return st.Size(), true
	}
	for _, w := range wants {
		raw, haveRaw := size(filepath.Join(s.dir, w.Key()))
		text, haveText := size(s.path(w.Key()))
		rawPart, _ := size(filepath.Join(s.dir, w.Key()+".part"))
		textPart, making := size(s.path(w.Key()) + ".part")
		bytes += raw + text + rawPart + textPart
		if haveText || haveRaw && !making && w.Charset == filespec.UTF8 && w.Records == "" {
			done++
		}
	}
	return done, bytes
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+".text") }
