package peek

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the kernel hands a filter of system calls: struct seccomp_data.
const (
	seccompNumberAt = 0
	seccompArchAt   = 4
)

// Modes and answers of filters, as linux/seccomp.h has them.
const (
	seccompSetFilter   = 1
	seccompAllThreads  = 1
	seccompAllow       = 0x7fff0000
	seccompRefuse      = 0x00050000 // with an error number
	seccompKillProcess = 0x80000000
	x32Numbers         = 0x40000000 // and above: the calls of x32 on amd64
)

// architectures are those whose system calls are known here.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// noSockets refuses this process any further socket of whatever kind, for good. io_uring, which makes some without the
// call, is refused, too. Those that are open stay.
func noSockets() error {
	arch, known := architectures[runtime.GOARCH]
	if !known {
		return fmt.Errorf("the system calls of %s are not known", runtime.GOARCH)
	}
	// Both calls are about the thread that makes them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filter := socketFilter(arch)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, seccompSetFilter, seccompAllThreads,
		uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	switch {
	case errno != 0:
		return fmt.Errorf("filter system calls: %w", errno)
	case thread != 0:
		return fmt.Errorf("filter system calls: thread %d is not filtered", thread)
	}
	return nil
}

// socketFilter is the filter in the kernel's instructions. Calls of another architecture than arch end the process.
func socketFilter(arch uint32) []unix.SockFilter {
	refused := []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_IO_URING_SETUP}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	answer := func(with uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: with} }
	out := []unix.SockFilter{load(seccompArchAt),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch}, answer(seccompKillProcess), load(seccompNumberAt),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, Jt: uint8(len(refused)) + 1, K: x32Numbers}}
	for i, number := range refused {
		out = append(out, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(refused) - i),
			K: number})
	}
	return append(out, answer(seccompAllow), answer(seccompRefuse|uint32(unix.EACCES)))
}
