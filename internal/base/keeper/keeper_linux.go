package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/awake"
)

const supported = true

// alone: a group of its own, so that a terminal's interrupt does not reach the
// program and so that its children can be killed with it; and death with us. The
// system takes "us" to be the thread that started it.
func alone() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
}

func killGroup(pid int) {
	if pid > 0 {
		_ = unix.Kill(-pid, unix.SIGKILL) // the one way that it fails is that nobody is left
	}
}

// heapGrowth of a process that does next to nothing; it is one more beside each program.
const heapGrowth = 20

// Main is a keeper's life. args are os.Args, and cgroups the versions of cgroups to
// try (Cgroups, but in tests); the result is its exit code.
func Main(args []string, cgroups []int) int {
	runtime.LockOSThread() // the program dies with the thread that started it
	debug.SetGCPercent(heapGrowth)
	descriptors := inherited()
	k := &keeper{cgroups: cgroups, reports: os.NewFile(reportFD, "reports")}
	lifeline := os.NewFile(lifelineFD, "lifeline")
	// Nothing but the end of the lifeline, or SIGKILL, ends a keeper. The signals are
	// taken, not ignored: the program would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE,
		unix.SIGUSR1, unix.SIGUSR2)
	k.mechanism = "process group"
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err == nil {
		k.mechanism = "subreaper"
	}
	if err := k.start(args[2], args[2:], descriptors); err != nil {
		k.tell(report{Ended: true, Error: err.Error()})
		return 1
	}
	k.tell(report{Pid: k.pid, Mechanism: k.mechanism})
	ended := make(chan struct{})
	go func() {
		// What the caller has to say is nothing: this ends when it closes its end, or dies.
		_, _ = io.Copy(io.Discard, lifeline)
		select {
		case <-ended: // the rest is being killed already
		default:
			killGroup(k.pid)
			k.group.kill()
			_ = unix.Kill(k.pid, unix.SIGKILL) // fails only if it has ended
		}
	}()
	status := k.await()
	close(ended)
	left := k.sweep()
	k.group.remove()
	k.tell(report{Pid: k.pid, Mechanism: k.mechanism, Ended: true, Status: uint32(status), Left: left})
	return 0
}

// keeper is the state of this process.
type keeper struct {
	reports   *os.File
	mechanism string
	cgroups   []int
	pid       int    // of the program
	group     *group // nil: none
}

// inherited returns the descriptors for the program, and keeps all from being
// inherited by chance.
func inherited() []*os.File {
	unix.CloseOnExec(lifelineFD)
	unix.CloseOnExec(reportFD)
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for fd := uintptr(programFD); ; fd++ {
		flags, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
		if err != nil {
			return files
		}
		if flags&unix.FD_CLOEXEC != 0 { // of this process: what it got from another one would have been closed
			continue
		}
		unix.CloseOnExec(int(fd))
		files = append(files, os.NewFile(fd, fmt.Sprint("descriptor ", fd)))
	}
}

// start starts the program, in a cgroup if there can be one, and gives up its descriptors.
func (k *keeper) start(path string, args []string, files []*os.File) error {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // it was removed: the program will see that, too
	}
	g := newGroup(k.cgroups)
	entered := g != nil && g.enter() == nil
	proc, err := os.StartProcess(path, args, &os.ProcAttr{Dir: dir, Files: files, Sys: alone()})
	switch {
	case !entered:
		g.remove()
	case g.leave() == nil:
		k.group, k.mechanism = g, g.mechanism()
	}
	for _, f := range files {
		f.Close() // its ends are those of the program and what it starts alone
	}
	if err != nil {
		k.group.remove()
		return err
	}
	k.pid = proc.Pid
	return nil
}

// await reaps whatever ends, until the program has.
func (k *keeper) await() (status unix.WaitStatus) {
	for {
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil, pid == k.pid:
			return status
		}
	}
}

// sweep ends what the program has left, and says how many processes resist.
func (k *keeper) sweep() int {
	killGroup(k.pid)
	for pause, clock := time.Millisecond, awake.New(sweepPause, nil); ; pause = min(2*pause, sweepPause) {
		k.group.kill()
		left := killAll(descendants(os.Getpid()))
		if k.reap() && left == 0 && k.group.empty() {
			return 0
		}
		if clock.Look() > sweepLimit {
			return max(left, 1)
		}
		<-time.After(pause) // the next wait would not see grandchildren end
	}
}

const sweepPause = 20 * time.Millisecond

// reap takes note of children that have ended, and says whether none is left.
func (k *keeper) reap() (none bool) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return true
		case pid == 0:
			return false
		}
	}
}

func (k *keeper) tell(r report) {
	line, err := json.Marshal(r)
	if err == nil {
		_, _ = k.reports.Write(append(line, '\n')) // fails if the caller is dead, and then nobody wants to know
	}
}
