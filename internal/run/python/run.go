package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"thalweg/internal/base/fault"
)

// Stats sums up the resources that a Run has used.
type Stats struct {
	Rows      int64         // emitted
	Chunks    int64         // computed
	Busy      time.Duration // of interpreters, all processes together
	CPU       time.Duration // of them; 0 where the system does not say
	Starved   time.Duration // for which they waited for a processor; 0 where the system does not say
	PeakBytes int64         // most memory that one of the processes has held, ever; 0 where the system does not say
}

// run is one call of Run. Its lower part belongs to the schedule.
type run struct {
	pool *Pool
	prog *program

	order chan *chunk   // in the order of the input; closed when there will be no more
	room  chan struct{} // there may be room for another chunk
	stop  chan struct{} // the reader is to end
	calls sync.Mutex    // held while next or emit is called: they may share a connection
	// Set by the reader before it closes order.
	readErr error

	over      atomic.Bool  // nobody waits for its chunks
	chunkRows atomic.Int64 // to put into the next chunk

	// Guarded by pool.mu.
	ready              []*chunk // made, not given to a process
	pending            int      // chunks offered and not emitted
	inProcess          int
	heldBytes          int64
	ended              bool // all chunks are made
	chunks             int64
	busy, cpu, starved time.Duration
	rowCost            float64 // ns, of late; 0: nothing has come back yet
	largest            int     // rows of the largest chunk that came back
	peakBytes          int64
}

func (p *Pool) newRun(prog *program) *run {
	r := &run{
		pool:  p,
		prog:  prog,
		order: make(chan *chunk, maxWindowChunks),
		room:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
	}
	r.chunkRows.Store(1)
	return r
}

// Run computes prog's fields for all rows and gives them back in input order.
//
// next returns a row of prog.Inputs, or io.EOF; it is copied before next is
// called again. emit gets the fields' values (int64, float64, bool, string,
// time.Time, Cents; nil is NULL) in a slice that it may not keep. The two are never called at the same time, but by
// different goroutines. After a failure neither is called any more once Run has returned.
//
// Run returns when all rows are emitted, or with the first failure in the order of
// the input; Place.Record is then the row, from 1. It ends soon after ctx does, at
// the latest when a call of next or emit returns.
func (p *Pool) Run(ctx context.Context, prog *Program, next func() (Row, error), emit func([]any) error) (Stats,
	error) {
	return p.run(ctx, prog, next, emit, nil)
}

// RunTolerant is Run for programs whose rows may fail: bad gets the failure of such
// a row, and its reason without the row's number, in the place where emit would have got its values, and whether to go
// on is its decision. Exceptions and unacceptable results are such failures; what ends a process, and what takes too
// much time or memory, still fails the whole.
func (p *Pool) RunTolerant(ctx context.Context, prog *Program, next func() (Row, error), emit func([]any) error,
	bad func(f *fault.Error, reason string) error) (Stats, error) {
	return p.run(ctx, prog, next, emit, bad)
}

func (p *Pool) run(ctx context.Context, prog *Program, next func() (Row, error), emit func([]any) error,
	bad func(f *fault.Error, reason string) error) (Stats, error) {
	ready, err := prepare(prog, bad != nil)
	if err != nil {
		return Stats{}, err
	}
	r := p.newRun(ready)
	e := &emitter{run: r, row: make([]any, len(prog.Fields)), emit: emit, bad: bad}
	err = p.drive(ctx, r, func() error { return r.read(next) }, e.chunk)
	return r.stats(e.rows), err
}

// drive reads chunks in a goroutine of its own, and takes them in order in the
// caller's. Both have ended when it returns.
func (p *Pool) drive(ctx context.Context, r *run, read func() error, take func(context.Context, *chunk) error) error {
	if err := p.join(r); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(r.order)
		r.readErr = read()
	}()
	err := r.takeAll(ctx, take)
	close(r.stop)
	<-done
	p.leave(r)
	return err
}

func (r *run) stats(rows int64) Stats {
	r.pool.mu.Lock()
	defer r.pool.mu.Unlock()
	return Stats{Rows: rows, Chunks: r.chunks, Busy: r.busy, CPU: r.cpu, Starved: r.starved, PeakBytes: r.peakBytes}
}

// errStopped ends the reader; nobody sees it.
var errStopped = errors.New("stopped")

