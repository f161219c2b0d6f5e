package python

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

// slot is one place of the pool: a goroutine that owns a process, starts it when
// there is work, replaces it when it has to, and watches what it does.
type slot struct {
	pool  *Pool
	index int
	wake  chan struct{} // something was assigned
	early bool          // its first process is started before anything is

	// Guarded by pool.mu.
	load     int      // chunks assigned or sent, and not finished
	last     *chunk   // assigned
	assigned []*chunk // to be sent
	stopped  bool     // takes no more chunks
	live     bool     // has a process, or may have

	// Of the slot's goroutine.
	proc     *process
	sent     []*chunk // oldest first: the process computes sent[0]
	recycled time.Time
	sight    sight
	time     *stopwatch // of proc
}

// sight is the last observation of a process, and its time.
type sight struct {
	row, sequence int64
	since         time.Time
	asked         time.Time     // when the row was asked to stop
	dumped        time.Time     // when the process was asked to show where it is
	useless       time.Time     // when the chunk was first seen to have nobody waiting
	stopped       time.Duration // of the process's stopwatch, since then
}

// watchInterval is the time between two looks at what a process does.
func (c *Config) watchInterval() time.Duration {
	return min(max(c.RowTimeout/watchParts, watchMin), watchMax)
}

// clocks are those of the limits of what the process does, and of what is done with it.
func (s *slot) clocks() (its, ours time.Time) {
	if clock := s.pool.cfg.clock; clock != nil {
		now := clock()
		return now, now
	}
	spent, passed := s.time.look()
	began := time.Unix(0, 0)
	return began.Add(spent), began.Add(passed)
}

// serve runs until the pool is closed.
func (s *slot) serve() {
	defer s.pool.slotsWG.Done()
	defer s.shutdown()
	interval := s.pool.cfg.watchInterval()
	ticker := time.NewTicker(interval)
	ticker.Stop()
	ticking := false
	if s.early && s.wanted() {
		if err := s.ensure(); err != nil { // work for it would meet the same, and somebody waits for that
			s.pool.cfg.Logger.Debug("python could not be started early", "error", err)
		}
	}
	for {
		s.sendAssigned()
		s.rest()
		if working := len(s.sent) > 0; working != ticking {
			if ticking = working; ticking {
				ticker.Reset(interval)
			} else {
				ticker.Stop()
			}
		}
		var answers chan incoming
		if s.proc != nil {
			answers = s.proc.incoming
		}
		select {
		case <-s.wake:
		case in, ok := <-answers:
			s.receive(in, ok)
		case <-ticker.C:
			s.watch()
		case <-s.pool.closing:
			return
		}
	}
}

// wanted reports whether the slot may have a process; see Pool.Limit.
func (s *slot) wanted() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.live = s.proc != nil
	return s.index < s.pool.limit || s.load > 0
}

// rest ends the process if the pool is to have fewer.
func (s *slot) rest() {
	if s.wanted() || s.proc == nil {
		return
	}
	s.proc.stop()
	s.proc.release()
	s.proc = nil
	s.wanted()
}

// shutdown ends the process; nobody waits for its chunks any more.
func (s *slot) shutdown() {
	s.pool.mu.Lock()
	s.stopped, s.assigned = true, nil
	s.pool.mu.Unlock()
	if s.proc == nil {
		return
	}
	if len(s.sent) > 0 {
		s.proc.kill()
	} else {
		s.proc.stop()
	}
	s.proc.release()
	s.proc = nil
}

// sendAssigned gives the process what the schedule has meant for it.
func (s *slot) sendAssigned() {
	for {
		s.pool.mu.Lock()
		assigned := s.assigned
		s.assigned = nil
		s.pool.mu.Unlock()
		if len(assigned) == 0 {
			return
		}
		for _, c := range assigned {
			if c.run.over.Load() {
				s.finish(c, nil, nil)
				continue
			}
			if err := s.ensure(); err != nil {
				s.finish(c, nil, err)
				continue
			}
			s.proc.sendChunk(c.run.prog, c.sequence, c.rows, c.columns)
			s.sent = append(s.sent, c)
		}
	}
}

