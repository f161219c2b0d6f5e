//go:build linux

package keeper

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHomeIn reads the files that say where a process's cgroup is, as different systems write them.
func TestHomeIn(t *testing.T) {
	t.Parallel()
	const (
		unified = "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 30 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n33 30 0:28 / /sys/fs/cgroup/freezer " +
			"rw - cgroup cgroup rw,freezer\n"
		both     = "33 30 0:28 / /sys/fs/cgroup/cpu,freezer rw - cgroup cgroup rw,cpu,freezer\n"
		bound    = "33 30 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		escaped  = `33 30 0:26 / /mnt/a\040b rw - cgroup2 cgroup rw` + "\n"
		freezer  = "6:freezer:/\n4:memory:/x\n0::/\n"
		nothing  = "1:name=systemd:/\n"
		service  = "0::/user.slice/user-1000.slice/a b.scope\n"
		explicit = "0::/docker/abc/inner\n"
	)
	for _, c := range []struct {
		name         string
		version      int
		mine, mounts string
		want         string
	}{
		{"service", 2, service, unified, "/sys/fs/cgroup/user.slice/user-1000.slice/a b.scope"},
		{"root of both", 2, freezer, hybrid, "/sys/fs/cgroup/unified"},
		{"freezer", 1, freezer, hybrid, "/sys/fs/cgroup/freezer"},
		{"freezer with others", 1, freezer, both, "/sys/fs/cgroup/cpu,freezer"},
		{"no freezer", 1, service, unified, ""},
		{"no group", 2, nothing, hybrid, ""},
		{"a part is mounted", 2, explicit, bound, "/sys/fs/cgroup/inner"},
		{"another part is mounted", 2, service, bound, ""},
		{"blanks", 2, "0::/x\n", escaped, "/mnt/a b/x"},
		{"nonsense", 2, "0:", "x - cgroup2\n", ""},
	} {
		require.Equal(t, c.want, homeIn(c.version, c.mine, c.mounts), c.name)
	}
}

func TestParentOf(t *testing.T) {
	t.Parallel()
	parent, zombie, ok := parentOf(os.Getpid())
	require.True(t, ok)
	require.False(t, zombie)
	require.Equal(t, os.Getppid(), parent)
	require.True(t, Below(os.Getppid(), os.Getpid()))
	require.False(t, Below(os.Getpid(), os.Getppid()))
	_, _, ok = parentOf(0)
	require.False(t, ok)
}
