package local

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sampleEvery is how often memory is looked at: often enough to see a batch's
// peak, seldom enough to cost nothing.
const sampleEvery = 100 * time.Millisecond

// peakMeter watches the resident memory of this process and its children.
type peakMeter struct {
	mu   sync.Mutex
	peak int64
}

// start samples until the returned function is called, which waits for the end.
func (m *peakMeter) start() func() {
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			m.sample()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	})
	var once sync.Once
	return func() {
		once.Do(func() {
			close(stop)
			done.Wait()
		})
	}
}

func (m *peakMeter) bytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

func (m *peakMeter) sample() {
	total := residentBytes("self")
	children, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
	// Children are listed by the thread that started them.
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	seen := map[string]bool{}
	for _, t := range tasks {
		more, _ := os.ReadFile(t)
		children = append(append(children, ' '), more...)
	}
	for _, pid := range strings.Fields(string(children)) {
		if !seen[pid] {
			seen[pid] = true
			total += residentBytes(pid)
		}
	}
	m.mu.Lock()
	m.peak = max(m.peak, total)
	m.mu.Unlock()
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