// ensure starts a process if there is none, and waits for its first message.
func (s *slot) ensure() error {
	if s.proc != nil {
		return nil
	}
	s.pool.mu.Lock()
	s.live = true
	s.pool.mu.Unlock()
	proc, err := s.pool.start()
	if err != nil {
		return err
	}
	if err := s.greet(proc); err != nil {
		proc.kill()
		proc.release()
		return err
	}
	s.proc = proc
	s.sight = sight{}
	s.time = newStopwatch(s.pool.cfg.watchInterval(), func() int { return proc.pid })
	_, kept := proc.guard.Program()
	s.pool.cfg.Logger.Debug("python started", "pid", proc.pid, "implementation", proc.hello.Implementation,
		"version", proc.hello.Version, "took", time.Since(proc.started), "children_held_by", kept)
	return nil
}

func (s *slot) greet(proc *process) error {
	t := time.NewTicker(watchMax)
	defer t.Stop()
	watch := newStopwatch(watchMax, func() int { started, _ := proc.guard.Program(); return started })
	for {
		select {
		case in, ok := <-proc.incoming:
			if err := proc.readHello(in, ok); err != nil {
				proc.kill()
				return startFault(proc, &s.pool.cfg, s.pool.path, err)
			}
			proc.identify()
			return proc.usable(s.pool.path)
		case <-t.C:
			if spent, _ := watch.look(); max(spent, watch.stopped) < startTimeout {
				continue
			}
			proc.kill()
			return startFault(proc, &s.pool.cfg, s.pool.path, errNotReady)
		case <-s.pool.closing:
			return s.pool.canceled(noContext)
		}
	}
}

var errNotReady = errors.New("it was not ready after " + startTimeout.String())

// finish gives a chunk back as done.
func (s *slot) finish(c *chunk, a *answer, err error) {
	var peak int64
	var cpu, starved time.Duration
	if s.proc != nil {
		peak = s.proc.peakBytes
		cpu, starved = s.proc.spent()
	}
	s.pool.finished(s, c, a, err, peak, cpu, starved)
}

// receive handles a message, or the end of the process's stream.
func (s *slot) receive(in incoming, ok bool) {
	if !ok {
		s.died()
		return
	}
	if len(s.sent) == 0 {
		s.replace(protocolFault(errProtocol))
		return
	}
	if in.err != nil {
		s.replace(streamFault(in.err))
		return
	}
	a, err := decodeAnswer(in.payload)
	if err == nil && (in.kind != msgResult || a.sequence != s.sent[0].sequence) {
		err = errProtocol
	}
	if err != nil {
		s.replace(protocolFault(err))
		return
	}
	s.answered(a)
}

// answered finishes the oldest chunk with its answer.
func (s *slot) answered(a *answer) {
	c := s.sent[0]
	s.sent = s.sent[1:]
	s.sight = sight{}
	proc := s.proc
	held := proc.memory(proc.firstBytes == 0)
	if held > 0 && proc.firstBytes == 0 {
		proc.firstBytes = held
	}
	var err error
	ends := false
	if f := a.report.LoadError; f != nil {
		err = s.loadFault(c.run.prog, f)
		ends = f.ends()
	}
	for i := range a.report.Errors {
		ends = ends || a.report.Errors[i].ends()
	}
	s.finish(c, a, err)
	if ends {
		s.replace(nil)
		return
	}
	s.recycle(held)
}

// recycle replaces a process that has grown too much.
func (s *slot) recycle(held int64) {
	cfg := &s.pool.cfg
	if held <= cfg.RecycleBytes || float64(held) < recycleGrowth*float64(s.proc.firstBytes) {
		return
	}
	if now := time.Now(); now.Sub(s.recycled) > recycleInterval {
		s.recycled = now
		cfg.Logger.Info("python replaced because it has grown", "pid", s.proc.pid, "bytes", held, "limit_bytes",
			cfg.RecycleBytes)
		s.replace(nil)
	}
}

