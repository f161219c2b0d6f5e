package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// yieldsBy is added to a child's score, of a thousand, by which the system chooses a process to end for want
// of memory. It so ends a child before its parent.
const yieldsBy = 300

// YieldMemory has the system end this process rather than its parent when there
// is no memory. That it cannot be had hurts nobody who has memory.
func YieldMemory() {
	const path, most = "/proc/self/oom_score_adj", 1000
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	if score, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil {
		_ = os.WriteFile(path, fmt.Appendf(nil, "%d", min(score+yieldsBy, most)), 0)
	}
}

// giveWay has this thread, and what it starts, give way to others by so much. That it cannot be had hurts nobody.
func giveWay(nice int) {
	if nice > 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice) // 0 is the thread, on Linux
	}
}

func closeOnExec(fd int) { unix.CloseOnExec(fd) }

// memoryKills counts the processes that the system has ended for want of memory; 0 if it does not say.
func memoryKills() int64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	_, rest, found := bytes.Cut(text, []byte("\noom_kill "))
	if !found {
		return 0
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// residentBytes returns the resident memory of this process, 0 if the system does not say.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// maxrssUnit is the unit, in bytes, of a process's largest resident size.
const maxrssUnit = 1 << 10
