package job

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Owner names this process among all that ever work on a state: its host, its
// number there, and when it began there, because hosts use numbers again.
func Owner() string {
	began, _ := began(os.Getpid())
	return fmt.Sprintf("%s/%d/%d", host(), os.Getpid(), began)
}

func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "localhost"
	}
	return name
}

// Gone reports whether an owner is known to have ended: it was on this host,
// and its number is nobody's or another process's now. It is only a hint, to
// wait no longer than there is something to wait for: what a live owner was
// taken for by mistake is fenced off by its claim's attempt and epoch.
func Gone(owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || parts[0] != host() {
		return false
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil || pid <= 0 {
		return false
	}
	if _, known := began(os.Getpid()); !known {
		return false // a system that does not tell
	}
	now, alive := began(pid)
	return !alive || strconv.FormatInt(now, 10) != parts[2]
}

// IsProcess reports whether an owner is a process of this host.
func IsProcess(owner string, pid int) bool {
	return strings.HasPrefix(owner, fmt.Sprintf("%s/%d/", host(), pid))
}

// began returns the start time of a process, in ticks since its system started. It returns false if there is
// no such process, or it died and only its parent has not noticed.
func began(pid int) (ticks int64, ok bool) {
	const stateField, startField = 0, 19 // behind the name in parentheses, which may have anything in it
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(f) <= startField || f[stateField] == "Z" || f[stateField] == "X" {
		return 0, false
	}
	ticks, err = strconv.ParseInt(f[startField], 10, 64)
	return ticks, err == nil
}
