package around

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/test/effort"
)

func TestWhatPerfSaysIsRead(t *testing.T) {
	var c Counted
	require.NoError(t, c.read(strings.NewReader(`Events disabled
Events enabled
1234.56,msec,task-clock,1234560000,100.00,0.900,CPUs utilized
2000000,,cycles:u,1234560000,100.00,1.6,GHz
720000,,instructions:u,1234560000,83.30,0.36,insn per cycle
<not supported>,,stalled-cycles-frontend,0,100.00,,
<not counted>,,branches,0,0.00,,
400,,cache-references,1,80.00,,
100,,cache-misses,1,80.00,,
`)))
	require.Equal(t, map[string]float64{"task-clock": 1234.56, "cycles": 2e6, "instructions": 720e3,
		"cache-references": 400, "cache-misses": 100}, c.Counts)
	require.Equal(t, []string{"stalled-cycles-frontend"}, c.Unsupported)
	require.Equal(t, []string{"branches"}, c.Uncounted)
	require.InDelta(t, 0.8, c.Part, 1e-9)
	require.Equal(t, map[string]float64{"instructions a cycle": 0.36, "cache misses": 0.25}, c.Derived())
	for _, wrong := range []string{"a,b", "x,,cycles,1,100,,", "1,,cycles,1,x,,"} {
		require.Error(t, c.read(strings.NewReader(wrong)), wrong)
	}
}

// programs makes a directory the only one that programs are looked for in, beside those named of the system.
func programs(t *testing.T, names ...string) (dir string) {
	dir = t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	t.Setenv("PATH", dir)
	return dir
}

func written(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
}

func TestProcessesAreCountedWhileSomethingRuns(t *testing.T) {
	dir := programs(t, "cat", "sh")
	written(t, filepath.Join(dir, "perf"), "#!/bin/sh\necho \"$@\" >"+dir+"/asked\ncat\n"+
		"echo '7,,instructions,1,100.00,,' >&2\n", 0o755)
	out, counted, err := Counts(t.Context(), "", []int{os.Getpid()}, 1500*time.Millisecond,
		func(context.Context) (int, error) { return 3, nil })
	require.NoError(t, err)
	require.Equal(t, 3, out)
	require.Equal(t, []Counted{{PID: os.Getpid(), Program: programOf(procRoot, os.Getpid()),
		Counts: map[string]float64{"instructions": 7}, Part: 1}}, counted)
	asked, err := os.ReadFile(dir + "/asked")
	require.NoError(t, err)
	require.Equal(t, "stat -x, -D 1500 -e "+strings.Join(events, ",")+" -p "+strconv.Itoa(os.Getpid())+" -- cat\n",
		string(asked))

	written(t, filepath.Join(dir, "perf"), "#!/bin/sh\necho 'No permission to enable task-clock' >&2\nexit 255\n", 0o755)
	_, counted, err = Counts(t.Context(), "", []int{1}, 0, func(context.Context) (int, error) { return 0, nil })
	require.NoError(t, err)
	require.Equal(t, "perf counts nothing of process 1: exit status 255: No permission to enable task-clock",
		counted[0].Note)
	require.Nil(t, counted[0].Counts)

	require.NoError(t, os.Remove(filepath.Join(dir, "perf")))
	_, counted, err = Counts(t.Context(), "", []int{1}, 0, func(context.Context) (int, error) { return 0, nil })
	require.NoError(t, err)
	require.Equal(t, perfMissing, counted[0].Note)
	for _, wrong := range [][]int{{0}, {1, 1}, make([]int, pidsMost+1)} {
		_, err := StartCounting("", wrong, 0)
		require.Error(t, err)
	}
}

// What the real one counts depends on the machine: it says each event, or that it does not count it.
func TestTheRealPerfIsUnderstood(t *testing.T) {
	if _, err := exec.LookPath("perf"); err != nil {
		t.Skip("perf is not installed")
	}
	_, counted, err := Counts(t.Context(), "", []int{os.Getpid()}, 20*time.Millisecond,
		func(ctx context.Context) (n int, err error) {
			for began := time.Now(); time.Since(began) < 100*time.Millisecond; n++ {
				runtime.Gosched()
			}
			return n, nil
		})
	require.NoError(t, err)
	c := counted[0]
	if c.Note != "" {
		t.Skip(c.Note)
	}
	require.Len(t, events, len(c.Counts)+len(c.Unsupported)+len(c.Uncounted))
	t.Log(c)
}

func TestASecondLoadRunsMeanwhile(t *testing.T) {
	dir := t.TempDir()
	command := "echo $$ >" + dir + "/began.part; mv " + dir + "/began.part " + dir + "/began; sleep 1000 & wait"
	out, second, err := Beside(t.Context(), "", command, func(context.Context) (int, error) {
		require.Eventually(t, func() bool { _, err := os.Stat(dir + "/began"); return err == nil }, effort.Patience,
			time.Millisecond)
		return 5, nil
	})
	require.NoError(t, err)
	require.Equal(t, 5, out)
	require.Equal(t, command, second.Command)
	require.False(t, second.Ended)
	require.Positive(t, second.Ran)
	pid, err := os.ReadFile(dir + "/began")
	require.NoError(t, err)
	require.NoDirExists(t, "/proc/"+strings.TrimSpace(string(pid)))
}

