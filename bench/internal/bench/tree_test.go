package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeProc writes processes as /proc shows them. cpu is in ticks.
type fakeProc struct {
	pid, parent, group int
	own, waited        int
	name               string
	pages, pssKB       int
}

func writeProc(t *testing.T, processes ...fakeProc) procfs {
	t.Helper()
	root := t.TempDir()
	for _, p := range processes {
		dir := filepath.Join(root, fmt.Sprint(p.pid))
		require.NoError(t, os.Mkdir(dir, 0o755))
		for name, text := range map[string]string{
			"stat": fmt.Sprintf("%d (%s) S %d %d 1 0 -1 0 0 0 0 0 %d 1 %d 1 20 0 1 0 0\n", p.pid, p.name, p.parent,
				p.group, p.own, p.waited),
			"statm": fmt.Sprintf("9999 %d 5 1 0 7 0\n", p.pages),
			"smaps_rollup": fmt.Sprintf("0-1 ---p 0 00:00 0 [rollup]\nRss:  1 kB\nPss:   %d kB\nPss_Dirty: 3 kB\n",
				p.pssKB),
		} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "sys"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "stat"), []byte("cpu  100 2 30 999 9 4 5 60 0 0\ncpu0 1\n"),
		0o600))
	return procfs(root)
}

func TestTreeHasDescendantsAndGroupMembers(t *testing.T) {
	t.Parallel()
	proc := writeProc(t,
		fakeProc{pid: 10, parent: 1, group: 10, name: "thalweg", own: 100, waited: 50, pages: 3, pssKB: 7},
		fakeProc{pid: 11, parent: 10, group: 11, name: "python) 3 (x", own: 20, pages: 4, pssKB: 8},
		fakeProc{pid: 12, parent: 11, group: 11, name: "grandchild", own: 5},
		fakeProc{pid: 13, parent: 1, group: 10, name: "orphan of the group"},
		fakeProc{pid: 14, parent: 1, group: 14, name: "stranger", own: 7777},
	)
	found, err := proc.tree(10)
	require.NoError(t, err)
	pids := mapped(found, func(s stat) int { return s.pid })
	slices.Sort(pids)
	require.Equal(t, []int{10, 11, 12, 13}, pids)

	var u usage
	u.look(proc, time.Now(), found)
	// Ticks of 10 ms; each process has one more of user and one more of child time than given.
	require.Equal(t, (100+50+20+5+4*2)*10*time.Millisecond, u.moments[0].cpu)
	require.EqualValues(t, (7+8)<<10, u.peakPSS)
	require.Equal(t, 4, u.processes)
	require.EqualValues(t, 3*os.Getpagesize(), proc.rss(10))
	require.Zero(t, proc.rss(4711), "a process that is gone uses nothing")
	require.Equal(t, machineCPU{busy: 1410 * time.Millisecond, stolen: 600 * time.Millisecond}, proc.cpu())
}

func TestParseStatRefusesGarbage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1 no parentheses", "1 (short) S 1 2",
		"1 (x) S a 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"} {
		_, err := parseStat(1, []byte(text))
		require.Error(t, err, "%q", text)
	}
}

func TestCPUAtInterpolates(t *testing.T) {
	t.Parallel()
	zero := time.Unix(1000, 0)
	u := usage{moments: []moment{{zero, time.Second}, {zero.Add(2 * time.Second), 3 * time.Second},
		{zero.Add(4 * time.Second), 3 * time.Second}}}
	for after, want := range map[time.Duration]time.Duration{
		-time.Second: time.Second, 0: time.Second, time.Second: 2 * time.Second,
		3 * time.Second: 3 * time.Second, time.Minute: 3 * time.Second,
	} {
		require.Equal(t, want, u.cpuAt(zero.Add(after)), "after %s", after)
	}
	require.Zero(t, usage{}.cpuAt(zero))
}
