package budget

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of processor time in /proc: Linux has no other for programs.
const tick = 10 * time.Millisecond

// Use holds the processor time that processes have taken, their resident memory, and what they moved from and to disks.
type Use struct {
	CPU           time.Duration
	Resident      int64 // bytes
	Read, Written int64 // bytes; those of children that have ended are in their parent's
}

// Processes are this process and those that it has started. Their methods may be
// called by any number of goroutines.
type Processes struct {
	mu sync.Mutex
	// The rest is of the last look in which no child ended: one that ends while we look may be in neither sum.
	live  map[string]time.Duration // most that was seen of children, with all that they have started
	ended time.Duration            // of children that have ended
	lost  time.Duration            // of what the dead had started, and nobody has waited for: the kernel forgets it
}

// looks is the number of tries at a look in which no child ends.
const looks = 3

// Use returns the use of this process, and that of all processes that it has started.
func (p *Processes) Use() (self, children Use, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var own, before, ended unix.Rusage
	for range looks {
		if unix.Getrusage(unix.RUSAGE_CHILDREN, &before) != nil {
			return self, children, false
		}
		live := map[string]time.Duration{}
		children = childrenOf(live)
		if unix.Getrusage(unix.RUSAGE_CHILDREN, &ended) != nil {
			return self, children, false
		}
		if p.live == nil || timeOf(before) == timeOf(ended) {
			p.take(live, timeOf(ended))
			break
		}
	}
	if unix.Getrusage(unix.RUSAGE_SELF, &own) != nil {
		return self, children, false
	}
	self = Use{CPU: timeOf(own), Resident: processOf("self").Resident}
	self.Read, self.Written = movedBy("self")
	children.CPU = p.ended + p.lost
	for _, cpu := range p.live {
		children.CPU += cpu
	}
	return self, children, true
}

// take takes in a look: the children that live, and the time of those that have ended; mu is held.
func (p *Processes) take(live map[string]time.Duration, ended time.Duration) {
	gone := time.Duration(0)
	for name, cpu := range p.live {
		if _, lives := live[name]; lives {
			live[name] = max(live[name], cpu)
		} else {
			gone += cpu
		}
	}
	p.lost += max(gone-(ended-p.ended), 0)
	p.live, p.ended = live, ended
}

// childrenOf sums up the living processes that this one has started, and adds the processor time of each child with
// all that it has started to live.
func childrenOf(live map[string]time.Duration) (sum Use) {
	seen := map[string]bool{}
	eachChild("self", func(child string) {
		began := startIn(statOf(child))
		add := func(pid string) {
			u := processOf(pid)
			live[child+" "+began] += u.CPU
			sum.Resident += u.Resident
			read, written := movedBy(pid)
			sum.Read, sum.Written = sum.Read+read, sum.Written+written
		}
		seen[child] = true
		add(child)
		descend(child, seen, add)
	})
	return sum
}

func timeOf(r unix.Rusage) time.Duration {
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// descend visits what a process has started.
func descend(pid string, seen map[string]bool, visit func(pid string)) {
	eachChild(pid, func(child string) {
		if !seen[child] {
			seen[child] = true
			visit(child)
			descend(child, seen, visit)
		}
	})
}

// eachChild visits the children of a process. They are listed by the thread that started them.
func eachChild(pid string, visit func(pid string)) {
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/children") // the pattern is ours
	for _, t := range tasks {
		list, _ := os.ReadFile(t) // it may have ended
		for child := range strings.FieldsSeq(string(list)) {
			visit(child)
		}
	}
}

// Fields of /proc/PID/stat behind the name, from proc(5).
const (
	fieldUser     = 11 // then system, and both of children that were waited for
	fieldStarted  = 19 // ticks since the machine's
	fieldResident = 21 // pages
)

// processOf returns the use of a live process, including the processor time of its children that have ended.
func processOf(pid string) (u Use) {
	f := statOf(pid)
	if len(f) <= fieldResident {
		return u
	}
	for _, field := range f[fieldUser : fieldUser+4] {
		ticks, _ := strconv.ParseInt(field, 10, 64) // of the kernel
		u.CPU += time.Duration(ticks) * tick
	}
	pages, _ := strconv.ParseInt(f[fieldResident], 10, 64)
	u.Resident = pages * int64(os.Getpagesize())
	return u
}

// movedBy returns the bytes that a live process has read from disks and written to them; 0 if it cannot be seen.
func movedBy(pid string) (read, written int64) {
	text, _ := os.ReadFile("/proc/" + pid + "/io") // it may have ended
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, _ := strconv.ParseInt(value, 10, 64) // of the kernel
		switch name {
		case "read_bytes":
			read = n
		case "write_bytes":
			written = n
		}
	}
	return read, written
}

// statOf returns the fields of a live process's /proc stat file that follow its name.
func statOf(pid string) []string {
	text, _ := os.ReadFile("/proc/" + pid + "/stat") // it may have ended
	_, behind, _ := strings.Cut(string(text), ") ")
	return strings.Fields(behind)
}

// startOf tells a live process from others that have had its number, or have it elsewhere; "" if it cannot be told.
func startOf(pid int) string {
	return startIn(statOf(strconv.Itoa(pid)))
}

// startIn is startOf, in the fields of a stat file.
func startIn(f []string) string {
	if len(f) <= fieldStarted {
		return ""
	}
	return f[fieldStarted]
}

// residentOf returns the resident bytes of a process and its descendants, 0 if it cannot be seen from here.
func residentOf(pid int, started string) int64 {
	if started == "" || startOf(pid) != started {
		return 0
	}
	name := strconv.Itoa(pid)
	bytes := processOf(name).Resident
	descend(name, map[string]bool{}, func(child string) { bytes += processOf(child).Resident })
	return bytes
}
