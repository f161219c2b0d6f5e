//go:build unix && !linux

package sandbox

import "syscall"

// YieldMemory does nothing here: the system does not ask who may be ended.
func YieldMemory() {}

func giveWay(int) {}

func closeOnExec(fd int) { syscall.CloseOnExec(fd) }

func memoryKills() int64 { return 0 }

func residentBytes() int64 { return 0 }

// maxrssUnit is the unit, in bytes, of a process's largest resident size.
const maxrssUnit = 1
