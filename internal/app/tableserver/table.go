package tableserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"thalweg/internal/base/action"
	"thalweg/internal/base/fault"
	"thalweg/internal/base/format"
	"thalweg/internal/io/resp"
	"thalweg/internal/io/tableindex"
)

// held is a table that is served, or that somebody still reads.
type held struct {
	server  *Server
	table   *tableindex.Table
	data    *resp.Dataset
	without *resp.Dataset // what is answered once a cold file is not as it was opened
	spoiled atomic.Bool
	readers atomic.Int64 // and the server itself; 0: it is released
	failed  error        // of its release
}

// acquire returns the table that is served; nil: none is any more.
func (s *Server) acquire() *held {
	for {
		t := s.current.Load()
		if t == nil {
			return nil
		}
		for n := t.readers.Load(); n > 0; n = t.readers.Load() {
			if t.readers.CompareAndSwap(n, n+1) {
				return t
			}
		}
	}
}

// release ends a use of it. Nobody who answers waits for the memory to be given back.
func (t *held) release() {
	if t.readers.Add(-1) > 0 {
		return
	}
	t.server.releases.Go(func() {
		t.failed = t.table.Close()
		t.server.resident.Add(-t.table.Size())
		if t.failed != nil {
			t.server.options.Log.Error("a table is not released", "error", t.failed)
		}
	})
}

func (t *held) dataset() *resp.Dataset {
	if t.spoiled.Load() {
		return t.without
	}
	return t.data
}

// look sees whether somebody has written into the file that rows are read from: then nothing is answered from it.
func (t *held) look() {
	if t.server.options.Cold && !t.spoiled.Load() && t.table.Changed() && !t.spoiled.Swap(true) {
		t.server.options.Log.Error("somebody has written into the file of the table: nothing is answered from it, " +
			"until another is put in its place by its name")
	}
}

// unreadable is a table whose file was written to.
type unreadable struct{ rows int64 }

func (u unreadable) Rows() int64 { return u.rows }

func (unreadable) Place([]byte) uint64 { return 0 }
func (unreadable) Touch([]uint64) byte { return 0 }

func (unreadable) Lookup(_, buffer []byte) (frames, used []byte, found bool, err error) {
	return nil, buffer, false, errors.New("its file was written to while it was served")
}

// Switched is a table that is served from now on.
type Switched struct {
	Meta  tableindex.Meta
	Rows  int64
	Bytes int64
	Took  time.Duration
}

// Switch serves another file from now on: the next command is answered from it. If it
// is refused, the one before stays.
func (s *Server) Switch(ctx context.Context, path string) (Switched, error) {
	s.switches.Lock()
	defer s.switches.Unlock()
	began := time.Now()
	s.awaitReleases(ctx)
	table, err := s.open(ctx, path)
	if err != nil {
		s.refused.Add(1)
		return Switched{}, err
	}
	s.resident.Add(table.Size())
	next := &held{server: s, table: table, data: resp.NewDataset(table, table.Meta.Columns, table.Meta.Source),
		without: resp.NewDataset(unreadable{table.Rows()}, table.Meta.Columns, table.Meta.Source)}
	next.readers.Store(1)
	if before := s.current.Swap(next); before != nil {
		before.release()
	}
	s.switched.Add(1)
	return next.switched(time.Since(began)), nil
}

// releasePatience is for the tables before to give their memory back: who answers from them is done in moments.
const releasePatience = 10 * time.Second

// awaitReleases waits until only the table that is served is in memory: what fits beside it is not to be refused
// because of one that is just being released.
func (s *Server) awaitReleases(ctx context.Context) {
	served := int64(0)
	if t := s.current.Load(); t != nil {
		served = t.table.Size()
	}
	ctx, stop := context.WithTimeout(ctx, releasePatience)
	defer stop()
	tick := time.NewTicker(closePause)
	defer tick.Stop()
	for s.resident.Load() > served {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *held) switched(took time.Duration) Switched {
	return Switched{Meta: t.table.Meta, Rows: t.table.Rows(), Bytes: t.table.Size(), Took: took}
}

// Serving returns what is served. It was opened within took.
func (s *Server) Serving(took time.Duration) Switched {
	t := s.acquire()
	if t == nil {
		return Switched{}
	}
	defer t.release()
	return t.switched(took)
}

// open opens a file, unless it is too large. While another is served, that has the processors.
func (s *Server) open(ctx context.Context, path string) (*tableindex.Table, error) {
	size, err := tableindex.SizeOf(path)
	if err == nil {
		err = s.fits(path, size)
	}
	if err != nil {
		return nil, refusal(err)
	}
	table, err := tableindex.OpenWith(ctx, path, tableindex.Options{Cold: s.options.Cold,
		Gently: s.current.Load() != nil})
	if err != nil {
		return nil, refusal(err)
	}
	if err := s.fits(path, table.Size()); err != nil { // the name may lead to another file now
		return nil, errors.Join(err, table.Close())
	}
	return table, nil
}

// refusal says whose affair it is that a file is not served.
func refusal(err error) error {
	var classified *fault.Error
	if errors.As(err, &classified) || errors.Is(err, context.Canceled) {
		return err
	}
	var system *os.PathError
	kind := fault.UserData
	if errors.As(err, &system) && !errors.Is(err, os.ErrNotExist) {
		kind = fault.Environment
	}
	return &fault.Error{Kind: kind, Message: "the file is not served", Err: err}
}

// fits refuses a file that has no room beside those in memory.
func (s *Server) fits(path string, size int64) error {
	others := s.resident.Load()
	if s.options.Cold || size+others <= s.options.MemoryBytes {
		return nil
	}
	large := fault.New(fault.Environment, "the index %s has %s, and it may take %s of memory", path,
		format.Size(size), format.Size(max(0, s.options.MemoryBytes-others)))
	large.Hint = fmt.Sprintf("give it more with %s, or serve it from the disk with %s", action.Setting("memory", ""),
		action.Setting("cold", ""))
	if others > 0 {
		large.Message += fmt.Sprintf(": %s are served until then", format.Size(others))
		large.Hint += "; or begin anew with it"
	}
	return large
}

// Follow switches to what the name of the file leads to, whenever that is another file,
// and each time that it is asked to, until the context ends. told hears of each.
func (s *Server) Follow(ctx context.Context, path string, ask <-chan struct{}, told func(Switched, error)) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	f := &followed{server: s, path: path}
	for {
		asked := false
		select {
		case <-ctx.Done():
			return
		case <-ask:
			asked = true
		case <-tick.C:
		}
		if !f.leads(asked) {
			continue
		}
		switched, err := s.Switch(ctx, path)
		if ctx.Err() != nil {
			return
		}
		told(switched, err)
	}
}

// followed is the name of a file that is looked at.
type followed struct {
	server *Server
	path   string
	seen   tableindex.Stamp // at the last look
	tried  tableindex.Stamp
}

// settled is how long a file has not been written to before it is opened.
const settled = time.Second

// leads reports whether the name leads to a file that is to be opened.
func (f *followed) leads(asked bool) bool {
	t := f.server.acquire()
	if t == nil {
		return false
	}
	defer t.release()
	t.look()
	now, err := tableindex.StampOf(f.path)
	if err != nil {
		return asked // it is told why
	}
	before := f.seen
	f.seen = now
	switch {
	case asked:
	case now == t.table.Stamp():
		f.tried = tableindex.Stamp{}
		return false
	case now == f.tried:
		return false
	case now != before && time.Since(now.Written) < settled:
		return false // somebody may still be writing it
	}
	f.tried = now
	return true
}
