package budget

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// fallbackBytes is assumed where the machine tells nothing.
const fallbackBytes = 2 << 30

// MachineBytes is the memory that this process may use: the least of the
// machine's and the limits of its control groups (version 1 and 2).
func MachineBytes() int64 { return MachineBytesIn("/") }

// MachineBytesIn is MachineBytes of the machine whose files are below root.
func MachineBytesIn(root string) int64 {
	total := memTotal(filepath.Join(root, "proc/meminfo"))
	for _, f := range LimitFiles(root, "memory.max", "memory", "memory.limit_in_bytes") {
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

// Quota is how many processors the control groups of this process (version 1 and 2) let it use; 0: all.
func Quota() float64 { return QuotaIn("/") }

// QuotaIn is Quota of the machine whose files are below root.
func QuotaIn(root string) (least float64) {
	files := LimitFiles(root, "cpu.max", "cpu", "cpu.cfs_quota_us")
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		said := strings.Fields(string(data))
		if filepath.Base(f) != "cpu.max" { // version 1 has the period in another file
			period, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cpu.cfs_period_us"))
			said = append(said, strings.TrimSpace(string(period)))
		}
		if len(said) != 2 {
			continue
		}
		may, err := strconv.ParseFloat(said[0], 64) // "max", and less than 0 in version 1: no limit
		of, wrong := strconv.ParseFloat(said[1], 64)
		if err == nil && wrong == nil && may > 0 && of > 0 && (least == 0 || may/of < least) {
			least = may / of
		}
	}
	return least
}

// LimitFiles lists the files that may limit this process, below root: its own group's and all of that group's parents'. Version 1
// of control groups has a file in the hierarchy of a controller.
func LimitFiles(root, file, controller, oldFile string) []string {
	base := filepath.Join(root, "sys/fs/cgroup")
	files := []string{filepath.Join(base, file), filepath.Join(base, controller, oldFile)}
	data, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return files
	}
	for _, line := range strings.Split(string(data), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		dirs, name := []string{base}, file
		if slices.Contains(strings.Split(parts[1], ","), controller) { // mounted under all its names, or one
			dirs, name = []string{filepath.Join(base, controller), filepath.Join(base, parts[1])}, oldFile
		} else if parts[1] != "" {
			continue
		}
		for p := filepath.Clean("/" + parts[2]); p != "/"; p = filepath.Dir(p) {
			for _, dir := range slices.Compact(dirs) {
				files = append(files, filepath.Join(dir, p, name))
			}
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
