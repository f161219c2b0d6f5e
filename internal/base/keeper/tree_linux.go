package keeper

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// descendants lists the processes below one, parents first. The dead that nobody has
// reaped yet do not count.
func descendants(root int) []int {
	names, err := readNames("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	dead := map[int]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if parent, zombie, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
			dead[pid] = zombie
		}
	}
	var found []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, pid := range children[next[0]] {
			next = append(next, pid)
			if !dead[pid] {
				found = append(found, pid)
			}
		}
	}
	return found
}

func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// parentOf reads a process's parent: the second number behind its name, which stands
// in parentheses and may have any characters.
func parentOf(pid int) (parent int, zombie, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, false, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, fields[0][0] == 'Z' || fields[0][0] == 'X', err == nil
}

// Below says whether pid is root or one of its descendants.
func Below(root, pid int) bool {
	for pid != root {
		parent, _, ok := parentOf(pid)
		if !ok || parent <= 1 {
			return false
		}
		pid = parent
	}
	return true
}

// killAll sends the signal that cannot be refused, and says how many there are to die.
func killAll(pids []int) int {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL) // it has ended, or is another user's: sweep looks again
	}
	return len(pids)
}
