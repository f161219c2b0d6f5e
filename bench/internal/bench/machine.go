package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine describes the machine on which a report was made.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"` // usable by this process
	MemoryBytes int64  `json:"memory_bytes"`
	// LimitBytes is the memory limit of the control group, 0 if there is none.
	LimitBytes int64  `json:"limit_bytes,omitempty"`
	OS         string `json:"os"`
	Kernel     string `json:"kernel"`
}

func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %.1f GB memory, %s %s", m.CPU, m.Cores, float64(m.MemoryBytes)/1e9, m.OS, m.Kernel)
	if m.LimitBytes > 0 {
		s += fmt.Sprintf(", limited to %.1f GB", float64(m.LimitBytes)/1e9)
	}
	return s
}

// thisMachine describes the machine; what cannot be read stays empty.
func thisMachine() Machine {
	m := Machine{Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS + "/" + runtime.GOARCH}
	m.CPU = field("/proc/cpuinfo", "model name")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kb << 10
	}
	if limit, err := strconv.ParseInt(firstLine("/sys/fs/cgroup/memory.max"), 10, 64); err == nil {
		m.LimitBytes = limit
	}
	m.Kernel = firstLine("/proc/sys/kernel/osrelease")
	return m
}

// field returns the value of the first "name : value" line of a file.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}

// machineCPU is the processor time that everything on the machine has used
// since it started: busy by anyone, and stolen by the host's other guests.
type machineCPU struct{ busy, stolen time.Duration }

// cpu reads the machine's counters from /proc/stat.
func (p procfs) cpu() machineCPU {
	fields := strings.Fields(firstLine(filepath.Join(string(p), "stat")))
	// cpu user nice system idle iowait irq softirq steal …
	const steal = 8
	if len(fields) <= steal {
		return machineCPU{}
	}
	read := func(i int) time.Duration {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0
		}
		return time.Duration(ticks) * time.Second / ticksPerSecond
	}
	var c machineCPU
	for _, i := range []int{1, 2, 3, 6, 7} {
		c.busy += read(i)
	}
	c.stolen = read(steal)
	return c
}
