package load

import (
	"context"
	"fmt"
	"math"
	"runtime/metrics"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// own is what this process has used.
type own struct{ collector, cpu float64 } // s

func ownNow() (o own) {
	samples := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() == metrics.KindFloat64 {
		o.collector = samples[0].Value.Float64()
	}
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		o.cpu = float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
	}
	return o
}

// watch looks at this process and the servers each second of the window. Nothing that sends waits for it.
type watch struct {
	began   time.Time
	flush   func() // what clients have collected
	mu      sync.Mutex
	own     map[int]own // at the end of each second; 0: when the window began
	servers map[int][]Reading
	wrong   error // the first failure of a look at the servers
	failed  int
}

// observeMost is how long a look at the servers may take.
const observeMost = 5 * time.Second

// run looks until the context ends.
func (w *watch) run(ctx context.Context, target Target) {
	var wait sync.WaitGroup
	defer wait.Wait()
	if o, ok := target.(Observer); ok {
		wait.Go(func() { w.each(ctx, func(at int) { w.observe(ctx, o, at) }) })
	}
	w.each(ctx, func(at int) {
		now := ownNow()
		w.mu.Lock()
		w.own[at] = now
		w.mu.Unlock()
		w.flush()
	})
}

// each calls at the beginning of the window, and at the end of each second that is not over before the call before.
func (w *watch) each(ctx context.Context, call func(at int)) {
	timer := time.NewTimer(time.Until(w.began))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		since := time.Since(w.began)
		call(int((since + time.Second/2) / time.Second))
		timer.Reset(time.Until(w.began.Add((time.Since(w.began)/time.Second + 1) * time.Second)))
	}
}

func (w *watch) observe(ctx context.Context, o Observer, at int) {
	limited, cancel := context.WithTimeout(ctx, observeMost)
	defer cancel()
	readings, err := o.Observe(limited)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if ctx.Err() != nil {
			return // the load is over
		}
		if w.wrong == nil {
			w.wrong = err
		}
		w.failed++
		return
	}
	w.servers[at] = readings
}

// into adds what was seen to the seconds of a result.
func (w *watch) into(r *Result) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range r.Seconds {
		from, began := w.own[i]
		if to, ended := w.own[i+1]; began && ended {
			r.Seconds[i].Collector, r.Seconds[i].CPU = to.collector-from.collector, to.cpu-from.cpu
		}
	}
	w.seen(r, 0)
	r.CPU = time.Duration((ownNow().cpu - w.own[0].cpu) * float64(time.Second))
}

// seen adds what the servers said to a result whose window began with a second of the watch.
func (w *watch) seen(r *Result, first int) {
	r.Before = w.servers[first]
	for i := range r.Seconds {
		r.Seconds[i].Servers = w.servers[first+i+1]
	}
	if w.failed > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d looks at the servers failed: %v", w.failed, w.wrong))
	}
}

// Observe looks at servers each second, for a load that is sent from elsewhere, until it is told the load's result:
// to that it adds what it has seen. It must be told one.
func Observe(ctx context.Context, o Observer) func(*Result) {
	ctx, stop := context.WithCancel(ctx)
	w := &watch{began: time.Now(), servers: map[int][]Reading{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.each(ctx, func(at int) { w.observe(ctx, o, at) })
	}()
	return func(r *Result) {
		stop()
		<-ended
		w.seen(r, int(math.Round(r.Began.Sub(w.began.Round(0)).Seconds())))
	}
}
