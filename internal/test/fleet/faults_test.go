package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"thalweg/internal/run/sandbox"
)

// fault harms a fleet, again and again, until ctx ends. It leaves everything as it was.
type fault func(ctx context.Context, f *workerFleet) error

// pause waits, and says whether time is left.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// someone is a worker at random, after a while.
func (f *workerFleet) someone(ctx context.Context, least, most time.Duration) *member {
	if !pause(ctx, least+time.Duration(f.random(int(most-least)))) {
		return nil
	}
	return f.workers[f.random(len(f.workers))]
}

// beside has a fault happen while runs are made; it ends with them.
func (f *workerFleet) beside(ctx context.Context, happens fault, runs func(context.Context) error) error {
	during, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- happens(during, f) }()
	err := runs(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// revive starts those again that have ended by themselves, as a service manager
// does, and counts them.
func (f *workerFleet) revive() error {
	for _, m := range f.workers {
		if m.over() {
			f.count("workers that ended by themselves", 1)
			if err := f.replace(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// killed kills workers, as many at most.
func killed(most int) fault {
	return func(ctx context.Context, f *workerFleet) error {
		for i := range most {
			longest := 3 * time.Second
			if i > 0 { // or workers die before they have done anything
				longest = 8 * time.Second
			}
			m := f.someone(ctx, 300*time.Millisecond, longest)
			if m == nil {
				return nil
			}
			if f.signal(m, syscall.SIGKILL) {
				if err := f.replace(m); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// slotsKilled kills processes that execute batches, of workers that stay.
func slotsKilled(ctx context.Context, f *workerFleet) error {
	for {
		m := f.someone(ctx, 100*time.Millisecond, 2*time.Second)
		if m == nil {
			return nil
		}
		for _, child := range childrenOf(m.cmd.Process.Pid) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if strings.HasSuffix(string(line), "\x00"+sandbox.Command+"\x00") &&
				syscall.Kill(child, syscall.SIGKILL) == nil {
				f.count("slots killed", 1)
				break
			}
		}
	}
}

// childrenOf are the processes that the threads of one have started.
func childrenOf(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// stopped has workers stand still for longer than a lease.
func stopped(ctx context.Context, f *workerFleet) error {
	for {
		m := f.someone(ctx, 300*time.Millisecond, 2*time.Second)
		if m == nil {
			return nil
		}
		if f.signal(m, syscall.SIGSTOP) {
			pause(ctx, leaseTime+time.Duration(f.random(int(leaseTime))))
			f.signal(m, syscall.SIGCONT)
		}
	}
}

// upgraded has each worker in turn drained, and another one in its place.
func upgraded(ctx context.Context, f *workerFleet) error {
	for i := 0; ; i++ {
		m := f.workers[i%len(f.workers)]
		if !pause(ctx, time.Second) {
			return nil
		}
		if !f.signal(m, syscall.SIGTERM) {
			return fmt.Errorf("%s had ended by itself", m.log)
		}
		<-m.done
		if code := m.cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s was asked to end, and ended with %d", m.log, code)
		}
		if err := f.replace(m); err != nil {
			return err
		}
	}
}

// lines does something with the line of a worker to a service, and undoes it.
func lines(what string, lasts time.Duration, do func(*line), undo func(*line)) fault {
	return func(ctx context.Context, f *workerFleet) error {
		for {
			m := f.someone(ctx, 300*time.Millisecond, 2*time.Second)
			if m == nil {
				return nil
			}
			l := m.net.lines[f.random(len(m.net.lines))]
			f.count(what, 1)
			do(l)
			pause(ctx, time.Duration(f.random(int(lasts))))
			undo(l)
			if err := f.revive(); err != nil {
				return err
			}
		}
	}
}

// cut ends connections, and lets none be made.
func cut() fault {
	return lines("lines cut", 2*leaseTime, func(l *line) {
		l.down.Store(true)
		l.cut()
	}, func(l *line) { l.down.Store(false) })
}

// silent has connections stay on which nothing passes any more.
func silent() fault {
	return lines("lines silent", 3*leaseTime, func(l *line) { l.still.Store(true) }, func(l *line) {
		l.still.Store(false)
		l.cut()
	})
}

// silentFor is longer than Cassandra's driver waits before it gives a connection up.
const silentFor = 150 * time.Second

// longSilent has nothing pass any more between a worker and all services, for long.
func longSilent(ctx context.Context, f *workerFleet) error {
	for {
		m := f.someone(ctx, 300*time.Millisecond, 2*time.Second)
		if m == nil {
			return nil
		}
		f.count("workers silent", 1)
		for _, l := range m.net.lines {
			l.still.Store(true)
		}
		pause(ctx, silentFor)
		for _, l := range m.net.lines {
			l.still.Store(false)
			l.cut()
		}
		if err := f.revive(); err != nil {
			return err
		}
	}
}

// slow has each piece come later.
func slow() fault {
	return lines("lines slow", 4*leaseTime, func(l *line) { l.delay.Store(int64(50 * time.Millisecond)) },
		func(l *line) { l.delay.Store(0) })
}

// purged empties the broker's queues.
func purged(ctx context.Context, f *workerFleet) error {
	for pause(ctx, 300*time.Millisecond) {
		n, err := f.with.purge()
		if err != nil {
			return err
		}
		f.count("hints purged", n)
	}
	return nil
}

// doubled has hints delivered ten times, and in reverse.
func doubled(ctx context.Context, f *workerFleet) error {
	for pause(ctx, 20*time.Millisecond) {
		n, err := f.with.twist()
		if err != nil {
			return err
		}
		f.count("hints delivered again", n)
	}
	return nil
}

// withoutBroker cuts all workers from the broker, and empties its queues meanwhile.
func withoutBroker(lasts time.Duration) fault {
	return func(ctx context.Context, f *workerFleet) error {
		if !pause(ctx, time.Second) {
			return nil
		}
		each := func(do func(*line)) {
			for _, m := range f.workers {
				do(m.net.lines[len(m.net.lines)-1])
			}
		}
		each(func(l *line) {
			l.down.Store(true)
			l.cut()
		})
		n, err := f.with.purge()
		f.count("hints purged", n)
		f.count("broker away", 1)
		pause(ctx, lasts)
		each(func(l *line) { l.down.Store(false) })
		return err
	}
}

// brokerKilled stops the broker, removes what it has, and starts it again.
func brokerKilled(ctx context.Context, f *workerFleet) error {
	dir := filepath.Join(os.Getenv(servicesVariable), "rabbitmq")
	whole := context.WithoutCancel(ctx)
	for pause(ctx, 5*time.Second) {
		if err := service(whole, "stop", "rabbitmq"); err != nil {
			return err
		}
		f.count("broker stopped", 1)
		if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
			return err
		}
		pause(ctx, brokerAway)
		if err := errors.Join(service(whole, "start", "rabbitmq"), f.revive()); err != nil {
			return err
		}
		pause(ctx, 10*time.Second)
	}
	return nil
}

// brokerAway is longer than any timeout that has to do with it.
const brokerAway = 45 * time.Second

// nodesStopped stops some nodes of Cassandra for a while.
func nodesStopped(n int, lasts time.Duration) fault {
	return func(ctx context.Context, f *workerFleet) error {
		whole := context.WithoutCancel(ctx)
		for first := 0; pause(ctx, 5*time.Second); first++ {
			for i := range n {
				if err := service(whole, "stop", node(first+i)); err != nil {
					return err
				}
				f.count("nodes stopped", 1)
			}
			pause(ctx, lasts)
			for i := range n {
				if err := service(whole, "start", node(first+i)); err != nil {
					return err
				}
			}
			if err := f.revive(); err != nil {
				return err
			}
			pause(ctx, 10*time.Second)
		}
		return nil
	}
}

func node(i int) string { return "cassandra-" + strconv.Itoa(1+i%3) }

// diskFull puts the data of a node on a disk of its own, and fills it for a while.
func diskFull(ctx context.Context, f *workerFleet) (err error) {
	const name = "cassandra-3"
	whole := context.WithoutCancel(ctx)
	data := filepath.Join(os.Getenv(servicesVariable), name, "data")
	ballast := filepath.Join(data, "ballast")
	sh := func(text string) error {
		if out, err := exec.CommandContext(whole, "sh", "-ec", text).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", text, err, out)
		}
		return nil
	}
	if err := errors.Join(service(whole, "stop", name),
		sh(fmt.Sprintf("cp -a %[1]s %[1]s.whole; mount -t tmpfs -o size=1g tmpfs %[1]s; cp -a %[1]s.whole/. %[1]s; "+
			"rm -rf %[1]s.whole", data)),
		service(whole, "start", name)); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, service(whole, "stop", name),
			sh(fmt.Sprintf("rm -f %[2]s; cp -a %[1]s %[1]s.whole; umount %[1]s; cp -a %[1]s.whole/. %[1]s; rm -rf "+
				"%[1]s.whole", data, ballast)),
			service(whole, "start", name), f.revive())
	}()
	if !pause(ctx, 5*time.Second) {
		return nil
	}
	f.count("disks filled", 1)
	_ = sh("dd if=/dev/zero of=" + ballast + " bs=1M") // until nothing fits any more
	pause(ctx, time.Minute)
	return nil
}

// nothing happens.
func nothing(context.Context, *workerFleet) error { return nil }
