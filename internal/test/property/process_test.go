package property

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"thalweg/internal/base/fault"
)

// process is one of a trial's.
type process struct {
	deed  deed
	spec  string
	cmd   *exec.Cmd
	out   buffer
	err   buffer
	began time.Time
	ended chan struct{} // closed when it has
	fail  error         // of its end

	from  syscall.Signal // that comes from outside; 0: none
	after time.Duration  // when
	child bool           // to a child of it
	sent  bool

	stopped time.Time // when that was seen
	hold    time.Duration
	woken   bool
}

// delayed is a process that begins later.
type delayed struct {
	at    time.Time
	deed  deed
	fault bool
}

// buffer takes what a process says.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns the output so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// endedBy is the signal that has ended it; 0: none.
func (p *process) endedBy() syscall.Signal {
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return s.Signal()
	}
	return 0
}

func (t *trial) soon(after time.Duration, d deed, faulty bool) {
	t.waiting = append(t.waiting, delayed{time.Now().Add(after), d, faulty})
}

// start begins a process, perhaps one to which something will happen.
func (t *trial) start(d deed, faulty bool) {
	d.Dir, d.Variant, d.Lease = t.dir, t.variant, t.lease
	p := &process{ended: make(chan struct{})}
	if faulty && t.faults > 0 && !t.g.oneIn(4) {
		t.draw(&d, p)
	}
	p.deed = d
	text, err := json.Marshal(d)
	p.spec = filepath.Join(t.dir, fmt.Sprintf("deed-%d-%d-%d.json", t.round, t.turn, len(t.procs)))
	if err == nil {
		err = os.WriteFile(p.spec, text, 0o644)
	}
	if err == nil {
		p.cmd = exec.Command(os.Args[0])
		p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = t.dir, &p.out, &p.err
		p.cmd.Env = append(os.Environ(), actorSpec+"="+p.spec)
		p.cmd.WaitDelay = time.Second // children that have its pipes do not keep it
		p.began = time.Now()
		err = p.cmd.Start()
	}
	if err != nil {
		t.say("cannot start %s: %v", d.Do, err)
		return
	}
	go func() {
		defer close(p.ended)
		p.fail = p.cmd.Wait()
	}()
	t.procs = append(t.procs, p)
	t.tally.add("processes", 1)
	t.say("%s", p)
}

// String says what it does, and what will happen to it.
func (p *process) String() string {
	d := p.deed
	text := fmt.Sprintf("%d: %s run %d", p.cmd.Process.Pid, d.Do, d.Run)
	if d.Do == "decide" {
		text += fmt.Sprintf(" gate %s approve %v %v", d.Gate, d.Approve, d.Answers)
	}
	if !d.Again.Empty() {
		text += fmt.Sprintf(" %+v", d.Again)
	}
	if d.Node != "" {
		text += " node " + d.Node
	}
	if d.Signal != 0 {
		text += fmt.Sprintf(", %v at step %d", d.Signal, d.Step)
	}
	if p.from != 0 {
		text += fmt.Sprintf(", %v after %v", p.from, p.after)
		if p.child {
			text += " to a child"
		}
	}
	if d.TaskFail > 0 {
		text += fmt.Sprintf(", task %d fails", d.TaskFail)
	}
	return text
}

// draw draws what happens to a process: at one of its steps, or at any moment.
func (t *trial) draw(d *deed, p *process) {
	t.faults--
	drives := slices.Contains([]string{"run", "resume", "retry", "matrix"}, d.Do)
	p.hold = t.lease + time.Duration(t.g.IntN(int(t.lease)))
	switch n := t.g.IntN(20); {
	case n < 3 && drives && t.python() || n < 1 && d.Do == "worker" && t.python():
		p.from, p.child = syscall.SIGKILL, true
	case n < 4 && drives:
		d.TaskFail = 1 + t.g.IntN(tasksEarly/2)
		return
	case n < 12:
		p.from = syscall.SIGKILL
	case n < 16:
		p.from = syscall.SIGSTOP
	default:
		p.from = syscall.SIGTERM
	}
	if !p.child && t.g.oneIn(2) {
		d.Signal, p.from, d.Step = p.from, 0, 1+t.g.IntN(pick(t.g, 20, 60, 200, 600))
		return
	}
	p.after = time.Duration(t.g.IntN(pick(t.g, 30, 100, 300, 700))) * time.Millisecond
}

