package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
	"thalweg/internal/base/keeper"
)

// process is a child as its parent sees it.
type process struct {
	slot   int
	kind   Kind
	hear   hearer
	peer   *peer
	guard  *keeper.Guard
	held   *holds
	output *output
	dir    string
	logger *slog.Logger

	first   int64 // what it held after its start
	batches int
	// collector is the processor time of its garbage collector up to its last batch.
	collector time.Duration
	killsAt   atomic.Int64 // see memoryKills, not long ago
	silences  atomic.Int64
	reason    atomic.Pointer[string]     // why we have killed it; nil: we have not
	told      atomic.Bool                // its death has failed an attempt
	asked     atomic.Bool                // it was told to end
	batch     atomic.Pointer[batchHooks] // of the batch that it executes; nil: none
	tell      func(End)

	ended chan struct{} // closed when it is gone, and nothing of it is held any more
	state keeper.State  // then
	peak  int64         // then: its largest resident size in bytes, 0 unknown
	work  sync.WaitGroup
}

// startProcess starts a child; it has not been told anything yet. It must be
// called on a thread that lives as long as the child may.
func (s *Slots) startProcess(number int, kind Kind) (_ *process, err error) {
	dir, err := os.MkdirTemp(s.cfg.WorkDir, fmt.Sprintf("slot-%d-", number))
	if err != nil {
		return nil, fmt.Errorf("make a directory for slot %d: %w", number, err)
	}
	p := &process{slot: number, kind: kind, held: newHolds(), output: &output{}, dir: dir, tell: s.cfg.Ended,
		logger: s.cfg.Logger.With("slot", number), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	program := kind.Command()
	program.Files, program.Stdout, program.Stderr = []*os.File{theirs}, p.output, p.output
	program.WaitDelay = endTimeout // for what it has started that keeps its output open
	p.peer = newPeer(ours)
	s.lend(p)
	if p.guard, err = keeper.Start("", program); err != nil {
		return nil, errors.Join(fmt.Errorf("start the process of slot %d: %w", number, err), ours.Close())
	}
	p.work.Go(p.wait)
	return p, nil
}

// socketPair gives the two ends of a connection.
func socketPair() (ours net.Conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket for a slot: %w", err)
	}
	closeOnExec(fds[0])
	closeOnExec(fds[1])
	mine := os.NewFile(uintptr(fds[0]), "slot")
	theirs = os.NewFile(uintptr(fds[1]), "parent")
	if ours, err = fileConn(mine); err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// fileConn is the connection of a socket, which it closes.
func fileConn(f *os.File) (net.Conn, error) {
	conn, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("open the socket of a slot: %w", err)
	}
	return conn, nil
}

// lend lets a child use what its parent has.
func (s *Slots) lend(p *process) {
	p.peer.tells["beat"] = func([]byte) { p.silences.Store(0) }
	p.peer.calls["piece"] = p.hear.piece
	if p.peer.bare = p.kind.Bare; p.kind.Bare {
		return
	}
	lendHolds(p.peer, p.held)
	lendState(p.peer, s.cfg.State)
	lendParts(p.peer, s.cfg.Parts, p.held)
	lendRoom(p.peer, s.cfg.Room, p.held, &p.batch)
	p.peer.calls["copies"] = answers(s.copies)
	p.peer.tells["log"] = hears(func(l logged) {
		attrs := make([]slog.Attr, len(l.Attrs))
		for i, a := range l.Attrs {
			attrs[i] = slog.String(a[0], a[1])
		}
		p.logger.LogAttrs(context.Background(), l.Level, l.Message, attrs...)
	})
}

// wait serves the child until it is gone, and gives back what it holds.
func (p *process) wait() {
	defer close(p.ended)
	served := make(chan error, 1)
	go func() { served <- p.peer.run() }()
	p.state = p.guard.Wait()
	if size, ok := p.guard.PeakUnits(); ok {
		p.peak = size * maxrssUnit
	}
	_ = p.peer.conn.Close() // nobody is at the other end
	err := <-served
	p.held.releaseAll()
	if !p.asked.Load() {
		p.tell(p.why())
	}
	if err = errors.Join(err, os.RemoveAll(p.dir)); err != nil {
		p.logger.Warn("a slot's process has left something", "error", err)
	}
}

// why says why a child has ended that was not told to.
func (p *process) why() End {
	switch {
	case p.reason.Load() != nil:
		return Killed
	case p.lacksMemory(p.output.String()):
		return Memory
	}
	return Died
}

