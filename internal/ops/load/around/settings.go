package around

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// procRoot is where the kernel tells of processes.
const procRoot = "/proc"

// Settings are those of a host that a figure may depend on.
type Settings struct {
	Kernel  string   `json:"kernel,omitempty"`
	Limits  []Limit  `json:"cgroup_limits,omitempty"` // of this process
	Servers []JVM    `json:"servers,omitempty"`       // of Cassandra, on this host
	Unseen  []string `json:"unseen,omitempty"`        // what could not be read, and why
}

// Limit is one of a control group or of one above it: the least of them holds.
type Limit struct {
	Name  string `json:"name"` // of the kernel's file: cpu.max
	Value string `json:"value"`
	Group string `json:"group"`
}

// JVM is a Cassandra server.
type JVM struct {
	PID    int      `json:"pid"`
	Flags  []string `json:"jvm_flags"` // without properties (-D), which may be passwords
	Limits []Limit  `json:"cgroup_limits,omitempty"`
}

// SettingsOf reads the settings of the host whose /proc and /sys/fs/cgroup these are; with servers, of Cassandra
// servers on it, too.
func SettingsOf(proc, cgroups string, servers bool) (out Settings) {
	unseen := func(what string, err error) {
		if err != nil {
			out.Unseen = append(out.Unseen, fmt.Sprintf("%s: %v", what, err))
		}
	}
	release, err := os.ReadFile(filepath.Join(proc, "sys/kernel/osrelease"))
	unseen("the kernel", err)
	version, err := os.ReadFile(filepath.Join(proc, "sys/kernel/version"))
	unseen("the kernel's version", err)
	out.Kernel = strings.TrimSpace(string(bytes.TrimSpace(release)) + " " + string(bytes.TrimSpace(version)))
	out.Limits, err = limitsOf(proc, cgroups, "self")
	unseen("limits of this process's control group", err)
	if !servers {
		return out
	}
	out.Servers, err = jvmsOf(proc, cgroups, unseen)
	unseen("processes of this host", err)
	if err == nil && len(out.Servers) == 0 {
		out.Unseen = append(out.Unseen, "flags of a Cassandra server: none is to be seen on this host")
	}
	return out
}

// SettingsHere are those of this host.
func SettingsHere(servers bool) Settings { return SettingsOf(procRoot, "/sys/fs/cgroup", servers) }

// daemon is the class that a Cassandra server's command line names.
const daemon = "org.apache.cassandra.service.CassandraDaemon"

// jvmsOf finds the Cassandra servers among the processes. Those that have ended meanwhile are none.
func jvmsOf(proc, cgroups string, unseen func(string, error)) (out []JVM, err error) {
	dirs, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join(proc, d.Name(), "cmdline"))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
				unseen(fmt.Sprintf("the command line of process %d", pid), err)
			}
			continue
		}
		args := strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
		if i := slices.Index(args, daemon); i > 0 {
			args, err := argumentsIn(filepath.Join(proc, d.Name(), "cwd"), args[1:i])
			unseen(fmt.Sprintf("flags of server %d", pid), err)
			server := JVM{PID: pid, Flags: jvmFlags(args)}
			server.Limits, err = limitsOf(proc, cgroups, d.Name())
			unseen(fmt.Sprintf("limits of server %d's control group", pid), err)
			out = append(out, server)
		}
	}
	slices.SortFunc(out, func(a, b JVM) int { return a.PID - b.PID })
	return out, nil
}

// argumentsIn puts what the files have that arguments name (@FILE) in their place, as java does.
func argumentsIn(dir string, args []string) (out []string, err error) {
	for _, a := range args {
		name, is := strings.CutPrefix(a, "@")
		if !is {
			out = append(out, a)
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		text, wrong := os.ReadFile(name)
		err = errors.Join(err, wrong)
		for line := range strings.Lines(string(text)) {
			line, _, _ = strings.Cut(line, "#")
			for word := range strings.FieldsSeq(line) {
				out = append(out, strings.Trim(word, `"'`))
			}
		}
	}
	return out, err
}

// jvmFlags are those that say how the machine works: heap, collectors, stacks. Agents (-javaagent) are without their
// options.
func jvmFlags(args []string) []string {
	out := []string{}
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-javaagent:"):
			path, _, _ := strings.Cut(a, "=")
			out = append(out, path)
		case strings.HasPrefix(a, "-XX:OnOutOfMemoryError"), strings.HasPrefix(a, "-XX:OnError"):
		case strings.HasPrefix(a, "-X"), a == "-server", a == "-ea", a == "-da", a == "-client":
			out = append(out, a)
		}
	}
	return out
}

// limitFiles are the files of version 2 and of version 1 that have limits, and what they say without one.
var limitFiles = map[string][]string{
	"":       {"cpu.max", "cpuset.cpus", "memory.max", "memory.high", "io.max", "pids.max"},
	"cpu":    {"cpu.cfs_quota_us"},
	"cpuset": {"cpuset.cpus"},
	"memory": {"memory.limit_in_bytes"},
}

// unlimited1 is the least that version 1 says when there is no limit of memory: a number of pages.
const unlimited1 = 1 << 60

// limitsOf reads the limits of a process's groups and of those above them.
func limitsOf(proc, cgroups, process string) (out []Limit, err error) {
	text, err := os.ReadFile(filepath.Join(proc, process, "cgroup"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(parts) != 3 {
			return nil, fmt.Errorf("a line of it is %q", line)
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			root := cgroups
			if controller != "" {
				root = filepath.Join(cgroups, controller)
			}
			for group := filepath.Clean("/" + parts[2]); ; group = filepath.Dir(group) {
				for _, name := range limitFiles[controller] {
					value := limitIn(filepath.Join(root, group, name))
					if value != "" && name == "cpu.cfs_quota_us" { // of a time that says nothing by itself
						value += " of " + limitIn(filepath.Join(root, group, "cpu.cfs_period_us"))
					}
					if value != "" {
						out = append(out, Limit{Name: name, Value: value, Group: group})
					}
				}
				if group == "/" {
					break
				}
			}
		}
	}
	return out, nil
}

// limitIn reads a limit; "": there is none.
func limitIn(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "" // the group has no such limit, or lies outside of what this process sees
	}
	value := strings.Join(strings.Fields(string(text)), " ")
	if first, _, _ := strings.Cut(value, " "); first == "max" || first == "-1" {
		return ""
	}
	if n, err := strconv.ParseUint(value, 10, 64); err == nil && n >= unlimited1 {
		return ""
	}
	return value
}