// python says whether the script calls it.
func (t *trial) python() bool {
	return slices.ContainsFunc(t.script.nodes, func(n node) bool { _, ok := n.(*python); return ok })
}

// look at processes so often.
const attendEvery = 3 * time.Millisecond

// attend lets happen what is to happen, until only workers are left.
func (t *trial) attend(ctx context.Context) error {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	end := time.Now().Add(turnTimeout)
	for {
		busy := t.happenAll()
		t.waiting = slices.DeleteFunc(t.waiting, func(w delayed) bool {
			due := busy && !time.Now().Before(w.at)
			if due {
				t.start(w.deed, w.fault)
			}
			return due
		})
		if !busy {
			t.waiting = nil
			return t.reap()
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return t.stuck()
		}
		<-tick.C
	}
}

// happen does to a process what is due.
func (t *trial) happen(p *process) {
	pid := p.cmd.Process.Pid
	if p.from != 0 && !p.sent && time.Since(p.began) >= p.after {
		if p.child {
			p.sent = t.killChild(p)
			return
		}
		p.sent = true
		if syscall.Kill(pid, p.from) == nil && !p.over() {
			t.say("%v to %d", p.from, pid)
			if p.from == syscall.SIGTERM {
				t.tally.add("SIGTERM at any moment", 1)
			}
		}
	}
	switch stops := p.from == syscall.SIGSTOP && p.sent || p.deed.Signal == syscall.SIGSTOP; {
	case !stops || p.woken:
	case p.stopped.IsZero() && standsStill(pid):
		p.stopped = time.Now()
		t.tally.add(map[bool]string{true: "SIGSTOP at a step", false: "SIGSTOP at any moment"}[p.deed.Signal != 0], 1)
		t.say("%d stands still", pid)
		t.rival(p)
	case !p.stopped.IsZero() && time.Since(p.stopped) >= p.hold:
		p.woken = true
		_ = syscall.Kill(pid, syscall.SIGCONT)
		t.say("%d goes on", pid)
	}
}

// rival does what a process does that stands still.
func (t *trial) rival(p *process) {
	d := p.deed
	d.Signal, d.Step, d.TaskFail = 0, 0, 0
	if d.Do == "worker" {
		return // somebody drives the run, or will
	}
	if d.Do == "retry" {
		d.Do, d.Again = "resume", deed{}.Again
	}
	t.start(d, false)
}

func standsStill(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return err == nil && len(f) > 0 && f[0] == "T"
}

// killChild kills a child of a process, or one of its children, if it has one by now.
func (t *trial) killChild(p *process) bool {
	all := descendants(p.cmd.Process.Pid)
	if len(all) == 0 {
		return false
	}
	one := all[t.g.IntN(len(all))]
	if syscall.Kill(one, syscall.SIGKILL) != nil {
		return false
	}
	t.hurt = true
	t.tally.add("SIGKILL to a child", 1)
	t.say("killed %d, a child of %d", one, p.cmd.Process.Pid)
	return true
}

func descendants(pid int) (all []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range threads {
		more, _ := os.ReadFile(name)
		text = append(append(text, ' '), more...)
	}
	for _, f := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(f); err == nil && !slices.Contains(all, child) {
			all = append(append(all, child), descendants(child)...)
		}
	}
	return all
}

// reap looks how the processes have ended, and forgets them.
func (t *trial) reap() error {
	var errs []error
	t.procs = slices.DeleteFunc(t.procs, func(p *process) bool {
		if !p.over() {
			return false
		}
		errs = append(errs, t.account(p))
		return true
	})
	return errors.Join(errs...)
}

