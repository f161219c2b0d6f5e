package peek

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime/debug"

	"thalweg/internal/app/inspect"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/sandbox"
	"thalweg/internal/store/state"
)

// Command is the name of the command that is a child.
const Command = "peek"

// Connect makes the client of Config.Client in a child that is lent an instance.
type Connect func(client json.RawMessage, logger *slog.Logger) (*remote.Client, error)

// ServeInherited is a child's life, over the connection that it was started with.
func ServeInherited(connect Connect) error {
	conn, err := sandbox.Inherited()
	if err != nil {
		return err
	}
	return Serve(conn, connect)
}

// Serve is a child's life: it answers questions until the connection to its parent ends.
func Serve(conn net.Conn, connect Connect) error {
	sandbox.YieldMemory()
	return sandbox.Serve(conn, func(_ context.Context, p sandbox.Parent) (sandbox.Host, error) {
		var set settings
		if err := json.Unmarshal(p.Settings, &set); err != nil {
			return nil, fmt.Errorf("read the settings of a child: %w", err)
		}
		notes, err := restrict(set, p.WorkDir)
		if err != nil {
			return nil, err
		}
		debug.SetMemoryLimit(set.MemoryBytes / goShare)
		if set.Lent {
			return newLentHost(set, notes, p, connect)
		}
		return &bareHost{noRuns: noRuns{notes: notes}, dir: p.WorkDir, set: set, first: dataBytes(),
			kept: engine.NewInstances(filepath.Join(p.WorkDir, "engine"))}, nil
	})
}

// noRuns is what all hosts here have in common: they execute no batches.
type noRuns struct{ notes []string }

// Open implements sandbox.Host.
func (noRuns) Open(context.Context, state.RunKey) (sandbox.Run, error) {
	return nil, fault.New(fault.Bug, "a child that looks at tables executes no batches")
}

// Notes implements sandbox.Noting.
func (h noRuns) Notes() []string { return h.notes }

// bareHost executes prepared queries, and knows nothing else.
type bareHost struct {
	noRuns
	dir   string // its own
	set   settings
	first int64 // see dataBytes, at the start
	kept  *engine.Instances
}

var (
	_ sandbox.Answerer = (*bareHost)(nil)
	_ sandbox.Wearing  = (*bareHost)(nil)
)

// Worn implements sandbox.Wearing: what a query has left of memory counts for the next one, too.
func (h *bareHost) Worn() bool { return dataBytes()-h.first > h.set.MemoryBytes/leftShare }

// Close implements sandbox.Host.
func (h *bareHost) Close() error { return h.kept.Close() }

// Answer implements sandbox.Answerer.
func (h *bareHost) Answer(ctx context.Context, method string, args json.RawMessage,
	send func([]byte) error) (any, error) {
	ctx, stop := telling(ctx, send)
	defer stop()
	out := bufio.NewWriterSize(sender(send), sandbox.PieceMax/2)
	switch method {
	case askQuery:
		return answer(ctx, args, out, h.query)
	case askDownload:
		return answer(ctx, args, out, h.download)
	}
	return nil, fault.New(fault.Bug, "there is no question %q", method)
}

// answer decodes a question and has it answered.
func answer[A any](ctx context.Context, text json.RawMessage, out *bufio.Writer,
	do func(context.Context, A, *bufio.Writer) (queryAnswer, error)) (any, error) {
	var args A
	if err := json.Unmarshal(text, &args); err != nil {
		return nil, fmt.Errorf("decode a question: %w", err)
	}
	return do(ctx, args, out)
}

// sender is a writer whose bytes are sent, in pieces.
type sender func([]byte) error

// Write implements io.Writer.
func (s sender) Write(p []byte) (n int, err error) {
	for len(p) > n && err == nil {
		piece := p[n:min(len(p), n+sandbox.PieceMax-1)]
		if err = s(append([]byte{pieceOfAnswer}, piece...)); err == nil {
			n += len(piece)
		}
	}
	return n, err
}

// limited gives a query what this child has.
func (h *bareHost) limited(p inspect.Prepared) inspect.Prepared {
	p.MemoryBytes, p.SpillBytes = h.set.MemoryBytes/engineShare, h.set.SpillBytes
	return p
}

func (h *bareHost) spill() string { return filepath.Join(h.dir, "spill") }

// errFull ends the rows of a page.
var errFull = errors.New("the page is full")

func (h *bareHost) query(ctx context.Context, q queryArgs, out *bufio.Writer) (queryAnswer, error) {
	rows := &rowWriter{Writer: out}
	page := &fullPage{RowSink: rows, left: q.PageBytes, cell: q.CellBytes}
	done, err := h.limited(q.Prepared).ExecuteLent(ctx, h.kept, h.spill(), page)
	answer := queryAnswer{Executed: done}
	if errors.Is(err, errFull) {
		answer.Full, answer.More, err = true, true, nil
	}
	return answer, errors.Join(err, rows.end())
}

// fullPage passes rows on until a page is full.
type fullPage struct {
	inspect.RowSink
	left  int // bytes; 0: no limit
	cell  int // bytes of a cell that are shown
	whole int // bytes of the page
	rows  int
}

// rowCellBytesMin is the least that is shown of a cell of a row that alone is as large as a page.
const rowCellBytesMin = 64

// Begin implements inspect.RowSink.
func (p *fullPage) Begin(head inspect.QueryResult) error {
	p.whole = p.left
	if columns := len(head.Columns); p.whole > 0 && columns > 0 {
		p.cell = min(p.cell, max(p.whole/columns, rowCellBytesMin))
	}
	return p.RowSink.Begin(head)
}

// Row implements inspect.RowSink.
func (p *fullPage) Row(cells []any) error {
	if p.whole == 0 {
		return p.RowSink.Row(cells)
	}
	for i, cell := range cells {
		cells[i] = inspect.Cut(cell, p.cell)
		p.left -= inspect.CellBytes(cells[i])
	}
	if p.left < 0 && p.rows > 0 {
		return errFull
	}
	p.rows++
	return p.RowSink.Row(cells)
}
