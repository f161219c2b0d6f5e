package keeper

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Argument marks a command line that asks for a keeper; name is what such a process is called.
const (
	Argument = "__keep"
	name     = "python-keeper"
)

// Descriptors of a keeper, after the three standard ones. The program's own follow.
const (
	lifelineFD = 3 + iota // at its end the keeper kills the program
	reportFD
	programFD
)

const (
	killPatience = 10 * time.Second // from asking the keeper to kill to killing the keeper
	sweepLimit   = 2 * time.Second  // that a keeper tries to end what the program has left
)

// Cgroups are the versions of cgroups that a keeper tries, the better one first.
func Cgroups() []int { return []int{2, 1} }

// Called says whether a command line, os.Args, asks for a keeper: then it is to be
// given to Main before anything else is done.
func Called(args []string) bool { return len(args) > 2 && args[1] == Argument }

// report is a message of a keeper: one or two JSON lines.
type report struct {
	Pid       int    `json:"pid,omitempty"`
	Mechanism string `json:"mechanism,omitempty"`
	Ended     bool   `json:"ended,omitempty"`
	Status    uint32 `json:"status,omitempty"` // as wait gives it
	Error     string `json:"error,omitempty"`  // why the program could not be started
	Left      int    `json:"left,omitempty"`   // descendants that could not be ended
}

// State describes how a program ended.
type State struct {
	Status syscall.WaitStatus
	Err    error // why it could not be started
	Left   int   // descendants that are still there
}

// String is the state for people.
func (s State) String() string {
	switch {
	case s.Err != nil:
		return s.Err.Error()
	case s.Status.Signaled():
		return "signal: " + s.Status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", s.Status.ExitStatus())
}

// Guard is a program that runs. Kill may be called by any goroutine, Wait once.
type Guard struct {
	cmd      *exec.Cmd
	lifeline *os.File      // nil: there is no keeper
	known    chan struct{} // closed when the keeper has told the first thing, or never will
	told     chan struct{} // closed when it has told all

	mu        sync.Mutex
	killed    bool
	waited    bool
	last      *time.Timer
	pid       int
	mechanism string
	end       *report
}

// Start starts a program under a keeper: self names the executable that is one when it is
// called, "" for none.
func Start(self string, p Program) (*Guard, error) {
	cmd, err := p.command()
	if err != nil {
		return nil, err
	}
	g := &Guard{cmd: cmd, known: make(chan struct{}), told: make(chan struct{})}
	if self == "" || !supported {
		cmd.SysProcAttr = alone()
		if err := cmd.Start(); err != nil {
			return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
		}
		close(g.known)
		close(g.told)
		g.pid, g.mechanism = cmd.Process.Pid, "process group"
		return g, nil
	}
	theirLifeline, lifeline, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open a pipe to a keeper: %w", err)
	}
	defer theirLifeline.Close()
	reports, theirReports, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a pipe from a keeper: %w", err), lifeline.Close())
	}
	defer theirReports.Close()
	cmd.Args = append([]string{name, Argument, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.ExtraFiles = append([]*os.File{theirLifeline, theirReports}, cmd.ExtraFiles...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of what is sent to our group
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a keeper for %s: %w", cmd.Args[2], err), lifeline.Close(),
			reports.Close())
	}
	g.lifeline = lifeline
	go g.listen(reports)
	return g, nil
}

func (g *Guard) listen(reports *os.File) {
	defer close(g.told)
	defer reports.Close()
	know := sync.OnceFunc(func() { close(g.known) })
	defer know()
	for lines := bufio.NewScanner(reports); lines.Scan(); {
		var r report
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // the keeper was killed while it wrote
		}
		g.mu.Lock()
		if g.pid, g.mechanism = r.Pid, r.Mechanism; r.Ended {
			g.end = &r
		}
		g.mu.Unlock()
		know()
	}
}

// Program is the program's process number, 0 if it could not be started, and how its
// descendants are held together. It waits until the program has been started.
func (g *Guard) Program() (pid int, mechanism string) {
	<-g.known
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid, g.mechanism
}

// Kill ends the program and all of its descendants, without waiting for that.
func (g *Guard) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.killed {
		return
	}
	g.killed = true
	if g.lifeline == nil {
		killGroup(g.pid)
		return
	}
	g.lifeline.Close()
	if !g.waited {
		g.last = time.AfterFunc(killPatience, g.killKeeper)
	}
}

// killKeeper is for a keeper that was stopped, or does not get to run.
func (g *Guard) killKeeper() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waited {
		return
	}
	_ = g.cmd.Process.Kill() // the one way that it fails is that it has ended
	killGroup(g.pid)
}

// PeakUnits is the largest resident size of a program that has ended, in the unit of the
// system, as far as that tells: of one without a keeper.
func (g *Guard) PeakUnits() (size int64, ok bool) {
	if g.lifeline != nil || g.cmd.ProcessState == nil {
		return 0, false
	}
	used, ok := g.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, false
	}
	return used.Maxrss, true
}

// Wait waits until the program and its descendants have ended, and what it printed has been read.
func (g *Guard) Wait() State {
	err := g.cmd.Wait()
	if g.lifeline == nil {
		g.Kill() // its children may live
	}
	<-g.told
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waited = true
	if g.last != nil {
		g.last.Stop()
	}
	if g.lifeline != nil && !g.killed {
		g.killed = true
		g.lifeline.Close()
	}
	switch {
	case g.end != nil && g.end.Error != "":
		return State{Err: errors.New(g.end.Error), Left: g.end.Left}
	case g.end != nil:
		return State{Status: syscall.WaitStatus(g.end.Status), Left: g.end.Left}
	case g.cmd.ProcessState == nil:
		return State{Err: err}
	}
	status, _ := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return State{Status: status}
}