func TestASecondLoadThatFailsEndsTheFirst(t *testing.T) {
	_, _, err := Beside(t.Context(), "", "echo it has no disk >&2; exit 3", func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	require.ErrorContains(t, err, "ended before the first one: exit status 3: it has no disk")
}

func TestASecondLoadThatEndsEarlyIsSaid(t *testing.T) {
	dir := t.TempDir()
	_, second, err := Beside(t.Context(), "", "echo $$ >"+dir+"/pid.part; mv "+dir+"/pid.part "+dir+"/pid",
		func(context.Context) (int, error) {
			require.Eventually(t, func() bool {
				pid, err := os.ReadFile(dir + "/pid")
				if err != nil {
					return false
				}
				_, err = os.Stat("/proc/" + strings.TrimSpace(string(pid)))
				return err != nil
			}, effort.Patience, time.Millisecond)
			return 0, nil
		})
	require.NoError(t, err)
	require.True(t, second.Ended)
}

func TestSettingsAreShownWithoutPasswords(t *testing.T) {
	proc, groups := t.TempDir(), t.TempDir()
	written(t, proc+"/sys/kernel/osrelease", "6.1.0-test\n", 0o600)
	written(t, proc+"/sys/kernel/version", "#1 SMP\n", 0o600)
	written(t, proc+"/self/cgroup", "0::/a/b\n", 0o600)
	written(t, groups+"/cpu.max", "max 100000\n", 0o600)
	written(t, groups+"/a/cpu.max", "200000 100000\n", 0o600)
	written(t, groups+"/a/b/cpu.max", "max 100000\n", 0o600)
	written(t, groups+"/a/b/memory.max", "1073741824\n", 0o600)
	line := []string{"java", "-ea", "-Xms4G", "-XX:+UseG1GC", "-javaagent:/x.jar=password=secret",
		"-Dcom.sun.management.jmxremote.password=secret", "-XX:OnOutOfMemoryError=kill -9 %p", "@jvm.options", "-cp", "a:b", daemon, "-Xnot"}
	written(t, proc+"/41/cmdline", strings.Join(line, "\x00")+"\x00", 0o600)
	written(t, proc+"/41/cwd/jvm.options", "# -Xnot\n\"-Xss1m\" -Dpassword=secret\n", 0o600)
	written(t, proc+"/41/cgroup", "4:memory:/cass\n2:cpu,cpuacct:/\n", 0o600)
	written(t, groups+"/memory/cass/memory.limit_in_bytes", "4294967296\n", 0o600)
	written(t, groups+"/memory/memory.limit_in_bytes", "9223372036854771712\n", 0o600)
	written(t, groups+"/cpu/cpu.cfs_quota_us", "50000\n", 0o600)
	written(t, groups+"/cpu/cpu.cfs_period_us", "100000\n", 0o600)
	written(t, proc+"/42/cmdline", "grep\x00"+daemon+"\x00", 0o600)
	require.NoError(t, os.Remove(proc+"/42/cmdline"))
	written(t, proc+"/43/cmdline", "", 0o600)
	require.Equal(t, Settings{Kernel: "6.1.0-test #1 SMP", Limits: []Limit{{"memory.max", "1073741824", "/a/b"},
		{"cpu.max", "200000 100000", "/a"}},
		Servers: []JVM{{PID: 41, Flags: []string{"-ea", "-Xms4G", "-XX:+UseG1GC", "-javaagent:/x.jar", "-Xss1m"},
			Limits: []Limit{{"memory.limit_in_bytes", "4294967296", "/cass"}, {"cpu.cfs_quota_us", "50000 of 100000", "/"}}}}},
		SettingsOf(proc, groups, true))
	require.NoError(t, os.Remove(proc+"/41/cwd/jvm.options"))
	require.Contains(t, strings.Join(SettingsOf(proc, groups, true).Unseen, ""), "flags of server 41: open ")
	written(t, groups+"/cpu/cpu.cfs_quota_us", "-1\n", 0o600)
	require.Len(t, SettingsOf(proc, groups, true).Servers[0].Limits, 1, "no quota is no limit, whatever its period")

	require.NoError(t, os.RemoveAll(proc+"/41"))
	require.Equal(t, []string{"flags of a Cassandra server: none is to be seen on this host"},
		SettingsOf(proc, groups, true).Unseen)
	require.NoError(t, os.RemoveAll(proc))
	require.Len(t, SettingsOf(proc, groups, true).Unseen, 4)
}

func TestSettingsOfThisHost(t *testing.T) {
	if _, err := os.Stat("/proc/self/cgroup"); errors.Is(err, os.ErrNotExist) {
		t.Skip("the kernel has no /proc")
	}
	require.NotEmpty(t, SettingsHere(true).Kernel)
}
