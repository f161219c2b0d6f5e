package budget

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSplitNeverGivesMoreThanThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(MemoryBytesMin, 1<<40).Draw(t, "total")
		cores := rapid.IntRange(1, 256).Draw(t, "cores")
		interpreters := rapid.IntRange(0, 256).Draw(t, "interpreters")
		b, err := Split(total, cores, interpreters)
		require.NoError(t, err)
		used := baseBytes + b.InterpreterBytes*int64(b.Interpreters) + b.SlotEngineBytes*int64(b.Slots)
		require.LessOrEqual(t, used, total)
		require.GreaterOrEqual(t, b.Slots, 1)
		require.LessOrEqual(t, b.Slots, cores)
		require.Equal(t, interpreters > 0, b.Interpreters > 0)
		require.LessOrEqual(t, b.GoBytes, total)
		require.Positive(t, b.BatchBytes)
	})
}

func TestSplitProcessesNeverGivesMoreThanThereIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(MemoryBytesMin, 1<<40).Draw(t, "total")
		cores := rapid.IntRange(1, 256).Draw(t, "cores")
		python := rapid.Bool().Draw(t, "python")
		b, err := SplitProcesses(total, cores, python)
		require.NoError(t, err)
		used := baseBytes + b.InterpreterBytes*int64(b.Interpreters) + (b.SlotEngineBytes+b.ProcessBytes)*int64(b.Slots)
		require.LessOrEqual(t, used, max(total, 320<<20), "the least budgets need a little more")
		require.GreaterOrEqual(t, b.Slots, 1)
		require.LessOrEqual(t, b.Slots, cores)
		require.Equal(t, python, b.Interpreters == b.Slots)
		require.GreaterOrEqual(t, b.SlotEngineBytes, int64(slotBytesMin*4/5))
		require.Positive(t, b.BatchBytes)
		require.Equal(t, b, b.resized(total))
		require.Zero(t, b.resized(0).Slots)
		smaller := b.resized(total / 2)
		require.GreaterOrEqual(t, smaller.Slots, 1)
		require.Positive(t, smaller.SlotEngineBytes)
		require.LessOrEqual(t, smaller.SlotEngineBytes, b.SlotEngineBytes)
		require.LessOrEqual(t, smaller.Slots, b.Slots)
	})
	_, err := SplitProcesses(MemoryBytesMin-1, 2, true)
	require.ErrorContains(t, err, "at least 256 MiB")
}

func TestSplitRefusesTooLittle(t *testing.T) {
	t.Parallel()
	_, err := Split(MemoryBytesMin-1, 2, 0)
	require.ErrorContains(t, err, "at least 256 MiB")
}

func TestMachineBytesTakesTheLeastLimit(t *testing.T) {
	t.Parallel()
	const meminfo = "MemTotal:       8388608 kB\nMemFree: 1 kB\n"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, fallbackBytes},
		"no group":      {map[string]string{"proc/meminfo": meminfo}, 8 << 30},
		"version 2": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "1073741824\n"},
			1 << 30},
		"version 2 unlimited": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n"},
			8 << 30},
		"version 2 parent": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/memory.max": "2147483648", "sys/fs/cgroup/a/b/memory.max": "max"}, 2 << 30},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "536870912"}, 512 << 20},
		"version 1 unlimited": {map[string]string{"proc/meminfo": meminfo,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712"}, 8 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tc.want, MachineBytesIn(rootOf(t, tc.files)))
		})
	}
}

func TestQuotaIsTheLeastOfTheGroups(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		files map[string]string
		want  float64
	}{
		"nothing known":       {nil, 0},
		"version 2":           {map[string]string{"sys/fs/cgroup/cpu.max": "40000 100000\n"}, 0.4},
		"version 2 unlimited": {map[string]string{"sys/fs/cgroup/cpu.max": "max 100000\n"}, 0},
		"version 2 parent": {map[string]string{"proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/cpu.max": "150000 100000", "sys/fs/cgroup/a/b/cpu.max": "400000 100000"}, 1.5},
		"version 1": {map[string]string{"proc/self/cgroup": "4:cpu:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "50000", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 0.5},
		"version 1 with another controller": {map[string]string{"proc/self/cgroup": "4:cpu,cpuacct:/x\n",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":  "50000",
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "25000\n"}, 2},
		"version 1 unlimited": {map[string]string{"proc/self/cgroup": "4:cpu:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us": "-1", "sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000"}, 0},
		"damaged": {map[string]string{"sys/fs/cgroup/cpu.max": "much 0\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.InDelta(t, tc.want, QuotaIn(rootOf(t, tc.files)), 1e-9)
		})
	}
}

func TestAllOfAQuotaIsAllCores(t *testing.T) {
	t.Parallel()
	require.InDelta(t, 1, heldBusy(0.4, 0.4, 1), 1e-9)
	require.InDelta(t, 2, heldBusy(0.8, 1.6, 4), 1e-9)
	require.InDelta(t, 0.4, heldBusy(0.4, 0, 1), 1e-9, "no quota")
	require.InDelta(t, 0.4, heldBusy(0.4, 2, 1), 1e-9, "fewer cores than it grants")
}

// rootOf makes files below a directory that stands for the root of the file system.
func rootOf(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for path, text := range files {
		full := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(text), 0o644))
	}
	return root
}
