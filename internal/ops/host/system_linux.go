package host

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// coalescing asks a card's driver.
func coalescing(name string) (out Coalescing, err error) {
	const getCoalesce = 0xe // ETHTOOL_GCOALESCE
	// struct ethtool_coalesce: the command, and 22 numbers.
	const usecs, frames, usecsOut, framesOut, adaptive, adaptiveOut = 1, 2, 5, 6, 10, 11
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return out, err
	}
	defer func() { _ = unix.Close(fd) }()
	asked := [32]uint32{getCoalesce}
	var request struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		rest [16]byte
	}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	request.data = unsafe.Pointer(&asked)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&asked)
	if errno != 0 {
		return out, errno
	}
	return Coalescing{Adaptive: asked[adaptive] != 0, Micros: asked[usecs], Frames: asked[frames],
		AdaptiveOut: asked[adaptiveOut] != 0, MicrosOut: asked[usecsOut], FramesOut: asked[framesOut]}, nil
}

// pinned binds the calling goroutine to one processor, for as long as it runs: its thread ends with it.
func pinned(core int) error {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(0, &set)
}

// resolution is the smallest step that the clock is said to have.
func resolution() time.Duration {
	var t unix.Timespec
	if unix.ClockGetres(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// past sets whether a file is read and written past the kernel's cache.
func past(f *os.File, direct bool) error {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err == nil {
		flags &^= syscall.O_DIRECT
		if direct {
			flags |= syscall.O_DIRECT
		}
		_, err = unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	}
	return err
}

// flush has the data of a file on the disk once it returns.
func flush(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// room is how much can be written below a directory.
func room(dir string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return int64(st.Bavail) * st.Bsize, err
}
