package inputcache

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"thalweg/internal/base/durable"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/database"
	"thalweg/internal/io/remote"
)

// server is a database of which tables are copied. Who holds busy may use the rest.
type server struct {
	busy   chan struct{}
	copies map[string]Copy // that this process has seen to, by key
}

// rowsNote stands beside the complete copy of a table.
type rowsNote struct {
	Version remote.Version `json:"version"`
	Rows    int64          `json:"rows"`
}

// tables makes those copies of what is read of a database that are not there, from one
// snapshot, one behind the other.
func (s *Store) tables(ctx context.Context, at string, wants []Want, which []int, out []Copy, errs []error) error {
	s.mu.Lock()
	db := s.servers[at]
	if db == nil {
		db = &server{busy: make(chan struct{}, 1), copies: map[string]Copy{}}
		s.servers[at] = db
	}
	s.mu.Unlock()
	select {
	case db.busy <- struct{}{}:
		defer func() { <-db.busy }()
	case <-ctx.Done():
		return canceled(ctx)
	}
	var snapshot database.Snapshot
	defer func() {
		if snapshot != nil {
			snapshot.Close()
		}
	}()
	for _, i := range which {
		w := wants[i]
		c, ok := db.copies[w.Key()]
		if !ok {
			c, ok = s.rowsThere(w)
		}
		if !ok {
			if snapshot == nil {
				if snapshot, errs[i] = s.databases().Snapshot(ctx, s.revealed(at)); errs[i] != nil {
					return errs[i]
				}
			}
			if c, errs[i] = s.rows(ctx, snapshot, w); w.Optional && errs[i] != nil && ctx.Err() == nil {
				errs[i] = nil
				return nil // the snapshot ends with its first failure
			}
			if errs[i] != nil {
				return errs[i]
			}
		}
		db.copies[w.Key()] = c
		if w.Version != "" && w.Version != c.Version {
			errs[i] = &fault.Error{Kind: fault.UserData, Place: fault.Place{File: s.spool.Name(w.URL)},
				Message: "the rows have changed since the run read them, and the copy of them is gone",
				Hint:    "start a new run"}
			return errs[i]
		}
		out[i] = c
	}
	return nil
}

// databases opens sessions with what the store knows.
func (s *Store) databases() database.Client {
	c := database.Client{Roots: s.client.Roots, Policy: s.client.Policy()}
	if s.secrets != nil {
		c.Hide = s.secrets.Hide
	}
	return c
}

func (s *Store) revealed(at string) string {
	if s.secrets == nil {
		return at
	}
	return s.secrets.Reveal(at)
}

// rowsThere gives the copy that an earlier process has left.
func (s *Store) rowsThere(w Want) (Copy, bool) {
	path := s.path(w.Key())
	data, err := os.ReadFile(path + ".json")
	var n rowsNote
	if err != nil || json.Unmarshal(data, &n) != nil {
		return Copy{}, false
	}
	st, err := os.Stat(path)
	return Copy{Path: path, Version: n.Version.Encode()}, err == nil && st.Size() == n.Version.Bytes &&
		n.Version.Sum != ""
}

// rows makes a copy: under a temporary name first, then whole, and its note after that.
func (s *Store) rows(ctx context.Context, from database.Snapshot, w Want) (c Copy, err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return c, diskFault("make the directory for copies of tables", err)
	}
	path := s.path(w.Key())
	if err := os.Remove(path + ".json"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return c, diskFault("replace the copy of a table", err)
	}
	temp := path + ".part"
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return c, diskFault("make the copy of a table", err)
	}
	to, forget := s.spool.Counted(f)
	defer func() {
		if err != nil {
			forget()
			_ = os.Remove(temp) // what stays is overwritten by the next try and goes with the run
		}
	}()
	sum := sha256.New()
	var n rowsNote
	size := &countingWriter{to: io.MultiWriter(to, sum)}
	n.Rows, err = from.Copy(ctx, database.Source{URL: s.revealed(w.URL), Table: w.Table, Query: w.Query,
		Millis: w.Millis},
		size)
	if size.err != nil { // of the disk, or of its limit: whoever copied says only that it could not write
		err = size.err
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return c, err
	}
	n.Version = remote.Version{Bytes: size.bytes, Sum: fmt.Sprintf("sha256:%x", sum.Sum(nil))}
	if err := os.Rename(temp, path); err != nil {
		return c, diskFault("keep the copy of a table", err)
	}
	data, err := json.Marshal(n)
	if err == nil {
		err = durable.FS{}.WriteFile(path+".json", data, 0o600)
	}
	if err != nil {
		return c, diskFault("keep the copy of a table", err)
	}
	return Copy{Path: path, Version: n.Version.Encode()}, nil
}

// countingWriter remembers how much went through, and why no more did.
type countingWriter struct {
	to    io.Writer
	bytes int64
	err   error
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.bytes += int64(n)
	if err != nil {
		w.err = err
	}
	return n, err
}
