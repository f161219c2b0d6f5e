package cassandra

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"thalweg/internal/base/fault"
	driver "thalweg/internal/store/cassandra"
	"thalweg/internal/store/state"
)

// Limits.
const (
	// unknownTries is the number of further looks at a change with an unknown outcome, before ErrUnknown is
	// returned.
	unknownTries = 3
	// firstPause and longestPause space the tries of those who want the same partition.
	firstPause   = 2 * time.Millisecond
	longestPause = 100 * time.Millisecond
	// stripes limits the partitions that one process can change at the same time.
	stripes = 1024
	// atOnce limits the requests that one call has under way.
	atOnce = 16
	// valuesMax limits the rows, or partitions, that one request names. Managed services refuse more:
	// DataStax Astra 25 rows and 20 partitions, Amazon Keyspaces 100.
	valuesMax = 20
	// runsKnown limits the runs that are remembered; namesKnown limits workspaces and notes.
	runsKnown  = 512
	namesKnown = 4096
)

// Request describes one request to an Observer.
type Request struct {
	Operation   string // the method's name
	Took        time.Duration
	Conditional bool
	Lost        bool  // of a conditional one: somebody else came first
	Err         error // it failed, or what came of it is not known
}

// Observer is told of every request. It may be called concurrently.
type Observer interface{ Request(Request) }

// Config of a Store.
type Config struct {
	driver.Config
	Requests Observer // nil: nobody
}

// Store is a state store in a Cassandra cluster.
type Store struct {
	session  *driver.Session
	own      bool // of the session
	requests Observer
	codec    codec
	plans    *memory[planKey, headerRow]             // records only as long as they are small
	latest   *memory[state.NodeKey, string]          // the digest of the plan of a node that was used last
	runNodes *memory[state.RunKey, []state.NodeSpec] // of runs
	begun    *memory[string, struct{}]               // workspaces that have had runs
	noted    *memory[noteKey, struct{}]              // notes that this process has put

	writeQueues *writeQueues // to nodes
	seed        maphash.Seed
	// to other partitions; saves conditional writes that would be lost, and decides nothing
	turns [stripes]chan struct{}

	fate func(do func() (bool, error)) (bool, error) // what becomes of conditional batches, in tests; nil: nothing

	close sync.Once
}

var _ state.Store = (*Store)(nil)

// Open connects to a cluster whose keyspace Init has prepared.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	session, err := driver.Open(cfg.Config)
	if err != nil {
		return nil, cmp.Or(noKeyspace(ctx, cfg.Config), err)
	}
	s, err := New(ctx, session, cfg.Requests)
	if err != nil {
		session.Close()
		return nil, err
	}
	s.own = true
	return s, nil
}

// New is Open over a session that others use as well, who close it.
func New(ctx context.Context, session *driver.Session, requests Observer) (*Store, error) {
	if err := checkSchema(ctx, session); err != nil {
		return nil, err
	}
	c, err := newCodec()
	if err != nil {
		return nil, err
	}
	s := &Store{session: session, requests: requests, codec: c, plans: newMemory[planKey, headerRow](plansMax),
		latest:   newMemory[state.NodeKey, string](plansMax),
		runNodes: newMemory[state.RunKey, []state.NodeSpec](runsKnown), begun: newMemory[string, struct{}](namesKnown),
		noted: newMemory[noteKey, struct{}](namesKnown), writeQueues: newLanes(), seed: maphash.MakeSeed()}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s, nil
}

// Close implements state.Store. It may be called more than once.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.writeQueues.close()
		if s.own {
			s.session.Close()
		}
	})
	return nil
}

// operation is one call of the store: its name for errors and for the Observer.
type operation struct {
	*Store
	name   string // of the method
	what   string // for people
	serial bool   // reads have to see what is being decided
}

func (s *Store) operation(name, what string) *operation {
	return &operation{Store: s, name: name, what: what}
}

// told tells the Observer of a request.
func (o *operation) told(start time.Time, r Request) {
	if o.requests != nil {
		r.Operation, r.Took = o.name, time.Since(start)
		o.requests.Request(r)
	}
}

// query reads, row by row. A page is larger than the rows that are expected: one that
// is full is followed by a request for the next, which is empty.
func (o *operation) query(ctx context.Context, rows int, text string, args []any,
	each func(scan func(...any) error) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	defer func() { o.told(start, Request{Err: err}) }()
	q := o.session.Query(text, args...).Idempotent(true).PageSize(rows + 1)
	if o.serial {
		q = q.Consistency(o.session.Serial)
	}
	iter := q.IterContext(ctx)
	scanner := iter.Scanner()
	for scanner.Next() {
		if err := each(scanner.Scan); err != nil {
			if errors.Is(err, errEnough) {
				err = nil
			}
			return errors.Join(err, iter.Close())
		}
	}
	return driver.Asked(ctx, scanner.Err())
}

// errEnough ends a query before its end.
var errEnough = errors.New("enough")

// write writes what is the same whoever writes it, and however often.
func (o *operation) write(ctx context.Context, text string, args ...any) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	defer func() { o.told(start, Request{Err: err}) }()
	return driver.Asked(ctx, o.session.Query(text, args...).Idempotent(true).ExecContext(ctx))
}

// change is a write to a partition, on the condition of its revision.
type change struct {
	rev   int64 // that was read; 0: there is nothing yet
	texts []string
	args  [][]any
}

