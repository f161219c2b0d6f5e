// Package keeper runs a program so that nothing that it has started outlives it:
// children, their children, those that went into sessions of their own, those that
// daemons make of themselves by forking twice.
//
// It is the one place of the product that starts processes: it decides their directory,
// their end with ours, and their environment: exactly that of the Program.
//
// It owns how a process tree is held together and ended. Between the caller and the
// program stands one process, the keeper: the caller's own executable, started
// again with a command line that Called recognises. It adopts every descendant that
// loses its parent (Linux's child subreaper), so all of them stay below it, and puts
// the program into a cgroup of its own where that is allowed. When the program ends,
// when the caller asks (Guard.Kill), and when the caller dies in whatever way (the
// keeper reads the end of a pipe), it kills all of them and waits until they are gone.
//
// It promises:
//
//   - Guard.Wait returns when the program and all of its descendants have ended, or says how many could not be ended.
//   - The program's end is told as it was, exit status or signal.
//   - The program sees the descriptors, environment and working directory that the caller gave, and none of the
//     keeper's.
//   - If the keeper itself is killed, the program dies with it; what the program had started dies too where there is
//     a cgroup: at the latest when the next keeper starts.
//
// Without a command line of its own, and on systems other than Linux, there is no
// keeper: a program's process group is killed with it, and what left the group is not.
//
// What can fail: starting the keeper. A program that cannot be started is told by Wait.
package keeper
