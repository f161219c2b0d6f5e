package load

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"thalweg/internal/test/effort"
)

// server is a store in this process whose times are known.
type server struct {
	delay func(Op) time.Duration // of an operation; nil: none
	stall [2]time.Duration       // from and to, behind began: what comes then is answered at its end, and after its delay
	rate  float64                // operations a second that it carries out, one behind the other; 0: all at once
	fails func(Op) error

	mu    sync.Mutex
	began time.Time // when the first operation came
	free  time.Time // when it has carried out all that came
	asked map[uint64]int
	open  int
}

var errNotThere = errors.New("not there")

func (s *server) Client(context.Context, int) (Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	c, err := newClock()
	return &serverClient{s: s, clock: c}, err
}

func (s *server) Close() error { return nil }

type serverClient struct {
	s     *server
	clock *clock
}

func (c *serverClient) Close() error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.open--
	return c.clock.Close()
}

func (c *serverClient) Do(ctx context.Context, ops []Op, errs []error) {
	defer context.AfterFunc(ctx, c.clock.interrupt)()
	at := c.s.answered(ops, errs)
	_ = c.clock.wait(ctx, time.Until(at)-spin())
	for effort.All() && time.Now().Before(at) && ctx.Err() == nil {
		runtime.Gosched() // to the microsecond: what is late behind that is the load's
	}
}

// spin says how long before its end a wait is not left to the kernel, where the strict bars are held.
func spin() time.Duration { return effort.Of[time.Duration](0, 0, 100*time.Microsecond) }

// answered returns when operations that come now are answered.
func (s *server) answered(ops []Op, errs []error) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.began.IsZero() {
		s.began = now
	}
	from := now
	if in := now.Sub(s.began); in >= s.stall[0] && in < s.stall[1] {
		from = s.began.Add(s.stall[1])
	}
	last := from
	for i, op := range ops {
		if s.asked != nil {
			s.asked[op.Key]++
		}
		if s.fails != nil {
			errs[i] = s.fails(op)
		}
		end := from
		if s.rate > 0 {
			if s.free.Before(from) {
				s.free = from
			}
			s.free = s.free.Add(time.Duration(float64(time.Second) / s.rate))
			end = s.free
		}
		if s.delay != nil {
			end = end.Add(s.delay(op))
		}
		if end.After(last) {
			last = end
		}
	}
	return last
}
