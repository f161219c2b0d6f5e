package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const (
	stopWithin = time.Minute
	tryEvery   = 50 * time.Millisecond
)

// WorkerOptions say how a worker is started.
type WorkerOptions struct {
	Thalweg string
	Python  string
	Memory  string
	Cores   int     // that it is told of: so many slots
	Held    float64 // cores that it gets (control groups of version 1, as root); 0: all
}

// Worker is a process of a fleet.
type Worker struct {
	cmd   *exec.Cmd
	at    string // its metrics
	group *Group // that holds it; nil: none
	ended chan error
}

// Start starts a worker with a scratch directory of its own, by its number.
func (c *Cluster) Start(ctx context.Context, i int, o WorkerOptions) (*Worker, error) {
	config, err := c.Config(fmt.Sprintf("worker%d", i))
	if err != nil {
		return nil, err
	}
	at, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	w := &Worker{at: at, cmd: exec.Command(o.Thalweg, "worker", "--cluster", config, "--metrics", at,
		"--memory", o.Memory, "--cores", strconv.Itoa(o.Cores), "--python", o.Python)}
	w.cmd.Stdout, w.cmd.Stderr = os.Stderr, os.Stderr
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if o.Held > 0 {
		if w.group, err = NewGroup(fmt.Sprint(i), o.Held); err != nil {
			return nil, err
		}
	}
	if err := w.run(); err != nil {
		return nil, errors.Join(fmt.Errorf("start a worker: %w", err), w.group.Remove())
	}
	if err := w.group.Hold(w.Pid()); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

// Pid returns the number of the worker's process.
func (w *Worker) Pid() int { return w.cmd.Process.Pid }

// run starts the process from a thread that stays: it would die with the thread.
func (w *Worker) run() error {
	started := make(chan error)
	w.ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := w.cmd.Start()
		if started <- err; err == nil {
			w.ended <- w.cmd.Wait()
		}
	}()
	return <-started
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Stop has the worker drain.
func (w *Worker) Stop() error {
	err := w.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(stopWithin, func() { _ = w.cmd.Process.Kill() })
	err = errors.Join(err, <-w.ended)
	late.Stop()
	return errors.Join(err, w.group.Remove())
}

// Ready waits until the worker reaches its state.
func (w *Worker) Ready(ctx context.Context) error {
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	for {
		if body, err := w.Get(ctx, "/readyz"); err == nil {
			return body.Body.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-w.ended:
			w.ended <- err
			return fmt.Errorf("a worker ended before it was ready: %w", err)
		case <-tick.C:
		}
	}
}

// Get asks the worker for one of the pages that it serves of itself.
func (w *Worker) Get(ctx context.Context, path string) (*http.Response, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.at+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s answers %s", path, answer.Status), answer.Body.Close())
	}
	return answer, nil
}

// Group is a control group of version 1, whose processes have so many cores together.
type Group struct{ dir string }

// groups is where groups are made; their names begin with groupPrefix.
const groups, groupPrefix = "/sys/fs/cgroup/cpu", "thalweg-bench-"

// NewGroup makes a group.
func NewGroup(name string, cores float64) (*Group, error) {
	const period = 100_000 // µs
	g := &Group{filepath.Join(groups, fmt.Sprintf("%s%d-%s", groupPrefix, os.Getpid(), name))}
	err := os.Mkdir(g.dir, 0o755)
	for name, value := range map[string]int{"cpu.cfs_period_us": period, "cpu.cfs_quota_us": int(cores * period)} {
		if err == nil {
			err = os.WriteFile(filepath.Join(g.dir, name), []byte(strconv.Itoa(value)), 0o644)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make a control group (version 1, as root): %w", errors.Join(err, os.Remove(g.dir)))
	}
	return g, nil
}

// Hold puts a process into the group, and with it what it starts. No group holds none.
func (g *Group) Hold(pid int) error {
	if g == nil {
		return nil
	}
	if err := os.WriteFile(filepath.Join(g.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("hold process %d: %w", pid, err)
	}
	return nil
}

// Remove removes the group, once the kernel has let go of its processes.
func (g *Group) Remove() error {
	if g == nil {
		return nil
	}
	tick := time.NewTicker(tryEvery)
	defer tick.Stop()
	late := time.After(stopWithin)
	for {
		err := os.Remove(g.dir)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-late:
			return err
		case <-tick.C:
		}
	}
}

// RemoveOldGroups removes the groups that killed measurements have left. Those that hold a process stay.
func RemoveOldGroups() error {
	old, err := filepath.Glob(filepath.Join(groups, groupPrefix+"*"))
	for _, dir := range old {
		if rerr := os.Remove(dir); !errors.Is(rerr, syscall.EBUSY) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
