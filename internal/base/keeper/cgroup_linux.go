package keeper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// group is a cgroup that holds a program and all that it starts. Being killed as
// a whole, it also ends what forks faster than a list of processes is read, and
// what is left when a keeper was killed. A nil *group does nothing.
type group struct {
	version int    // 1: of the freezer
	dir     string // the group
	home    string // ours
}

// newGroup makes a group below our own, if that is allowed; else it returns nil.
func newGroup(versions []int) *group {
	for _, version := range versions {
		if g := newGroupOf(version); g != nil {
			return g
		}
	}
	return nil
}

func newGroupOf(version int) *group {
	home := homeOf(version)
	if home == "" {
		return nil
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	prefix := name + "-" + strings.Trim(strings.TrimPrefix(space, "pid:"), "[]") + "-"
	clearUp(version, home, prefix)
	g := &group{version: version, home: home, dir: filepath.Join(home, prefix+strconv.Itoa(os.Getpid()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil
	}
	if _, err := os.Stat(filepath.Join(g.dir, g.lever())); err != nil {
		g.remove()
		return nil
	}
	return g
}

// clearUp ends the groups of keepers that are dead: they were killed.
func clearUp(version int, home, prefix string) {
	names, err := readNames(home)
	if err != nil {
		return
	}
	for _, name := range names {
		pid, err := strconv.Atoi(strings.TrimPrefix(name, prefix))
		if err != nil || !strings.HasPrefix(name, prefix) {
			continue
		}
		if _, dead, there := parentOf(pid); there && !dead {
			continue
		}
		g := &group{version: version, home: home, dir: filepath.Join(home, name)}
		g.kill()
		for deadline := time.Now().Add(sweepLimit); !g.empty() && time.Now().Before(deadline); {
			<-time.After(time.Millisecond)
		}
		g.remove()
	}
}

// lever is the file by which the group is killed.
func (g *group) lever() string {
	if g.version == 1 {
		return "freezer.state"
	}
	return "cgroup.kill"
}

func (g *group) mechanism() string { return fmt.Sprintf("subreaper and cgroup v%d", g.version) }

// enter puts this process into the group, leave takes it out: what it starts between
// the two begins there.
func (g *group) enter() error { return g.write("cgroup.procs", "0") }

func (g *group) leave() error {
	return os.WriteFile(filepath.Join(g.home, "cgroup.procs"), []byte("0"), 0)
}

func (g *group) write(file, text string) error {
	return os.WriteFile(filepath.Join(g.dir, file), []byte(text), 0)
}

// kill ends all processes of the group, without waiting for that.
func (g *group) kill() {
	if g == nil {
		return
	}
	if g.version == 2 {
		_ = g.write("cgroup.kill", "1") // sweep finds out, and goes by the list of processes
		return
	}
	_ = g.write("freezer.state", "FROZEN") // so that none is born between the listing and the killing
	killAll(g.processes())
	_ = g.write("freezer.state", "THAWED") // frozen, they would not die
}

func (g *group) processes() []int {
	b, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, line := range bytes.Fields(b) {
		if pid, err := strconv.Atoi(string(line)); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (g *group) empty() bool { return g == nil || len(g.processes()) == 0 }

func (g *group) remove() {
	if g != nil {
		_ = os.Remove(g.dir) // the next keeper tries again
	}
}

// homeOf gives the directory of this process's own group in a hierarchy; "" if there is none.
func homeOf(version int) string {
	mine, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return homeIn(version, string(mine), string(mounts))
}

func homeIn(version int, mine, mounts string) string {
	path := ""
	for _, line := range strings.Split(mine, "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && (version == 2 && f[0] == "0" && f[1] == "" || version == 1 && hasWord(f[1], "freezer")) {
			path = f[2]
		}
	}
	if path == "" {
		return ""
	}
	for _, line := range strings.Split(mounts, "\n") {
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 5 || len(b) < 3 {
			continue
		}
		if version == 2 && b[0] != "cgroup2" || version == 1 && (b[0] != "cgroup" || !hasWord(b[2], "freezer")) {
			continue
		}
		if rel, err := filepath.Rel(unescape(f[3]), path); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(unescape(f[4]), rel)
		}
	}
	return ""
}

func hasWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
