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
	began     time.Time // when the warm-up ends
	left      atomic.Int64
	seq       sequence
	unsent    atomic.Int64
	byTime    atomic.Bool // a client has ended because the time was over
	recorders []*recorder
}

// Run sends a load to a target. It fails if the target cannot be reached, or no operation succeeds.
func Run(ctx context.Context, target Target, plan Plan) (_ Result, err error) {
	if err := plan.Check(); err != nil {
		return Result{}, err
	}
	r := &run{plan: plan, seq: sequence{keys: plan.Keys}}
	r.left.Store(cmp.Or(plan.Ops, math.MaxInt64))
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

// open opens the clients. Those that are open are returned with an error, too.
func (r *run) open(ctx context.Context, target Target) (senders []*sender, err error) {
	for i := range r.plan.Clients {
		client, err := target.Client(ctx, i)
		if err != nil {
			return senders, fmt.Errorf("open client %d of %d: %w", i+1, r.plan.Clients, err)
		}
		s := &sender{run: r, number: i, client: client, recorder: r.recorders[i%len(r.recorders)],
			keys: newKeyMaker(r.plan, i, &r.seq),
			ops:  make([]Op, r.plan.Depth), errs: make([]error, r.plan.Depth), intended: make([]time.Duration, r.plan.Depth)}
		senders = append(senders, s)
		if s.clock, err = newClock(); err != nil {
			return senders, err
		}
	}
	return senders, nil
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

// take takes operations from those that are left to be measured.
func (r *run) take(n int) int {
	if r.plan.Ops == 0 {
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
	for _, rec := range r.recorders {
		out.Took = max(out.Took, rec.last)
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
	number   int
	client   Client
	clock    *clock
	recorder *recorder
	keys     *keyMaker
	begun    int64 // operations of an open loop
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
		ops := s.keys.fill(s.ops[:n])
		if len(ops) == 0 {
			return nil
		}
		errs := s.errs[:len(ops)]
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

// intends returns when the k-th operation of this client is meant to begin. The clients take turns.
func (s *sender) intends(k int64) time.Duration {
	clients := float64(s.run.plan.Clients)
	turn := (float64(k)*clients + float64(s.number)) / s.run.plan.Rate
	return time.Duration(turn*float64(time.Second)) - s.run.plan.WarmUp
}

// due is the open loop: it waits until an operation is meant to begin, and returns those that are due by then.
func (s *sender) due(ctx context.Context) (int, error) {
	window := s.run.plan.For
	if window == 0 {
		window = math.MaxInt64
	}
	first := s.intends(s.begun)
	if first >= window {
		s.run.byTime.Store(true)
		return 0, nil
	}
	if err := s.clock.wait(ctx, first-time.Since(s.run.began)); err != nil {
		return 0, err
	}
	now := time.Since(s.run.began)
	if window < math.MaxInt64 && now > window+drainMost {
		for s.intends(s.begun) < window {
			s.begun++
			s.run.unsent.Add(1)
		}
		s.run.byTime.Store(true)
		return 0, nil
	}
	n := 0
	for at := first; n < len(s.ops) && at <= max(now, first) && at < window && (at < 0) == (first < 0); n++ {
		s.intended[n] = at
		at = s.intends(s.begun + int64(n) + 1)
	}
	if first >= 0 {
		n = s.run.take(n)
	}
	s.begun += int64(n)
	return n, nil
}
