package samples

import (
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/budget"
)

// Every is the time between two samples of a process.
const Every = 10 * time.Second

// Sample is what a process and those that it has started used of their machine since the sample before.
type Sample struct {
	Time             time.Time     // when it was taken, by the clock of the state
	Took             time.Duration // since the sample before
	CPU              time.Duration // of the process itself
	ChildrenCPU      time.Duration
	Cores            int   // that it may use
	Resident         int64 // bytes, now
	ChildrenResident int64
	MemoryLimit      int64
	DiskFree         int64 // of the file system of its directory
	DiskTotal        int64
	Read             int64 // bytes, from disks
	Written          int64
}

// Reading is what a process has used so far, and what there is now.
type Reading struct {
	Self, Children      budget.Use
	Cores               int
	MemoryLimit         int64
	DiskFree, DiskTotal int64
}

// Reader returns what this process reads of itself and of the disk that has dir. It may be called by one goroutine at
// a time.
func Reader(dir string) func() (Reading, bool) {
	var processes budget.Processes
	return func() (r Reading, ok bool) {
		if r.Self, r.Children, ok = processes.Use(); !ok {
			return r, false
		}
		r.Cores, r.MemoryLimit = budget.Cores(), budget.MachineBytes()
		var disk unix.Statfs_t
		if unix.Statfs(dir, &disk) == nil {
			size := int64(disk.Bsize) //nolint:unconvert // of another type on other systems
			r.DiskFree, r.DiskTotal = int64(disk.Bavail)*size, int64(disk.Blocks)*size
		}
		return r, true
	}
}

// sampleOf is what was used between two readings.
func sampleOf(before, now Reading, since, at time.Time) Sample {
	return Sample{Time: at, Took: max(at.Sub(since), 0), CPU: max(now.Self.CPU-before.Self.CPU, 0),
		ChildrenCPU: max(now.Children.CPU-before.Children.CPU, 0), Cores: now.Cores, Resident: now.Self.Resident,
		ChildrenResident: now.Children.Resident, MemoryLimit: now.MemoryLimit, DiskFree: now.DiskFree,
		DiskTotal: now.DiskTotal,
		Read:      max(now.Self.Read+now.Children.Read-before.Self.Read-before.Children.Read, 0),
		Written:   max(now.Self.Written+now.Children.Written-before.Self.Written-before.Children.Written, 0)}
}

// with is a sample together with the next one: what was used of both, and the most and the least of what there was.
func (s Sample) with(next Sample) Sample {
	next.Took += s.Took
	next.CPU += s.CPU
	next.ChildrenCPU += s.ChildrenCPU
	next.Read += s.Read
	next.Written += s.Written
	if s.Resident+s.ChildrenResident > next.Resident+next.ChildrenResident {
		next.Resident, next.ChildrenResident = s.Resident, s.ChildrenResident
	}
	if s.DiskTotal > 0 {
		next.DiskFree = min(next.DiskFree, s.DiskFree)
	}
	return next
}