// replace ends the process. With an error, the oldest chunk is finished with it;
// all others go to other processes, or to the next one here.
func (s *slot) replace(err error) {
	s.proc.memory(true)
	s.proc.kill()
	s.drop(err)
}

// drop forgets a process that has ended.
func (s *slot) drop(err error) {
	sent := s.sent
	s.sent = nil
	if err != nil && len(sent) > 0 {
		s.finish(sent[0], nil, err)
		sent = sent[1:]
	}
	s.proc.release()
	s.proc = nil
	for i := len(sent) - 1; i >= 0; i-- { // each goes to the front
		if sent[i].run.over.Load() {
			s.finish(sent[i], nil, nil)
		} else {
			s.pool.returned(s, sent[i])
		}
	}
}

// died is for a process that ended without being asked to.
func (s *slot) died() {
	proc := s.proc
	if !proc.finish(deathGrace) {
		s.drop(protocolFault(errProtocol)) // it has only closed its descriptors
		return
	}
	if len(s.sent) == 0 {
		s.pool.cfg.Logger.Warn("python ended while it had nothing to do", "pid", proc.pid, "how", proc.end)
		s.drop(nil)
		return
	}
	s.drop(crashFault(proc, s.sent[0]))
}

// watch looks at what the process does, without asking it, and acts when it has
// been at one row for too long.
func (s *slot) watch() {
	if len(s.sent) == 0 {
		return
	}
	s.proc.memory(false)
	now, ours := s.clocks()
	row, sequence := s.proc.slot(slotRow), s.proc.slot(slotSequence)
	v := &s.sight
	if v.since.IsZero() || row != v.row || sequence != v.sequence {
		*v = sight{row: row, sequence: sequence, since: now, useless: v.useless, stopped: s.time.stopped}
	}
	if s.sent[0].run.over.Load() {
		if v.useless.IsZero() {
			v.useless = ours
		}
		if ours.Sub(v.useless) > cancelGrace {
			s.replace(errStopped)
		}
		return
	}
	limit := s.sent[0].run.prog.timeout(&s.pool.cfg)
	switch row {
	case rowImport:
		limit = s.pool.cfg.ImportTimeout
	case rowNone:
		limit = stallTimeout
	}
	switch {
	case s.time.stopped-v.stopped > stallTimeout:
		s.replace(stoppedFault(s.proc, s.sent[0]))
	case now.Sub(v.since) <= limit:
	case row == rowNone:
		s.replace(stallFault(s.proc, s.sent[0]))
	case v.asked.IsZero():
		v.asked = now
		s.proc.askToStop(uint64(sequence), row)
	case now.Sub(v.asked) < killGrace:
	case v.dumped.IsZero():
		v.dumped = now
		s.proc.signal(unix.SIGUSR2)
	case now.Sub(v.dumped) >= dumpGrace:
		s.proc.kill()
		s.drop(timeoutFault(s.proc, s.sent[0], row, limit))
	}
}

// readHello checks a process's first message.
func (p *process) readHello(in incoming, ok bool) error {
	switch {
	case !ok:
		<-p.exited
		return errors.New("it ended at once: " + p.end.String())
	case in.err != nil:
		return in.err
	case in.kind != msgHello:
		return errProtocol
	}
	return decodeHello(in.payload, &p.hello)
}

// startFault is the failure of a process that has ended before it was ready.
func startFault(p *process, cfg *Config, path string, err error) error {
	f := fault.New(fault.Environment, "the Python interpreter %s does not work", path)
	f.Err = err
	f.Detail = p.stderr.Tail()
	f.Hint = "see whether it runs by itself"
	if cfg.MemoryBytes > 0 {
		f.Hint += fmt.Sprintf("; it may have %s of address space here: if that is too little, "+hintRoom,
			mebibytes(cfg.MemoryBytes))
	}
	return f
}

// hintRoom is the hint for a process that needs more memory.
const hintRoom = "give the run more memory ({{set memory}}), or fewer processes ({{set cores}})"

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", (n+1<<20-1)>>20) }
