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

// sampleEvery is the interval at which memory is measured: often enough to see a batch's peak, seldom enough
// to cost nothing.
const sampleEvery = 100 * time.Millisecond

// Meter watches what this process holds of memory and disk. It works while
// somebody wants to know. A nil Meter sees nothing.
type Meter struct {
	mu      sync.Mutex
	watches map[*Watch]bool
	ending  chan struct{} // closed by Close; nil: nothing is watched
	work    sync.WaitGroup
	cpu     shares
}

// shares divides the processor time of this process among those who compute in it,
// at each moment in equal parts.
type shares struct {
	mu       sync.Mutex
	inside   int
	seen     time.Duration // of the process
	eachSeen time.Duration // that one had who was there from the beginning
}

// Compute begins something that computes; its end gives what it took of the
// processors. nil is allowed.
func (m *Meter) Compute() (end func() time.Duration) {
	if m == nil {
		return func() time.Duration { return 0 }
	}
	began := m.cpu.move(1)
	return func() time.Duration { return m.cpu.move(-1) - began }
}

// move takes in that so many more compute now.
func (s *shares) move(more int) time.Duration {
	user, system := ProcessTime()
	now := user + system
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside > 0 && now > s.seen {
		s.eachSeen += (now - s.seen) / time.Duration(s.inside)
	}
	s.seen = max(s.seen, now)
	s.inside += more
	return s.eachSeen
}

// ProcessTime returns the processor time of this process so far, its own and the kernel's.
func ProcessTime() (user, system time.Duration) {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) != nil {
		return 0, 0
	}
	return time.Duration(used.Utime.Nano()), time.Duration(used.Stime.Nano())
}

// Watch is a time for which somebody wants to know. Its methods may be called
// by any number of goroutines, also of a nil Watch.
type Watch struct {
	meter   *Meter
	dirs    []string // whose sizes count
	memory  int64
	spilled int64
}

// Watch begins to watch.
func (m *Meter) Watch() *Watch {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watches == nil {
		m.watches = map[*Watch]bool{}
	}
	w := &Watch{meter: m}
	m.watches[w] = true
	if m.ending == nil {
		ending := make(chan struct{})
		m.ending = ending
		m.work.Go(func() { m.sample(ending) })
	}
	return w
}

// Spill names a directory of files that take the place of memory.
func (w *Watch) Spill(dir string) {
	if w == nil {
		return
	}
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	w.dirs = append(w.dirs, dir)
}

// Stop ends the watch and gives the most memory that was seen of the process
// and its children, whatever else they did meanwhile, and the most that was
// seen in the directories. It may be called again.
func (w *Watch) Stop() (memory, spilled int64) {
	if w == nil {
		return 0, 0
	}
	now := residentBytes("self")
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	w.memory = max(w.memory, now)
	delete(w.meter.watches, w)
	return w.memory, w.spilled
}

// Close ends the meter and waits for it.
func (m *Meter) Close() {
	m.mu.Lock()
	if m.ending != nil {
		close(m.ending)
		m.ending = nil
	}
	m.mu.Unlock()
	m.work.Wait()
}

// sample looks until the meter ends.
func (m *Meter) sample(ending <-chan struct{}) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		m.look()
		select {
		case <-ending:
			return
		case <-tick.C:
		}
	}
}

// look takes a sample for all watches.
func (m *Meter) look() {
	m.mu.Lock()
	dirs := map[*Watch][]string{}
	for w := range m.watches {
		dirs[w] = w.dirs
	}
	m.mu.Unlock()
	if len(dirs) == 0 {
		return
	}
	memory := processBytes()
	spilled := map[*Watch]int64{}
	for w, list := range dirs {
		for _, dir := range list {
			spilled[w] += bytesIn(dir)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range dirs {
		w.memory, w.spilled = max(w.memory, memory), max(w.spilled, spilled[w])
	}
}

// bytesIn is the size of a directory's files. What cannot be seen is none.
func bytesIn(dir string) (bytes int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// processBytes is the resident memory of this process and its children.
func processBytes() int64 {
	total := residentBytes("self")
	// Children are listed by the thread that started them.
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	seen := map[string]bool{}
	for _, t := range tasks {
		children, _ := os.ReadFile(t)
		for _, pid := range strings.Fields(string(children)) {
			if !seen[pid] {
				seen[pid] = true
				total += residentBytes(pid)
			}
		}
	}
	return total
}

// residentBytes is a process's resident set, 0 where there is no /proc.
func residentBytes(pid string) int64 {
	data, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(data))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
