package tableserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
	"thalweg/internal/io/resp"
	"thalweg/internal/io/tableindex"
)

// Options say how a table is served.
type Options struct {
	Address string      // host:port of plain connections; "": none
	TLS     *tls.Config // nil: no TLS
	// TLSAddress is host:port of connections with TLS; "": none.
	TLSAddress string
	// Check reports whether a user's password is right; nil: none is asked for.
	Check func(user, password []byte) bool
	// MemoryBytes is what a mapped table may have; Cold serves larger ones, from the disk.
	MemoryBytes int64
	Cold        bool
	MaxClients  int // at once
	Log         *slog.Logger
}

// The limits of connections.
const (
	MaxPendingBytes  = 256 << 20        // of all connections: commands that have not come whole
	maxUnsentBytes   = 96 << 20         // of one connection: answers that it has not fetched
	strangerPatience = 10 * time.Second // until a password is given
	writePatience    = 30 * time.Second // until a client with TLS has fetched an answer
)

// Server serves one table at a time.
type Server struct {
	options Options
	pending atomic.Int64 // bytes
	clients atomic.Int64
	lastID  atomic.Int64
	bound   chan struct{} // closed once its addresses are known
	addr    [2]net.Addr   // plain, TLS

	mu      sync.RWMutex // held for reading while commands are carried out
	table   *tableindex.Table
	data    *resp.Dataset
	swapped atomic.Int64
}

// New returns a server of a file. The caller closes it when Serve has returned.
func New(ctx context.Context, path string, o Options) (*Server, error) {
	s := &Server{options: o, bound: make(chan struct{})}
	return s, s.Switch(ctx, path)
}

// Switch serves another file from now on: the next command is answered from it. If it
// is refused, the one before stays.
func (s *Server) Switch(ctx context.Context, path string) error {
	size, err := tableindex.SizeOf(path)
	if err != nil {
		return err
	}
	open := tableindex.Open
	switch {
	case s.options.Cold:
		open = tableindex.OpenCold
	case size > s.options.MemoryBytes:
		large := fault.New(fault.Environment, "the index %s has %d MB, and --memory is %d MB", path, size>>20,
			s.options.MemoryBytes>>20)
		large.Hint = "give it more with --memory, or serve it from the disk with --cold"
		return large
	}
	table, err := open(ctx, path)
	if err != nil {
		return err
	}
	data := resp.NewDataset(table, table.Meta.Columns, table.Meta.Source)
	s.mu.Lock()
	before := s.table
	s.table, s.data = table, data
	s.mu.Unlock()
	s.swapped.Add(1)
	if before == nil {
		return nil
	}
	return before.Close() // nobody reads it any more: readers hold mu
}

// Meta is what the table says of itself.
func (s *Server) Meta() (meta tableindex.Meta, rows, bytes int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.table.Meta, s.table.Rows(), s.table.Size()
}

// Close releases the table.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table == nil {
		return nil
	}
	err := s.table.Close()
	s.table, s.data = nil, nil
	return err
}

// Addresses returns where it listens, once it does; nil: it does not.
func (s *Server) Addresses(ctx context.Context) (plain, secure net.Addr) {
	select {
	case <-ctx.Done():
	case <-s.bound:
	}
	return s.addr[0], s.addr[1]
}

// Serve answers clients until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	fronts, ctx := errgroup.WithContext(ctx)
	bound := make(chan struct{}, 2)
	n := 0
	if s.options.Address != "" {
		n++
		fronts.Go(func() error { return s.servePlain(ctx, func(a net.Addr) { s.addr[0] = a; bound <- struct{}{} }) })
	}
	if s.options.TLSAddress != "" {
		n++
		fronts.Go(func() error { return s.serveTLS(ctx, func(a net.Addr) { s.addr[1] = a; bound <- struct{}{} }) })
	}
	fronts.Go(func() error {
		for range n {
			select {
			case <-ctx.Done():
				return nil
			case <-bound:
			}
		}
		close(s.bound)
		return nil
	})
	return fronts.Wait()
}

// client is a connection, whoever moves its bytes.
type client struct {
	session resp.Session
	since   time.Time
	pending int64
	from    string
}

// admit begins a connection; nil: there are too many.
func (s *Server) admit(from string) *client {
	if s.clients.Add(1) > int64(s.options.MaxClients) {
		s.clients.Add(-1)
		s.options.Log.Warn("a client is refused: there are too many", "from", from, "most", s.options.MaxClients)
		return nil
	}
	return &client{session: resp.Session{Check: s.options.Check, ID: s.lastID.Add(1)}, since: time.Now(), from: from}
}

func (s *Server) leave(c *client) {
	s.clients.Add(-1)
	s.pending.Add(-c.pending)
}

// stranger reports whether a client has not given a password for too long.
func (s *Server) stranger(c *client, now time.Time) bool {
	return s.options.Check != nil && !c.session.Known() && now.Sub(c.since) > strangerPatience
}

// answer carries out what a client has sent. It returns an error if the connection is to be closed.
func (s *Server) answer(c *client, in, out []byte) (used int, answers []byte, more bool, err error) {
	err = fault.Guard("answer a client", func() error {
		s.mu.RLock()
		defer s.mu.RUnlock()
		used, answers, more = c.session.Answer(s.data, in, out)
		return nil
	})
	if err != nil {
		return len(in), nil, false, err
	}
	if failed := c.session.Failed(); failed != nil {
		s.options.Log.Error("the table cannot be read", "error", failed)
	}
	left := int64(len(in) - used)
	if more {
		left = 0 // it is carried out at once
	}
	total := s.pending.Add(left - c.pending)
	if c.pending = left; total > MaxPendingBytes && left > 0 {
		return used, answers, false, fmt.Errorf("clients have sent %d bytes of commands that have no end", total)
	}
	return used, answers, more, nil
}
