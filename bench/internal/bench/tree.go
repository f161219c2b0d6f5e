package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// How often the process tree is looked at. Memory of the known processes is
// cheap to read; finding new ones means going through all processes, and the
// proportional set size makes the kernel walk page tables.
const (
	memoryEveryMS = 25
	treeEveryMS   = 250
	// pssPause is the wait before the next look at the proportional size, as a multiple of the time of the
	// last one. So looks cost the measured process 1 % at most.
	pssPause = 100
)

// ticksPerSecond is the unit of CPU times in /proc, the same on every Linux
// that Go runs on.
const ticksPerSecond = 100

// moment is one look at the tree.
type moment struct {
	at  time.Time
	cpu time.Duration // user and system time used so far by the tree
}

// usage holds the resources of a process tree.
type usage struct {
	nextPSS   time.Time // not before: reading it holds up the process that is measured
	peakRSS   int64     // bytes, pages shared between processes counted in each
	peakPSS   int64     // bytes, pages shared between processes counted once; seldom sampled
	processes int       // most at a time
	moments   []moment
}

// Peaks are the most memory that a process and its descendants had at a time.
type Peaks struct {
	RSS int64 // bytes, pages shared between processes counted in each
	PSS int64 // bytes, those counted once; seldom sampled
}

// Watch samples the memory of a process and its descendants until ctx ends.
func Watch(ctx context.Context, pid int) (Peaks, error) {
	u, err := procfs("/proc").watch(ctx, pid)
	return Peaks{RSS: u.peakRSS, PSS: u.peakPSS}, err
}

// stat holds the fields of /proc/<pid>/stat that matter here.
type stat struct {
	pid, parent, group int
	cpu                time.Duration // own, and of the children that it has waited for
}

var errStat = errors.New("unreadable process status")

// parseStat reads /proc/<pid>/stat. The second field is a program's name in
// parentheses and may hold anything, hence the search from the right.
func parseStat(pid int, text []byte) (stat, error) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return stat{}, errStat
	}
	// Fields from the third on; numbers in proc(5) count from one.
	const parent, group, utime, cstime = 4 - 3, 5 - 3, 14 - 3, 17 - 3
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) <= cstime {
		return stat{}, errStat
	}
	s := stat{pid: pid}
	var err error
	number := func(i int) int64 {
		n, bad := strconv.ParseInt(fields[i], 10, 64)
		err = errors.Join(err, bad)
		return n
	}
	s.parent, s.group = int(number(parent)), int(number(group))
	var ticks int64
	for i := utime; i <= cstime; i++ {
		ticks += number(i)
	}
	s.cpu = time.Duration(ticks) * time.Second / ticksPerSecond
	return s, err
}

// procfs reads process information below a root, /proc but in tests.
type procfs string

// tree lists root, its descendants and the members of its process group. A
// process that ends while we look is left out.
func (p procfs) tree(root int) ([]stat, error) {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	children := map[int][]stat{}
	var found []stat
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		s, err := p.stat(pid)
		if err != nil {
			continue // gone in the meantime
		}
		if pid == root || s.group == root {
			found = append(found, s)
		} else {
			children[s.parent] = append(children[s.parent], s)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	return found, nil
}

func (p procfs) stat(pid int) (stat, error) {
	text, err := os.ReadFile(p.file(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	return parseStat(pid, text)
}

// cpuOf is the processor time that processes and their descendants have used.
func (p procfs) cpuOf(pids []int) (sum time.Duration) {
	seen := map[int]bool{}
	for _, pid := range pids {
		tree, err := p.tree(pid)
		if err != nil {
			continue
		}
		for _, s := range tree {
			if !seen[s.pid] {
				sum += s.cpu
			}
			seen[s.pid] = true
		}
	}
	return sum
}

func (p procfs) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// rss is a process's resident memory in bytes, 0 when it is gone.
func (p procfs) rss(pid int) int64 {
	text, err := os.ReadFile(p.file(pid, "statm"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// pss is a process's proportional set size in bytes, 0 when it is gone or the
// kernel does not tell.
func (p procfs) pss(pid int) int64 {
	text, err := os.ReadFile(p.file(pid, "smaps_rollup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kb << 10
		}
	}
	return 0
}

// watch samples the tree of root until ctx ends.
func (p procfs) watch(ctx context.Context, root int) (usage, error) {
	var u usage
	memory := time.NewTicker(memoryEveryMS * time.Millisecond)
	defer memory.Stop()
	var members []stat
	var next time.Time
	for {
		now := time.Now()
		if !now.Before(next) {
			found, err := p.tree(root)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return u, err
			}
			members = found
			u.look(p, now, members)
			next = now.Add(treeEveryMS * time.Millisecond)
		}
		var rss int64
		for _, m := range members {
			rss += p.rss(m.pid)
		}
		u.peakRSS = max(u.peakRSS, rss)
		select {
		case <-ctx.Done():
			return u, nil
		case <-memory.C:
		}
	}
}

// look adds what is sampled seldom. A processor time that went down belongs to
// a process that ended and was not waited for yet: the next look has it again.
func (u *usage) look(p procfs, now time.Time, members []stat) {
	var cpu time.Duration
	for _, m := range members {
		cpu += m.cpu
	}
	if now.After(u.nextPSS) {
		var pss int64
		for _, m := range members {
			pss += p.pss(m.pid)
		}
		u.peakPSS = max(u.peakPSS, pss)
		u.nextPSS = now.Add(pssPause * time.Since(now))
	}
	u.processes = max(u.processes, len(members))
	if n := len(u.moments); n == 0 || cpu >= u.moments[n-1].cpu {
		u.moments = append(u.moments, moment{now, cpu})
	}
}

// cpuAt is the processor time used until t, interpolated.
func (u usage) cpuAt(t time.Time) time.Duration {
	for i, m := range u.moments {
		if m.at.Before(t) {
			continue
		}
		if i == 0 {
			return m.cpu
		}
		before := u.moments[i-1]
		share := float64(t.Sub(before.at)) / float64(m.at.Sub(before.at))
		return before.cpu + time.Duration(share*float64(m.cpu-before.cpu))
	}
	if n := len(u.moments); n > 0 {
		return u.moments[n-1].cpu
	}
	return 0
}
