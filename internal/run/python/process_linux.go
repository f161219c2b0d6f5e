package python

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sharedFile makes a file that only lives as long as it is open.
func sharedFile(name string, size int64) (*os.File, error) {
	fd, err := unix.MemfdCreate("thalweg-python-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory to share with Python: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		f.Close()
		return nil, fmt.Errorf("size memory to share with Python: %w", err)
	}
	return f, nil
}

// widenPipe saves switches between the two sides; a refusal costs nothing else.
func widenPipe(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}

// memoryOf returns a process's resident memory and its peak, in bytes; 0 if unknown.
func memoryOf(pid int) (rss, peak int64) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	return statusBytes(b, "VmRSS:"), statusBytes(b, "VmHWM:")
}

func statusBytes(status []byte, name string) int64 {
	_, rest, found := bytes.Cut(status, []byte("\n"+name))
	if !found {
		return 0
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}

// starvedOf is the time for which the first thread of a process has waited for a processor; 0 if unknown.
func starvedOf(pid int) time.Duration {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/schedstat")
	if fields := bytes.Fields(b); err == nil && len(fields) > 1 {
		if ns, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			return time.Duration(ns)
		}
	}
	return 0
}

// stateOf is the state of a process, as a letter of proc(5); 0 if unknown.
func stateOf(pid int) byte {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if behind := bytes.LastIndex(b, []byte(") ")); err == nil && behind >= 0 && behind+2 < len(b) {
		return b[behind+2]
	}
	return 0
}

// cpuClock makes a process's number that of the clock of its processor time: see
// clock_getcpuclockid(3).
const cpuClock = 2

// cpuOf is the processor time that a process has used; 0 if unknown.
func cpuOf(pid int) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(int32(^pid<<3|cpuClock), &t) != nil { //nolint:gosec // process numbers are small
		return 0
	}
	return time.Duration(t.Nano())
}
