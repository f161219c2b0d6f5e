package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/fault"
)

const (
	// drainMost is how long behind its window an open loop still sends what was meant to begin in it.
	drainMost = 5 * time.Second
	// failedPause is how long a client of a closed loop waits when all that it sent together has failed.
	failedPause = 10 * time.Millisecond
	// recordersByCore is how many recorders share the clients, for each core.
	recordersByCore = 4
)

// run is a load that is being sent. Times are behind the warm-up.
type run struct {
	plan      Plan
	began     time.Time    // when the warm-up ends
	left      atomic.Int64 // operations of a closed loop
	from, to  int64        // the turns of an open loop that are measured
	seq       sequence
	unsent    atomic.Int64
	byTime    atomic.Bool // it ends because the time is over
	recorders []*recorder
}

// Run sends a load to a target. It fails if the target cannot be reached, or no operation succeeds.
func Run(ctx context.Context, target Target, plan Plan) (_ Result, err error) {
	if err := plan.Check(); err != nil {
		return Result{}, err
	}
	r := &run{plan: plan}
	r.bound()
	var line timeline
	for range min(plan.Clients, recordersByCore*runtime.GOMAXPROCS(0)) {
		r.recorders = append(r.recorders, newRecorder(plan, &line))
	}
	senders, err := r.open(ctx, target)
	defer func() {
		for _, s := range senders {
			err = errors.Join(err, s.close())
		}
	}()
	if err != nil {
		return Result{}, err
	}
	if err := r.await(ctx); err != nil {
		return Result{}, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	w := &watch{began: r.began, own: map[int]own{}, servers: map[int][]Reading{}, flush: r.flush}
	watched := make(chan struct{})
	go func() { defer close(watched); w.run(watching, target) }()
	sending, sendCtx := errgroup.WithContext(ctx)
	for _, s := range senders {
		sending.Go(func() error { return s.send(sendCtx) })
	}
	err = sending.Wait()
	result := r.result(&line)
	stop()
	<-watched
	if err != nil {
		return Result{}, fmt.Errorf("send the load: %w", err)
	}
	w.into(&result)
	return result, result.check()
}

// bound sets which operations are measured. Those of an open loop are so by when they are meant to begin: one whose
// client is late is not replaced by another one.
func (r *run) bound() {
	r.left.Store(r.plan.ops())
	if r.plan.Rate == 0 {
		return
	}
	r.from, r.to = r.plan.turnAt(0), math.MaxInt64
	if ops := r.plan.ops(); ops > 0 {
		r.to = r.from + min(ops, math.MaxInt64-r.from)
	}
	if r.plan.For > 0 {
		if over := r.plan.turnAt(r.plan.For); over <= r.to {
			r.to = over
			r.byTime.Store(true)
		}
	}
}

// open opens the clients. Those that are open are returned with an error, too.
func (r *run) open(ctx context.Context, target Target) (senders []*sender, err error) {
	for i := range r.plan.Clients {
		client, err := Open(ctx, target, i)
		if err != nil {
			return senders, err
		}
		s := &sender{run: r, turn: int64(i), client: client, recorder: r.recorders[i%len(r.recorders)],
			keys: newKeyMaker(r.plan, i, &r.seq),
			ops:  make([]Op, r.plan.Depth), errs: make([]error, r.plan.Depth), intended: make([]time.Duration, r.plan.Depth)}
		senders = append(senders, s)
		if s.clock, err = newClock(); err != nil {
			return senders, err
		}
	}
	return senders, nil
}

// Open opens a client of a target. What fails unclassified is that the store cannot be reached.
func Open(ctx context.Context, target Target, number int) (Client, error) {
	client, err := target.Client(ctx, number)
	var known *fault.Error
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil || errors.As(err, &known):
		return nil, fmt.Errorf("open client %d: %w", number+1, err)
	}
	return nil, &fault.Error{Kind: fault.Environment, Message: fmt.Sprintf("open client %d", number+1), Err: err,
		Hint: "see whether the store lets so many connect"}
}

// await waits for the plan's start, and sets when the window begins.
func (r *run) await(ctx context.Context) error {
	start := time.Now()
	if !r.plan.Start.IsZero() {
		until := time.Until(r.plan.Start)
		if until < 0 {
			return fault.New(fault.Environment, "the clients were open %v after the load was to start", -until)
		}
		start = start.Add(until) // by this process's own clock from now on
		c, err := newClock()
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }() // nothing is lost with it
		defer context.AfterFunc(ctx, c.interrupt)()
		if err := c.wait(ctx, until); err != nil {
			return err
		}
	}
	r.began = start.Add(r.plan.WarmUp)
	return nil
}

func (r *run) flush() {
	for _, rec := range r.recorders {
		rec.flush()
	}
}

// take takes operations of a closed loop from those that are left to be measured.
func (r *run) take(n int) int {
	if r.plan.ops() == 0 {
		return n
	}
	left := r.left.Add(-int64(n)) + int64(n)
	return int(max(min(left, int64(n)), 0))
}

