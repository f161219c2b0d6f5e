package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Queries that do what they are named after.
const (
	eats  = "SELECT list(a.range::VARCHAR || b.range) FROM range(100000) a, range(100000) b"
	spins = "SELECT count(*) FROM range(1000000000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
)

// crashWithin is the time in which a query that spins is killed.
const crashWithin = 10 * time.Second

// children measures what queries that eat memory, spin and crash cost: the server, and a run beside them.
func children(ctx context.Context, o options, out *figures) error {
	urls, err := o.items(loadFiles, max(1, o.Size/loadFiles))
	if err != nil {
		return err
	}
	again := func() (float64, error) {
		cmd, err := o.loading(ctx, urls)
		if err != nil {
			return 0, err
		}
		return work(cmd)
	}
	if out.Steps["run alone"], err = again(); err != nil {
		return err
	}
	return o.with(ctx, func(s *server) error {
		for name, misuse := range map[string]func(context.Context, *server) error{
			"eats memory": refusedWith(eats, http.StatusUnprocessableEntity),
			"spins":       o.spin, "crashes": crash,
		} {
			began := time.Now()
			if err := o.beside(ctx, s, out, name, misuse, again); err != nil {
				return fmt.Errorf("a query that %s: %w", name, err)
			}
			out.Steps[name] = time.Since(began).Seconds()
		}
		now, most, err := s.memory()
		out.Counts["server MB"], out.Counts["server MB at the end"] = most, now
		return err
	})
}

// beside lets runs work while a query is misused, one at least, and asks the server whether it is well.
func (o options) beside(ctx context.Context, s *server, out *figures, name string,
	misuse func(context.Context, *server) error, again func() (float64, error)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var busy sync.WaitGroup
	var misuseErr error
	var health []float64
	done := make(chan struct{})
	busy.Go(func() { misuseErr = misuse(ctx, s); close(done) })
	busy.Go(func() { health = s.health(ctx, done) })
	var times []float64
	for over := false; !over; {
		took, err := again()
		if err != nil {
			return err
		}
		times = append(times, took)
		select {
		case <-done:
			over = true
		default:
		}
	}
	busy.Wait()
	if misuseErr != nil {
		return misuseErr
	}
	out.Steps["run while it "+name] = median(times)
	out.Steps["an answer while it "+name] = hundredth(health, 95)
	var p page
	return s.ask(ctx, http.MethodPost, inWorkspace+"/queries", query("SELECT count(*) FROM items"), &p)
}

func query(sql string) map[string]string { return map[string]string{"sql": sql} }

// health asks for a run until done; an answer that does not come counts as the time that it was waited for.
func (s *server) health(ctx context.Context, done <-chan struct{}) (took []float64) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		if err := s.ask(ctx, http.MethodGet, ofRun, nil, nil); err != nil {
			return append(took, askWithin.Seconds())
		}
		took = append(took, time.Since(began).Seconds())
		select {
		case <-done:
			return took
		case <-tick.C:
		}
	}
}

var errNotRefused = errors.New("the query was not refused as it should be")

// refusedWith asks a query that is refused.
func refusedWith(sql string, status int) func(context.Context, *server) error {
	return func(ctx context.Context, s *server) error {
		err := s.ask(ctx, http.MethodPost, inWorkspace+"/queries", query(sql), nil)
		var r *refused
		if errors.As(err, &r) && r.status == status {
			return nil
		}
		return errors.Join(errNotRefused, err)
	}
}

// spin asks a query that spins, until it is refused or the client has enough.
func (o options) spin(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, o.Spin)
	defer cancel()
	err := refusedWith(spins, http.StatusUnprocessableEntity)(ctx, s)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// crash asks a query whose child crashes.
func crash(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, crashWithin)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- refusedWith(spins, http.StatusUnprocessableEntity)(ctx, s) }()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-answered:
			return err
		case <-tick.C:
			for _, pid := range s.busy() {
				if err := syscall.Kill(pid, syscall.SIGSEGV); err != nil && !errors.Is(err, syscall.ESRCH) { // it has ended
					return errors.Join(err, <-answered)
				}
			}
		}
	}
}

// computesFor is the processor time of a child that answers something long.
const computesFor = 500 * time.Millisecond

// busy lists children of the server that have computed for a while.
func (s *server) busy() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is right
	for _, path := range all {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if of := statOf(pid); of.parent == s.cmd.Process.Pid && of.own >= computesFor {
			pids = append(pids, pid)
		}
	}
	return pids
}
