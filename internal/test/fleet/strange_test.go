package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"thalweg/internal/app/registry"
	"thalweg/internal/store/state"
)

// patientLease lets no claim be lost because a machine is slow.
const patientLease = 2 * time.Minute

// patientLeases is for scenes in which no attempt may be lost, or nobody dies.
func patientLeases(_ int, s *spec) { s.Lease = patientLease }

// foreignBodies are messages that are no hint of anything.
func foreignBodies() []string {
	return []string{"", "{", "null", "[]", "7", "\xff\x00\xfe", strings.Repeat("x", 70_000),
		strings.Repeat("[", 60_000),
		`{"v":1}`, `{"v":0,"w":"main","r":1}`, `{"v":-1}`, `{"v":1,"w":"main","r":1,"n":"nope","b":0,"e":1,"a":0}`,
		`{"v":1,"w":"","r":1,"n":"","b":0}`, `{"v":1,"w":"elsewhere","r":1,"n":"sales","b":0,"e":1,"a":0}`,
		`{"v":1,"w":"main","r":9223372036854775807,"n":"n","b":0}`, `{"v":1,"w":"main","r":-1,"n":"n","b":0}`,
		`{"v":1,"w":"main\u0000","r":1,"n":"\u0000","b":0}`, `{"v":1,"w":"` + strings.Repeat("w", 60_000) +
			`","r":1,"n":"n","b":0}`,
		`{"v":1,"w":"main","r":1,"n":"` + strings.Repeat("n", 60_000) + `","b":0,"c":"` + strings.Repeat("c", 1000) +
			`","p":99}`}
}

// wrongHint names a node of a run that may be there, and something about it that is mostly wrong.
func (f *workerFleet) wrongHint(nodes []state.Node) string {
	n := nodes[f.random(len(nodes))]
	numbers := []int64{0, 1, 2, 3, 5, 99, -1, 1 << 31, 1 << 40, 9223372036854775807, -9223372036854775808}
	pick := func() int64 { return numbers[f.random(len(numbers))] }
	return fmt.Sprintf(`{"v":1,"w":%q,"r":%d,"n":%q,"b":%d,"e":%d,"a":%d}`, n.Workspace, n.Run, n.Name, pick(),
		pick(), pick())
}

// send publishes bodies to the queues of hints.
func (s services) send(bodies func(i int) string, each int) (int, error) {
	return s.atBroker(func(ch *amqp.Channel, queue string) (n int, err error) {
		for i := range each {
			if err := ch.PublishWithContext(context.Background(), "", queue, false, false,
				amqp.Publishing{Body: []byte(bodies(i))}); err != nil {
				return n, err
			}
			n++
		}
		return n, nil
	})
}

// foreignAtOnce is the number of messages that are put in front of all others.
const foreignAtOnce = 100_000

// foreign has every kind of message come that a broker could hold beside the hints of a run.
func foreign(ctx context.Context, f *workerFleet) error {
	bodies := foreignBodies()
	_, err := f.with.atBroker(func(ch *amqp.Channel, queue string) (n int, err error) {
		for i := range foreignAtOnce {
			if !strings.HasSuffix(queue, "normal") {
				break
			}
			body := fmt.Sprintf(`{"v":1,"w":"main","r":%d,"n":"nope","b":%d,"e":1,"a":0}`, 1+i%3, i)
			if err := ch.PublishWithContext(ctx, "", queue, false, false,
				amqp.Publishing{Body: []byte(body)}); err != nil {
				return n, err
			}
		}
		return foreignAtOnce, nil
	})
	if err != nil {
		return err
	}
	f.count("foreign hints", foreignAtOnce)
	for pause(ctx, 50*time.Millisecond) {
		nodes, err := f.state.Nodes(ctx, state.RunKey{Workspace: workspace, Run: 1 + int64(f.random(60))})
		if errors.Is(err, state.ErrNotFound) || ctx.Err() != nil {
			continue
		} else if err != nil {
			return err
		}
		n, err := f.with.send(func(i int) string {
			if i%2 == 0 {
				return f.wrongHint(nodes)
			}
			return bodies[f.random(len(bodies))]
		}, 10)
		if err != nil {
			return err
		}
		f.count("foreign hints", n)
	}
	return nil
}

// later has messages of a later version come, sixty at a time; workers say so.
func later(ctx context.Context, f *workerFleet) error {
	said, why := 0, 0
	for i := 1; pause(ctx, 300*time.Millisecond); i++ {
		n, err := f.with.send(func(i int) string { return fmt.Sprintf(`{"v":%d,"batch":{"of":"main/1"}}`, 2+i) }, 20)
		if err != nil {
			return err
		}
		f.count("hints of a later version", n)
		_, err = f.notes(ctx, func(m *member, a registry.WorkerEntry) bool {
			if strings.Contains(strings.Join(a.Notices, "\n"),
				"of a later version of Thalweg came through the broker") {
				said++
			}
			return true
		})
		if err != nil {
			return err
		}
		if said > 0 && i%20 == 0 && strings.Contains(f.tells(ctx, "why"), "of a later version") {
			why++
		}
	}
	f.count("notes that tell of a later version", said)
	f.count("answers of why that do", why)
	if said == 0 || why == 0 {
		return fmt.Errorf("messages of a later version came: %d notes of workers say so, and %d answers of why", said,
			why)
	}
	return nil
}

// tells returns the output of a command of the program about the fleet and its latest run.
func (f *workerFleet) tells(ctx context.Context, command ...string) string {
	out, _ := exec.CommandContext(ctx, os.Getenv(programVariable),
		append(command, "--cluster", filepath.Join(f.dir, "test.yaml"))...).CombinedOutput()
	return string(out) // also of one that fails, as at the end
}

