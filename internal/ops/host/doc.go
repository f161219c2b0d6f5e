// Package host measures the machine that it is on: processors, memory, disks, interrupts, network, clock, limits.
//
// It promises that what cannot be seen or measured is named, with why. It fails only if it is canceled.
package host