// watch kills the child when it has said nothing for so many ticks: ticks of
// this process, which may have stood still as well.
func (p *process) watch(ctx context.Context, silence time.Duration) {
	tick := time.NewTicker(silence / silenceTicks)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.ended:
			return
		case <-tick.C:
			if p.silences.Add(1) > silenceTicks {
				p.kill(fmt.Sprintf("it stood still for %s", silence))
				return
			}
			if !p.gone() {
				p.killsAt.Store(memoryKills())
			}
		}
	}
}

// silenceTicks is the number of checks within the time that a child may be silent.
const silenceTicks = 8

// kill ends the child and what it has started, for a reason.
func (p *process) kill(reason string) {
	p.reason.CompareAndSwap(nil, &reason)
	p.guard.Kill()
	_ = p.peer.conn.Close() // whoever waits for an answer gets none
}

// gone reports whether the child has ended.
func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// await waits for the child's end, but not for ever: the system may not be able to end it.
func (p *process) await() {
	late := time.NewTimer(endTimeout)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
		p.logger.Warn("a slot's process does not end although it was killed")
	}
}

// death is the failure of what a child was doing when it died. hint is what whoever has asked does about it, "" for
// batches: those may well be good.
func (p *process) death(doing, hint string) error {
	p.told.Store(true)
	f := &fault.Error{Kind: fault.Environment, Retryable: true,
		Message: fmt.Sprintf("the process of slot %d ended while it was %s", p.slot, doing),
		Hint: cmp.Or(hint, "the batch is tried again in a new process; if it dies again, look into the system's log, "+
			"and at what the batch's formulas and libraries do")}
	if hint != "" {
		f.Kind, f.Retryable = fault.Script, false
	}
	if !p.gone() {
		f.Message += ", and cannot be waited for"
		return f
	}
	how := p.state.String()
	if reason := p.reason.Load(); reason != nil {
		how = "it was killed because " + *reason
	}
	f.Detail = p.output.String()
	if words := lastWords(f.Detail); words != "" {
		how += ", " + words
	}
	f.Message += ": " + how
	if p.peak > 0 {
		f.Message += fmt.Sprintf(" (it held %d MiB at most)", p.peak>>20)
	}
	if p.lacksMemory(f.Detail) {
		f.Message += "; the system was probably out of memory"
		f.Hint = cmp.Or(hint, "give the worker less memory ({{set memory}}) or fewer slots ({{set cores}}) than the machine has, "+
			"or see what else uses its memory")
	}
	return f
}

// lacksMemory reports whether the child ended because there was no memory for it, as far as one can tell.
func (p *process) lacksMemory(said string) bool {
	said = strings.ToLower(said)
	for _, sign := range []string{"out of memory", "bad_alloc", "cannot allocate memory", "failed to allocate"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return p.reason.Load() == nil && p.state.Status.Signaled() && p.state.Status.Signal() == syscall.SIGKILL &&
		memoryKills() > p.killsAt.Load()
}

// end lets an idle child end by itself, or else kills it, and waits. It has
// nothing that could be lost.
func (p *process) end() {
	p.asked.Store(true)
	_ = p.peer.conn.Close() // it ends by that
	late := time.NewTimer(idleGrace)
	defer late.Stop()
	select {
	case <-p.ended:
	case <-late.C:
		p.kill("it did not end")
		p.await()
	}
	if p.gone() {
		p.work.Wait()
	}
}

// output keeps the beginning and the end of what is printed while a batch is
// executed: a death says first what it died of, or last.
type output struct {
	mu          sync.Mutex
	first, last []byte
	left        int // bytes between them
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(b), outputMax-len(o.first))
	o.first = append(o.first, b[:n]...)
	o.last = append(o.last, b[n:]...)
	if more := len(o.last) - outputMax; more > 0 {
		o.last = append(o.last[:0], o.last[more:]...)
		o.left += more
	}
	return len(b), nil
}

// begin forgets what was printed.
func (o *output) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.first, o.last, o.left = o.first[:0], o.last[:0], 0
}

// String returns the kept output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := string(o.first)
	if o.left > 0 {
		text += fmt.Sprintf("\n… %d bytes …\n", o.left)
	}
	return strings.ToValidUTF8(strings.TrimSpace(text+string(o.last)), "?")
}

// lastWords finds the line in which a runtime says why it ends its process; "" if it does not.
func lastWords(printed string) string {
	const bytesMax = 200
	for line := range strings.Lines(printed) {
		for _, begin := range []string{"fatal error: ", "panic: ", "terminate called ", "SIG",
			"runtime: out of memory"} {
			if strings.HasPrefix(line, begin) {
				line = strings.TrimSpace(line)
				return line[:min(len(line), bytesMax)]
			}
		}
	}
	return ""
}
