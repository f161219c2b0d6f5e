package doctor

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

func processes() Result {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return Failed(&fault.Error{Kind: fault.Environment, Message: "ask for the limit of processes", Err: err})
	}
	has := limit.Cur
	if os.Geteuid() == 0 { // whom the limit does not hold for
		has = unix.RLIM_INFINITY
	}
	how := "ulimit -u, or TasksMax= of the service"
	for _, path := range []string{"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n < has {
			has, how = n, "pids.max of the control group, or the container's limit of processes"
		}
	}
	return judgeLimit(has, processesWarn, processesBad, how)
}

// kept reports whether somebody keeps this machine's clock right.
func kept() Result {
	var t unix.Timex
	status, err := unix.Adjtimex(&t)
	if err != nil {
		return Result{Verdict: Skipped, Seen: "the system does not say whether somebody keeps it right"}
	}
	const unkept = 5 // TIME_ERROR
	if status == unkept {
		return Result{Verdict: Warning, Seen: "nobody keeps it right, says the system",
			Mend: "run chrony or systemd-timesyncd, unless the machine around this one keeps it"}
	}
	return good("the system keeps it right")
}

func fileSystem(magic int64) kindOfFiles {
	switch magic & 0xffffffff {
	case unix.NFS_SUPER_MAGIC:
		return kindOfFiles{name: "NFS", far: true}
	case unix.SMB_SUPER_MAGIC, 0xff534d42, 0xfe534d42:
		return kindOfFiles{name: "SMB", far: true}
	case unix.TMPFS_MAGIC, unix.RAMFS_MAGIC:
		return kindOfFiles{name: "in memory", memory: true}
	case unix.EXT4_SUPER_MAGIC:
		return kindOfFiles{name: "ext4"}
	case unix.XFS_SUPER_MAGIC:
		return kindOfFiles{name: "xfs"}
	case unix.BTRFS_SUPER_MAGIC:
		return kindOfFiles{name: "btrfs"}
	case unix.OVERLAYFS_SUPER_MAGIC:
		return kindOfFiles{name: "overlay"}
	case unix.FUSE_SUPER_MAGIC:
		return kindOfFiles{name: "FUSE"}
	}
	return kindOfFiles{}
}