// account says whether a process may have ended as it did.
func (t *trial) account(p *process) error {
	var said said
	_ = json.Unmarshal([]byte(p.out.String()), &said) // one that was killed has said nothing
	by, pid := p.endedBy(), p.cmd.Process.Pid
	t.say("%d ended: %v %s", pid, p.cmd.ProcessState, strings.TrimSpace(p.out.String()))
	switch {
	case by == syscall.SIGKILL && (p.from == by || p.deed.Signal == by):
		t.tally.add(map[bool]string{true: "SIGKILL at a step", false: "SIGKILL at any moment"}[p.deed.Signal != 0], 1)
		t.tally.add("killed: "+map[bool]string{true: "an order",
			false: p.deed.Do}[slices.Contains([]string{"stop", "pause", "invalidate"}, p.deed.Do)], 1)
		return nil
	case by == syscall.SIGTERM && p.from == by: // it did not listen yet
		return nil
	case by != 0:
		return fmt.Errorf("%s\nwas ended by %v\n%s", p, by, p.err.String())
	case p.deed.Signal == syscall.SIGTERM && said.Steps >= p.deed.Step:
		t.tally.add("SIGTERM at a step", 1)
	case p.deed.TaskFail > 0:
		t.tally.add("a task fails once", 1)
		t.hurt = true
	}
	if ended := p.cmd.ProcessState.ExitCode(); ended > 1 || ended == 1 && said.Kind == "" ||
		strings.Contains(p.err.String(), "goroutine ") {
		return fmt.Errorf("%s\nended with %d: %s\n%s", p, ended, p.out.String(), p.err.String())
	}
	return t.weigh(p.deed, said)
}

// weigh says whether a deed may have gone as it did.
func (t *trial) weigh(d deed, how said) error {
	if d.Do == "matrix" {
		t.finished = how.Cells
	}
	t.tally.add("runs dropped by gc", how.Dropped)
	t.tally.add("parts removed by gc", int(how.Removed))
	switch how.Kind {
	case "", fault.Script, fault.Canceled: // it came too late, or somebody else had been there
		return nil
	case fault.Environment:
		if t.hurt || d.Do == "gc" { // another one collects
			return nil
		}
	}
	return fmt.Errorf("%s run %d: %+v", d.Do, d.Run, how)
}

// here does a deed in this process, while workers may still be woken.
func (t *trial) here(ctx context.Context, d deed) error {
	d.Dir, d.Variant, d.Lease = t.dir, t.variant, t.lease
	done := make(chan said, 1)
	go func() { done <- perform(ctx, d) }()
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		select {
		case how := <-done:
			t.say("%s run %d %s here: %+v", d.Do, d.Run, d.Gate, how)
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("%s run %d: %w", d.Do, d.Run, err)
			}
			return errors.Join(t.weigh(d, how), t.attend(ctx))
		case <-tick.C:
			t.happenAll()
		}
	}
}

// happenAll lets happen what is due, and reports whether somebody else than
// workers is at work.
func (t *trial) happenAll() (busy bool) {
	for _, p := range t.procs {
		if p.over() {
			continue
		}
		t.happen(p)
		busy = busy || p.deed.Do != "worker" || !p.stopped.IsZero() && !p.woken
	}
	return busy
}

// stuck says what the processes do that do not end.
func (t *trial) stuck() error {
	var text strings.Builder
	for _, p := range t.procs {
		if !p.over() {
			_ = p.cmd.Process.Signal(syscall.SIGCONT)
			_ = p.cmd.Process.Signal(syscall.SIGQUIT)
			<-p.ended
			fmt.Fprintf(&text, "%s\n%s\n", p, p.err.String())
		}
	}
	return fmt.Errorf("it does not end:\n%s", text.String())
}

// end ends what is left of processes: they are workers, unless the trial has failed.
func (t *trial) end() error {
	for _, p := range t.procs {
		_ = p.cmd.Process.Signal(syscall.SIGCONT)
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	late := time.NewTimer(turnTimeout)
	defer late.Stop()
	for _, p := range t.procs {
		select {
		case <-p.ended:
			if p.from == 0 {
				p.from = syscall.SIGTERM
			}
			if p.endedBy() == syscall.SIGTERM {
				p.from = syscall.SIGTERM
			}
		case <-late.C:
			return t.stuck()
		}
	}
	return t.reap()
}
