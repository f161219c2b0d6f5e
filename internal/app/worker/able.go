package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"thalweg/internal/app/registry"
	"thalweg/internal/base/format"
	"thalweg/internal/base/keeper"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/run/job"
	"thalweg/internal/run/python"
	"thalweg/internal/store/queue"
)

// How a worker looks whether it can work.
const (
	ableEvery    = 3 * time.Second
	scratchBytes = 1 << 20          // that it must be able to write
	noticeKept   = 10 * time.Minute // that it is told what was odd once
	// pythonFirst and pythonLongest space the questions to an interpreter that does not say
	// what it is, pythonAgain those to one that is not there.
	pythonFirst   = time.Second
	pythonLongest = time.Minute
	pythonAgain   = 5 * time.Minute
)

// able holds the state of a worker's health: why it takes no work, and what somebody should look
// at.
type able struct {
	dir    string // where it has to be able to write
	in     string // the scratch directory that this is in
	python func(ctx context.Context) (string, error)
	broker func() queue.Stats // nil: none
	logger *slog.Logger
	probe  func(dir string) error

	now chan struct{} // asks to look at once

	mu      sync.Mutex
	version string // of the interpreter; "": not known so far
	doubt   string // why not
	full    string // why dir cannot be written; "": it can
	memory  string // who holds the memory that it waits for
	unread  []string
	well    chan struct{} // closed while dir can be written
	asked   chan struct{} // closed when the interpreter was asked once
}

func newAble(s *Server) *able {
	a := &able{dir: s.WorkDir, in: s.Instance.Dir, logger: s.opts.Logger, probe: probeScratch,
		now: make(chan struct{}, 1), well: make(chan struct{}), asked: make(chan struct{})}
	close(a.well)
	a.python = func(ctx context.Context) (string, error) {
		return python.Version(ctx, s.opts.Interpreter, s.opts.Keeper)
	}
	return a
}

// told returns the content of the worker's note: its interpreter's version, why it takes no work,
// and what is odd.
func (a *able) told() (version string, cannot, notices []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.full != "" {
		cannot = append(cannot, a.full)
	}
	if a.memory != "" {
		cannot = append(cannot, "it waits for memory: "+a.memory)
	}
	if a.doubt != "" {
		notices = append(notices, a.doubt)
	}
	if a.broker != nil {
		notices = append(notices, oddMessages(a.broker(), time.Now())...)
	}
	return a.version, cannot, append(notices, a.unread...)
}

// oddMessages says what was odd in the broker not long ago.
func oddMessages(s queue.Stats, now time.Time) (said []string) {
	if n := s.Newer; n > 0 && now.Sub(s.NewerAt) < noticeKept {
		said = append(said,
			fmt.Sprintf("%s of a later version of Thalweg came through the broker: they are set aside, and "+
				"runs go on from the state; end who writes them, or replace this worker",
				format.Counted(int64(n), "message", "messages")))
	}
	if n := s.Malformed; n > 0 && now.Sub(s.MalformedAt) < noticeKept {
		said = append(said,
			fmt.Sprintf("%s that nobody can read came through the broker, and were dropped: see who else "+
				"writes to its queues",
				format.Counted(int64(n), "message", "messages")))
	}
	return said
}

// is reports whether the worker can take work.
func (a *able) is() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full == ""
}