func (r *run) result(line *timeline) Result {
	out := Result{Plan: r.plan, Began: r.began.Round(0), Unsent: r.unsent.Load(), Errors: map[string]int64{},
		Cores: runtime.GOMAXPROCS(0)}
	for kind, has := range r.plan.kinds() {
		if !has {
			continue
		}
		m := &out.Of[kind]
		m.Response = newHistogram()
		if m.Service = m.Response; r.plan.Rate > 0 {
			m.Service = newHistogram()
		}
	}
	r.flush()
	busy := time.Duration(0)
	for _, rec := range r.recorders {
		out.Took, busy = max(out.Took, rec.last), busy+rec.busy
		for text, n := range rec.errors {
			out.Errors[text] += n
		}
		for kind := range rec.of {
			m, from := &out.Of[kind], rec.of[kind]
			m.Ops, m.Failed = m.Ops+from.Ops, m.Failed+from.Failed
			if from.Response == nil {
				continue
			}
			m.Response.Merge(from.Response) // all are alike: nothing is dropped
			if m.Service != m.Response {
				m.Service.Merge(from.Service)
			}
		}
	}
	if r.byTime.Load() {
		out.Took = max(out.Took, r.plan.For)
	}
	if out.Took > 0 {
		out.Busy = busy.Seconds() / out.Took.Seconds() / float64(r.plan.Clients)
	}
	out.Seconds = line.end()
	for kind := range out.Of {
		out.Of[kind].Blocks = line.blocks[kind]
	}
	if n := len(out.Seconds); n > 0 {
		out.Seconds[n-1].At = min(out.Seconds[n-1].At, out.Took.Seconds())
	}
	return out
}

// check fails if no operation has succeeded.
func (r Result) check() error {
	if r.Of[Read].Ops+r.Of[Write].Ops > 0 {
		return nil
	}
	if len(r.Errors) == 0 {
		return fault.New(fault.Environment, "no operation was sent in the window")
	}
	most := slices.MaxFunc(slices.Sorted(maps.Keys(r.Errors)), func(a, b string) int {
		return cmp.Compare(r.Errors[a], r.Errors[b])
	})
	return fault.New(fault.Environment, "none of %d operations has succeeded: %s", r.Failed(), most)
}

// sender sends what one client is to send.
type sender struct {
	run      *run
	turn     int64 // the next one of an open loop: the clients take turns
	client   Client
	clock    *clock
	recorder *recorder
	keys     *keyMaker
	ops      []Op
	errs     []error
	intended []time.Duration
}

func (s *sender) close() error {
	var err error
	if s.clock != nil {
		err = s.clock.Close()
	}
	return errors.Join(err, s.client.Close())
}

// send sends until the load is over.
func (s *sender) send(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.clock.interrupt)()
	next := s.atOnce
	if s.run.plan.Rate > 0 {
		next = s.due
	}
	for {
		n, err := next(ctx)
		if err != nil || n == 0 {
			return err
		}
		ops, errs := s.ops[:n], s.errs[:n]
		s.keys.fill(ops)
		clear(errs)
		sent := time.Since(s.run.began)
		s.client.Do(ctx, ops, errs)
		done := time.Since(s.run.began)
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.intended[0] >= 0 {
			s.recorder.add(ops, errs, s.intended, sent, done)
		}
		if s.run.plan.Rate == 0 && !slices.Contains(errs, nil) {
			if err := s.clock.wait(ctx, failedPause); err != nil {
				return err
			}
		}
	}
}

// atOnce is the closed loop: as many as go together, now. None: the load is over.
func (s *sender) atOnce(context.Context) (int, error) {
	now := time.Since(s.run.began)
	n := len(s.ops)
	if now >= 0 {
		if s.run.plan.For > 0 && now >= s.run.plan.For {
			s.run.byTime.Store(true)
			return 0, nil
		}
		n = s.run.take(n)
	}
	for i := range s.intended[:n] {
		s.intended[i] = now
	}
	return n, nil
}

// due is the open loop: it waits until an operation is meant to begin, and returns those that are due by then.
func (s *sender) due(ctx context.Context) (int, error) {
	r, first := s.run, s.turn
	if first >= r.to {
		return 0, nil
	}
	if err := s.clock.wait(ctx, r.plan.intends(first)-time.Since(r.began)); err != nil {
		return 0, err
	}
	now, step := time.Since(r.began), int64(r.plan.Clients)
	if r.plan.For > 0 && now > r.plan.For+drainMost {
		warm := (max(r.from-first, 0) + step - 1) / step // are not to be measured
		r.unsent.Add((max(r.to-first-warm*step, 0) + step - 1) / step)
		return 0, nil
	}
	n := 0
	for ; n < len(s.ops) && s.turn < r.to && (s.turn < r.from) == (first < r.from); n++ {
		at := r.plan.intends(s.turn)
		if n > 0 && at > now {
			break
		}
		s.intended[n] = at
		s.turn += step
	}
	return n, nil
}
