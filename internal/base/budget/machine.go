package budget

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// fallbackBytes is assumed where the machine tells nothing.
const fallbackBytes = 2 << 30

// MachineBytes is the memory that this process may use: the least of the
// machine's and the limits of its control groups (version 1 and 2).
func MachineBytes() int64 { return machineBytes("/") }

func machineBytes(root string) int64 {
	total := memTotal(filepath.Join(root, "proc/meminfo"))
	for _, f := range limitFiles(root) {
		if n, ok := readLimit(f); ok && (total == 0 || n < total) {
			total = n
		}
	}
	if total == 0 {
		return fallbackBytes
	}
	return total
}

func memTotal(path string) int64 {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	s := bufio.NewScanner(bytes.NewReader(data))
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// limitFiles lists the files that may limit this process: its own group's and
// all of that group's parents'.
func limitFiles(root string) []string {
	base := filepath.Join(root, "sys/fs/cgroup")
	files := []string{filepath.Join(base, "memory.max"), filepath.Join(base, "memory/memory.limit_in_bytes")}
	data, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return files
	}
	for _, line := range strings.Split(string(data), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, name := base, "memory.max"
		if parts[1] == "memory" {
			dir, name = filepath.Join(base, "memory"), "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for p := filepath.Clean("/" + parts[2]); p != "/"; p = filepath.Dir(p) {
			files = append(files, filepath.Join(dir, p, name))
		}
	}
	return files
}

func readLimit(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	// Version 1 says "no limit" with a number near 2^63.
	return n, err == nil && n > 0 && n < 1<<60
}
