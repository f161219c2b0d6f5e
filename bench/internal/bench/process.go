package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

// Limits of a measured process.
const (
	maxErrorTextBytes = 64 << 10         // of its standard error, the last ones are kept
	stopGrace         = 20 * time.Second // between asking it to stop and killing it
)

// measured holds the resources that one run of a program used.
type measured struct {
	command []string
	started time.Time
	wall    time.Duration // from start to exit, the interpreter's or engine's start included
	cpu     time.Duration // of the whole tree
	usage   usage
	// foreign and stolen are shares of all cores over wall that other
	// processes, or other guests of the host, used meanwhile.
	foreign, stolen float64
	services        time.Duration // processor time of services that were asked, which is not foreign
}

// command is a program to be measured.
type command struct {
	args   []string
	dir    string
	stdout io.Writer
	asks   []int // processes of services whose work is this program's, too
}

// measure runs a program and samples its process tree. A failure of the
// program is a fault with the end of its standard error as detail.
func measure(ctx context.Context, c command) (measured, error) {
	unix.Sync() // what earlier runs wrote must not be written back on this one's time
	proc := procfs("/proc")
	m := measured{command: c.args}
	errorText := &tail{limit: maxErrorTextBytes}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, c.stdout, errorText
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = stopGrace

	ownBefore, before, asked := ownCPU(), proc.cpu(), proc.cpuOf(c.asks)
	m.started = time.Now()
	if err := cmd.Start(); err != nil {
		return m, &fault.Error{Kind: fault.Environment, Message: "starting " + c.args[0], Err: err}
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	type watched struct {
		usage usage
		err   error
	}
	done := make(chan watched, 1)
	go func() {
		u, err := proc.watch(watching, cmd.Process.Pid)
		done <- watched{u, err}
	}()
	err := cmd.Wait()
	m.wall = time.Since(m.started)
	stop()
	w := <-done
	own, after := ownCPU()-ownBefore, proc.cpu()
	m.usage = w.usage
	// The kernel leaves out processes that nobody waited for, as a JVM or a server that forks.
	m.cpu = max(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), w.usage.cpuAt(m.started.Add(m.wall)))
	all := float64(m.wall) * float64(thisMachine().Cores)
	m.services = proc.cpuOf(c.asks) - asked
	m.foreign = max(0, float64(after.busy-before.busy-m.cpu-own-m.services)/all)
	m.stolen = max(0, float64(after.stolen-before.stolen)/all)
	if ctx.Err() != nil {
		return m, &fault.Error{Kind: fault.Canceled, Message: "the benchmark was stopped", Err: context.Cause(ctx)}
	}
	if err != nil {
		return m, &fault.Error{
			Kind: fault.Environment, Message: strings.Join(c.args, " "), Detail: errorText.String(), Err: err,
		}
	}
	if w.err != nil {
		return m, &fault.Error{Kind: fault.Environment, Message: "sampling the process tree", Err: w.err}
	}
	return m, nil
}

// ownCPU is the processor time of this process itself.
func ownCPU() time.Duration {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	buf   bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if over := t.buf.Len() - t.limit; over > 0 {
		t.buf.Next(over)
	}
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }

// Warm reads the files of a directory once, so that the first measured run
// finds them in memory as the later ones do.
func Warm(dir string) error {
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, f)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "reading the input " + dir, Err: err}
	}
	return nil
}

// output runs a short helper program and returns what it prints, trimmed.
func output(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	errorText := &tail{limit: maxErrorTextBytes}
	cmd.Stderr = errorText
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(errorText.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
