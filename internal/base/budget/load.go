package budget

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Load measures how many processors are in use. It is for one goroutine.
type Load struct {
	processes Processes
	at        time.Time
	own, idle time.Duration // so far: of this process and its children; of the machine
}

// Busy returns how many of the given cores were in use since the call before. The larger counts: the use of
// this process and its children, or all that the machine does. Where a control group grants less than those
// cores, all of them are in use once that is. It returns less than 0 if that is unknown.
func (l *Load) Busy(cores int) float64 {
	now := time.Now()
	self, children, ok := l.processes.Use()
	if !ok {
		return -1
	}
	own, idle := self.CPU+children.CPU, machineIdle()
	took := now.Sub(l.at)
	busy := -1.0
	if !l.at.IsZero() && took > 0 {
		busy = (own - l.own).Seconds() / took.Seconds()
		if idle > 0 {
			busy = max(busy, float64(cores)-(idle-l.idle).Seconds()/took.Seconds())
		}
		busy = max(busy, heldBusy((own-l.own).Seconds()/took.Seconds(), Quota(), cores))
	}
	l.at, l.own, l.idle = now, own, idle
	return busy
}

// machineIdle is for how long processors had nothing to do, all together; 0: it is not known.
func machineIdle() time.Duration {
	text, _ := os.ReadFile("/proc/stat") // not on every system
	first, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(first) // cpu user nice system idle iowait …
	const fieldIdle, fieldWaiting = 4, 5
	if len(f) <= fieldWaiting || runtime.GOOS != "linux" {
		return 0
	}
	var ticks int64
	for _, field := range []int{fieldIdle, fieldWaiting} {
		n, _ := strconv.ParseInt(f[field], 10, 64) // of the kernel
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// heldBusy returns how many of the given cores are in use by who uses own of those that a quota grants; 0: it grants
// all.
func heldBusy(own, quota float64, cores int) float64 {
	if quota <= 0 || quota >= float64(cores) {
		return own
	}
	return own / quota * float64(cores)
}