// read cuts the input into chunks and offers them.
func (r *run) read(next func() (Row, error)) error {
	enc := newEncoder(r.prog)
	var total int64
	for {
		atEnd, err := r.fill(enc, next)
		if err != nil {
			return r.atRow(err, total+int64(enc.rows)+1)
		}
		if atEnd {
			r.pool.ended(r) // before the last chunk is offered
		}
		if enc.rows > 0 {
			c := &chunk{run: r, first: total, rows: enc.rows, weight: enc.rows, columns: enc.encode(),
				done: make(chan struct{})}
			total += int64(enc.rows)
			enc.reset()
			if err := r.submit(c); err != nil {
				return err
			}
		}
		if atEnd {
			return nil
		}
	}
}

// atRow says which row a failure to read belongs to.
func (r *run) atRow(err error, record int64) error {
	var f *fault.Error
	if errors.As(err, &f) {
		if f.Place.Record == 0 && f.Place.Line == 0 && f.Kind == fault.UserData {
			f.Place.Record = record
		}
		return err
	}
	return fmt.Errorf("read row %d for Python: %w", record, err)
}

// rowsBetweenLooks at the clock.
const rowsBetweenLooks = 64

// fill reads rows until they are enough for a chunk, or until reading has taken as
// long as computing should: processes may be idle.
func (r *run) fill(enc *encoder, next func() (Row, error)) (atEnd bool, err error) {
	r.calls.Lock()
	defer r.calls.Unlock()
	began := time.Now()
	for {
		select {
		case <-r.stop:
			return false, errStopped
		default:
		}
		row, err := next()
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if err := enc.add(row); err != nil {
			return false, err
		}
		if int64(enc.rows) >= r.chunkRows.Load() || enc.bytes >= r.pool.cfg.MaxChunkBytes {
			return false, nil
		}
		if enc.rows%rowsBetweenLooks == 0 && time.Since(began) > r.pool.cfg.ChunkTarget {
			return false, nil
		}
	}
}

// submit waits until the Run may hold another chunk.
func (r *run) submit(c *chunk) error {
	for !r.pool.offer(c) {
		select {
		case <-r.room:
		case <-r.stop:
			return errStopped
		}
	}
	r.order <- c // has room for as many as offer lets through
	return nil
}

func (r *run) signalRoom() {
	select {
	case r.room <- struct{}{}:
	default:
	}
}

// await waits until a chunk is done.
func (r *run) await(ctx context.Context, c *chunk) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	case <-r.pool.closing:
	}
	return r.pool.canceled(ctx)
}

// takeAll gives the chunks to take, in order and once they are done.
func (r *run) takeAll(ctx context.Context, take func(context.Context, *chunk) error) error {
	for {
		var c *chunk
		select {
		case c = <-r.order:
		case <-ctx.Done():
			return r.pool.canceled(ctx)
		case <-r.pool.closing:
			return r.pool.canceled(ctx)
		}
		if c == nil {
			return r.readErr
		}
		if err := r.await(ctx, c); err != nil {
			return err
		}
		if err := take(ctx, c); err != nil {
			return err
		}
		r.pool.emitted(c)
	}
}

// emitter gives results to the caller, in the caller's goroutine.
type emitter struct {
	run  *run
	row  []any
	rows int64
	emit func([]any) error
	bad  func(f *fault.Error, reason string) error
}

// chunk emits a chunk's rows.
func (e *emitter) chunk(ctx context.Context, c *chunk) error {
	if c.err != nil {
		return c.err
	}
	failures := c.answer.report.Errors
	if len(failures) > 0 && (e.bad == nil || c.answer.rows != c.rows) {
		return rowFault(e.run.prog, &failures[0], c.first)
	}
	dec, err := newDecoder(e.run.prog, c.answer)
	if err == nil && c.answer.rows != c.rows {
		err = fmt.Errorf("%d results for %d rows: %w", c.answer.rows, c.rows, errProtocol)
	}
	if err != nil {
		return protocolFault(err)
	}
	e.run.calls.Lock()
	defer e.run.calls.Unlock()
	for i := range c.rows {
		if ctx.Err() != nil {
			return e.run.pool.canceled(ctx)
		}
		var f *failure
		if len(failures) > 0 && failures[0].Row == i {
			f, failures = &failures[0], failures[1:]
		} else {
			f = dec.row(i, e.row)
		}
		if f != nil {
			if e.bad == nil {
				return rowFault(e.run.prog, f, c.first)
			}
			if err := e.bad(rowFault(e.run.prog, f, c.first), f.text()); err != nil {
				return err
			}
			continue
		}
		if err := e.emit(e.row); err != nil {
			return err
		}
		e.rows++
	}
	return nil
}

// noContext has neither end nor cause.
var noContext = context.Background()