// notes looks once at the notes of all workers, as their processes are now, and reports
// whether each is there, and is as it should be.
func (f *workerFleet) notes(ctx context.Context, good func(*member, registry.WorkerEntry) bool) (bool, error) {
	all, err := registry.Workers(ctx, f.home)
	if ctx.Err() != nil {
		return false, nil
	} else if err != nil {
		return false, err
	}
	found := 0
	for _, m := range f.workers {
		for _, a := range all {
			if a.PID == m.cmd.Process.Pid && good(m, a) {
				found++
			}
		}
	}
	return found == len(f.workers), nil
}

// until waits until the notes of all workers are as they should be; false: ctx has ended.
func (f *workerFleet) until(ctx context.Context, good func(*member, registry.WorkerEntry) bool) (bool, error) {
	for pause(ctx, pollEvery) {
		all, err := f.notes(ctx, good)
		if err = errors.Join(err, f.revive()); all || err != nil {
			return all, err
		}
	}
	return false, nil
}

// scratchOf is a worker's scratch directory.
func (m *member) scratch() string { return strings.TrimSuffix(m.spec.Config, ".yaml") }

// shell does something about a machine.
func shell(text string) error {
	if out, err := exec.Command("sh", "-ec", text).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", text, err, out)
	}
	return nil
}

// again ends a worker, does something, and starts it again.
func (f *workerFleet) again(m *member, do func() error) error {
	f.signal(m, syscall.SIGTERM)
	<-m.done
	return errors.Join(do(), f.replace(m))
}

// scratchFull gives each worker a small disk, and fills it for a while: of one of them, or of all.
func scratchFull(ctx context.Context, f *workerFleet) (err error) {
	for _, m := range f.workers {
		dir := m.scratch()
		if err := f.again(m, func() error {
			return shell(fmt.Sprintf("mkdir -p %[1]s; mount -t tmpfs -o size=256m tmpfs %[1]s", dir))
		}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, shell("umount -l "+dir)) }()
	}
	for pause(ctx, time.Duration(200+f.random(1000))*time.Millisecond) {
		first := f.random(len(f.workers))
		some := f.workers[first : first+1]
		if f.random(3) == 0 {
			some = f.workers
		}
		if err := f.fill(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// fill fills the scratch disks of some workers until they have said so, and for a while; then
// all say that they can work.
func (f *workerFleet) fill(ctx context.Context, some []*member) error {
	said, err := f.until(ctx, func(m *member, a registry.WorkerEntry) bool {
		if !slices.Contains(some, m) {
			return true
		}
		// Until nothing fits any more; what a batch leaves there meanwhile makes room again.
		_ = shell("dd if=/dev/zero of=" + m.scratch() + "/ballast bs=4k oflag=append conv=notrunc")
		return full(m, a)
	})
	if err != nil {
		return err
	}
	if said {
		f.count("scratch disks filled", len(some))
	}
	if said && len(some) == len(f.workers) {
		if err := f.nobodyTakes(ctx); err != nil {
			return err
		}
	}
	pause(ctx, time.Duration(500+f.random(3000))*time.Millisecond)
	for _, m := range some {
		if err := os.Remove(m.scratch() + "/ballast"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_, err = f.until(ctx, func(_ *member, a registry.WorkerEntry) bool { return len(a.Cannot) == 0 })
	return err
}

// full reports whether a worker says that its scratch disk is full.
func full(_ *member, a registry.WorkerEntry) bool {
	return strings.Contains(strings.Join(a.Cannot, "\n"), "cannot be written: no space left on device")
}

// nobodyTakes looks whether each run that is not over says why nobody goes on with it, as all
// scratch disks are full.
func (f *workerFleet) nobodyTakes(ctx context.Context) error {
	runs, err := state.OpenRuns(ctx, f.home.State, workspace, func(state.RunKey) bool { return false })
	for _, r := range runs {
		text, _, failed := registry.NobodyTakes(ctx, f.home, r.RunKey)
		if err = errors.Join(err, failed); err == nil && !strings.Contains(text, "no space left on device") {
			if still, _ := f.notes(ctx, full); still {
				return fmt.Errorf("all scratch disks are full, and run %d says: %q", r.Run, text)
			}
			continue
		}
		f.count("runs that say that all scratch disks are full", 1)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// spied gives a worker an interpreter that is killed when it is asked what it is, where a file asks for that.
func spied(i int, s *spec) {
	patientLeases(i, s)
	s.Interpreter = strings.TrimSuffix(s.Config, ".yaml") + ".python"
	text := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *python_version*) if [ -e %[1]s.kill ]; then rm %[1]s.kill; kill "+
		"-9 $$; fi ;; esac\nexec python3 \"$@\"\n", s.Interpreter)
	if err := os.WriteFile(s.Interpreter, []byte(text), 0o755); err != nil {
		panic(err)
	}
}

// probeKilled has workers begin whose interpreter is killed when it is asked what it is: soon
// they know all the same.
func probeKilled(ctx context.Context, f *workerFleet) error {
	for i := 0; pause(ctx, 200*time.Millisecond); i++ {
		m := f.workers[i%len(f.workers)]
		if err := f.again(m, func() error { return os.WriteFile(m.spec.Interpreter+".kill", nil, 0o644) }); err != nil {
			return err
		}
		known, err := f.until(ctx, func(which *member, a registry.WorkerEntry) bool {
			return which != m || strings.Contains(a.Python, "Python ")
		})
		if err != nil || !known {
			return err
		}
		if _, err := os.Stat(m.spec.Interpreter + ".kill"); err == nil {
			return fmt.Errorf("the interpreter of %s was not asked", m.log)
		}
		f.count("probes killed", 1)
	}
	return nil
}
