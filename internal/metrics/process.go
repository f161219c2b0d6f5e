package metrics

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of processor time in /proc: Linux has no other for programs.
const tick = 10 * time.Millisecond

// usage is what processes have taken and take.
type usage struct {
	cpu      time.Duration
	resident int64
}

// spent is the most processor time of children that was seen: one that ends
// while we look may be in neither sum.
type spent struct{ children time.Duration }

// usage is that of this process, and of those that it has started.
func (s *sources) usage() (self, children usage, ok bool) {
	var own, ended unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &own) != nil || unix.Getrusage(unix.RUSAGE_CHILDREN, &ended) != nil {
		return self, children, false
	}
	self = usage{cpu: timeOf(own), resident: processOf("self").resident}
	children.cpu = timeOf(ended)
	descend("self", map[string]bool{}, func(pid string) {
		u := processOf(pid)
		children.cpu += u.cpu
		children.resident += u.resident
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spent.children = max(s.spent.children, children.cpu)
	children.cpu = s.spent.children
	return self, children, true
}

func timeOf(r unix.Rusage) time.Duration {
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// descend visits what a process has started. Children are listed by the thread
// that started them.
func descend(pid string, seen map[string]bool, visit func(pid string)) {
	tasks, _ := filepath.Glob("/proc/" + pid + "/task/*/children") // the pattern is ours
	for _, t := range tasks {
		list, _ := os.ReadFile(t) // it may have ended
		for _, child := range strings.Fields(string(list)) {
			if !seen[child] {
				seen[child] = true
				visit(child)
				descend(child, seen, visit)
			}
		}
	}
}

// Fields of /proc/PID/stat behind the name, from proc(5).
const (
	fieldUser     = 11 // then system, and both of children that were waited for
	fieldResident = 21 // pages
)

// processOf is what a live process has taken, with its children that have ended.
func processOf(pid string) (u usage) {
	text, _ := os.ReadFile("/proc/" + pid + "/stat") // it may have ended
	_, behind, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(behind)
	if len(f) <= fieldResident {
		return u
	}
	for _, field := range f[fieldUser : fieldUser+4] {
		ticks, _ := strconv.ParseInt(field, 10, 64) // of the kernel
		u.cpu += time.Duration(ticks) * tick
	}
	pages, _ := strconv.ParseInt(f[fieldResident], 10, 64)
	u.resident = pages * int64(os.Getpagesize())
	return u
}