// wait returns when the worker can take work, or ctx ends.
func (a *able) wait(ctx context.Context) error {
	a.mu.Lock()
	well := a.well
	a.mu.Unlock()
	select {
	case <-well:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// look asks to look at once whether it can.
func (a *able) look() {
	select {
	case a.now <- struct{}{}:
	default:
	}
}

// watch looks again and again whether the worker can work, until ctx ends; changed is called
// when that is otherwise.
func (a *able) watch(ctx context.Context, changed func()) {
	tick := time.NewTicker(ableEvery)
	defer tick.Stop()
	for {
		if a.note(a.probe(a.dir)) {
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.now:
		}
	}
}

// note keeps whether the scratch directory can be written, and reports whether that has changed.
func (a *able) note(err error) bool {
	full := ""
	if err != nil {
		full = fmt.Sprintf("its scratch directory %s cannot be written: %v", a.in, reasonOf(err))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.full
	if was == full {
		return false
	}
	a.full = full
	switch {
	case full == "":
		close(a.well)
		a.logger.Warn("the scratch directory can be written again: batches are taken again", "directory", a.in)
	case was == "":
		a.well = make(chan struct{})
		a.logger.Error("no batch is taken: the scratch directory cannot be written; make room, or mend its permissions",
			"directory", a.in, "error", err)
	}
	return true
}

// reasonOf returns the system's error without the path.
func reasonOf(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// probeScratch writes something that has to fit.
func probeScratch(dir string) (err error) {
	f, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(make([]byte, scratchBytes))
	return errors.Join(err, f.Close())
}

// waits says who holds the memory that the worker waits for; "": it has it.
func (a *able) waits(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.memory = text
}

// cannotRead says which workspaces cannot be read.
func (a *able) cannotRead(said []string) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed = !slices.Equal(a.unread, said)
	a.unread = said
	return changed
}

// askPython asks the interpreter what it is until it says so: one that was killed, or takes
// too long, may say it the next time.
func (a *able) askPython(ctx context.Context, changed func()) {
	first := sync.OnceFunc(func() { close(a.asked) })
	defer first()
	for pause := pythonFirst; ctx.Err() == nil; pause = min(2*pause, pythonLongest) {
		version, err := a.python(ctx)
		if ctx.Err() != nil {
			return
		}
		var none *keeper.NotThereError
		missing := errors.As(err, &none)
		a.mu.Lock()
		switch a.version, a.doubt = version, ""; {
		case missing: // runs without Python need none
			a.version = "none"
		case err != nil:
			a.version, a.doubt = "unknown", registry.Shorten(err.Error())
		}
		a.mu.Unlock()
		first()
		changed()
		if err == nil {
			return
		}
		a.logger.Debug("the interpreter does not say what it is; it is asked again", "error", err)
		if missing {
			pause = pythonAgain
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
	}
}

// The worker's part of it.

// watchAble looks whether this worker can work until it is told not to.
func (s *Server) watchAble(ctx context.Context) (done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var loop sync.WaitGroup
	loop.Go(func() { s.able.watch(ctx, s.ableChanged) })
	return func() {
		cancel()
		loop.Wait()
	}
}

// ableChanged has runs looked for, and others told.
func (s *Server) ableChanged() {
	s.saysElse()
	s.look(queue.Signal{})
}

// admit waits until one more batch may be claimed.
func (s *Server) admit(ctx context.Context) (release func(), err error) {
	if err := s.able.wait(ctx); err != nil {
		return nil, err
	}
	return s.limiter.Admit(ctx)
}

// room reports whether a batch of a kind of node may be claimed now.
func (s *Server) room(kind string) (leave func(), ok bool) {
	if !s.able.is() {
		return nil, false
	}
	return s.limiter.Room(concurrency.ClassOf(kind))
}

// waiting says who holds the memory that this worker waits for; "": nobody does.
func (s *Server) waiting(text string) {
	s.able.waits(text)
	s.saysElse()
	if text != "" && s.opts.Waiting != nil {
		s.opts.Waiting(text)
	}
}

// reasons returns why this worker takes no work, and what somebody should look at. What it refuses
// single runs for is among the latter.
func (s *Server) reasons() (cannot, notices []string) {
	_, cannot, notices = s.able.told()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.refused {
		if r.why != "" && !s.joined[r.run] && time.Now().Before(r.until.Add(r.wait)) {
			notices = append(notices, fmt.Sprintf("run %d in workspace %s is not worked on here: %s", r.run.Run,
				r.run.Workspace, registry.Shorten(s.opts.Known.Text(r.why))))
		}
	}
	slices.Sort(notices)
	return cannot, notices
}

// heeding looks whether this worker can work when a batch fails.
func (s *Server) heeding(observe func(job.Event)) func(job.Event) {
	return func(e job.Event) {
		if e.Kind == job.BatchRetried || e.Kind == job.BatchFailed {
			s.able.look()
		}
		observe(e)
	}
}