// put writes columns of a row. The head's are put by sets.
func (c *change) put(p partition, at place, columns ...column) {
	text, args := "UPDATE state_rows SET ", make([]any, 0, len(columns)+6)
	for i, col := range columns {
		if i > 0 {
			text += ", "
		}
		text += col.name + " = ?"
		args = append(args, col.value)
	}
	text += " WHERE workspace = ? AND run = ? AND node = ? AND kind = ? AND n1 = ? AND n2 = ?"
	args = append(args, p.with(at.kind, at.n1, at.n2)...)
	if at == headPlace {
		text += " IF rev = ?"
		if c.rev == 0 {
			args = append(args, nil)
		} else {
			args = append(args, c.rev)
		}
	}
	c.add(text, args)
}

func (c *change) add(text string, args []any) {
	c.texts, c.args = append(c.texts, text), append(c.args, args)
}

// remove deletes all rows of a kind.
func (c *change) remove(p partition, kind int8) {
	c.add("DELETE FROM state_rows WHERE workspace = ? AND run = ? AND node = ? AND kind = ?", p.with(kind))
}

// column is a value that is written.
type column struct {
	name  string
	value any
}

// puts writes the head: the next revision, and what changes with it.
func (c *change) puts(p partition, columns ...column) {
	c.put(p, headPlace, append([]column{{"rev", c.rev + 1}}, columns...)...)
}

// apply writes a change if the partition still has the revision.
func (o *operation) apply(ctx context.Context, c *change) (applied bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	start := time.Now()
	defer func() { o.told(start, Request{Conditional: true, Lost: err == nil && !applied, Err: err}) }()
	if o.fate != nil {
		return o.fate(func() (bool, error) { return o.execute(context.WithoutCancel(ctx), c) })
	}
	return o.execute(ctx, c)
}

func (o *operation) execute(ctx context.Context, c *change) (applied bool, err error) {
	batch := o.session.Batch(gocql.UnloggedBatch).SerialConsistency(o.session.Serial)
	for i, text := range c.texts {
		batch = batch.Query(text, c.args[i]...)
	}
	applied, iter, err := batch.MapExecCASContext(ctx, map[string]any{})
	if iter != nil {
		err = errors.Join(err, iter.Close())
	}
	return applied, driver.Asked(ctx, err)
}

// update changes a partition: attempt reads, decides, and gives what is to be
// written, or nothing. It is called again when somebody else has come first,
// and when it is not known what became of the last one: each call may be
// repeated, so what was done then is found done.
func (o *operation) update(ctx context.Context, p partition, attempt func(ctx context.Context) (*change, error)) error {
	if err := o.take(ctx, p); err != nil {
		return o.explain(err)
	}
	defer o.give(p)
	unknown, pause := error(nil), firstPause
	for left := unknownTries; ; {
		c, err := attempt(ctx)
		if err == nil && c == nil {
			return nil
		}
		var applied bool
		if err == nil {
			if applied, err = o.apply(ctx, c); applied {
				return nil
			}
			o.serial = true
			if unsure(err) {
				unknown = err
			}
		}
		switch {
		case err == nil: // somebody else came first
		case unknown == nil || !passes(err) || ctx.Err() != nil:
			return o.explain(afterUnknown(unknown, err))
		default:
			if left--; left == 0 {
				return o.explain(afterUnknown(unknown, err))
			}
		}
		if err := wait(ctx, rand.N(pause)); err != nil { //nolint:gosec // spacing, not a secret
			return o.explain(afterUnknown(unknown, err))
		}
		pause = min(2*pause, longestPause)
	}
}

// passes reports whether what failed may go well later; what was decided stays so.
func passes(err error) bool { return !isSentinel(err) && driver.Passes(err) }

// unsure reports whether a conditional write that ended so may have been carried out.
func unsure(err error) bool {
	return driver.Passes(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// afterUnknown returns the error of a call whose latest write may have been carried out: ErrUnknown, whatever
// err is. Only a decision that was based on what stands since then is returned as it is.
func afterUnknown(unknown, err error) error {
	if err == nil || unknown == nil || isDecision(err) {
		return err
	}
	if errors.Is(err, unknown) {
		return fmt.Errorf("%w: %w", state.ErrUnknown, err)
	}
	return fmt.Errorf("%w: %w; then: %w", state.ErrUnknown, unknown, err)
}

// take waits for this process's turn to change a partition.
func (s *Store) take(ctx context.Context, p partition) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case s.turn(p) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) give(p partition) { <-s.turn(p) }

func (s *Store) turn(p partition) chan struct{} {
	return s.turns[maphash.Comparable(s.seed, p)%stripes]
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// explain wraps what an operation failed with.
func (o *operation) explain(err error) error {
	if err == nil {
		return nil
	}
	var classified *fault.Error
	if errors.As(err, &classified) || isSentinel(err) && !errors.Is(err, state.ErrUnknown) {
		return fmt.Errorf("%s: %w", o.what, err)
	}
	return o.session.Fault("state in Cassandra: "+o.what, err)
}

func isSentinel(err error) bool {
	return isDecision(err) || isAny(err, state.ErrUnknown, context.Canceled, context.DeadlineExceeded)
}

// isDecision reports whether an error is what a call has decided.
func isDecision(err error) bool {
	return isAny(err, state.ErrNotFound, state.ErrNotClaimable, state.ErrLeaseLost, state.ErrConflict,
		state.ErrIllegalMove, state.ErrHeld)
}

func isAny(err error, of ...error) bool {
	return slices.ContainsFunc(of, func(one error) bool { return errors.Is(err, one) })
}

// together calls fn for 0 … n-1, some at a time, and gives the first error.
func together(ctx context.Context, n, some int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	slots := make(chan struct{}, some)
	for i := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := fn(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
