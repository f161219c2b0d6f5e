//go:build unix && !linux

package keeper

import "syscall"

const supported = false

// alone: a group of its own. Death with us is left to the program.
func alone() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(pid int) {
	if pid > 0 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // the one way that it fails is that nobody is left
	}
}

// Main is never called here: see Start.
func Main([]string, []int) int { return 1 }
