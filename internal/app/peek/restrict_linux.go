package peek

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"thalweg/internal/base/fault"
)

// Rights to files: none executes one.
const (
	readFile  = landlock.AccessFSSet(landlocksys.AccessFSReadFile) // and nothing of its directory
	writeFile = readFile | landlocksys.AccessFSWriteFile | landlocksys.AccessFSTruncate
	ownDir    = writeFile | landlocksys.AccessFSReadDir | landlocksys.AccessFSMakeReg | landlocksys.AccessFSMakeDir |
		landlocksys.AccessFSRemoveFile | landlocksys.AccessFSRemoveDir
)

// engineReads are files outside the tables that DuckDB reads at its start: it ends the process where they are there and
// cannot be read. ownReads say what this process takes.
var (
	engineReads = []string{"/proc/self/cgroup", "/sys/fs/cgroup"}
	ownReads    = []string{"/proc/self/status", "/proc/self/statm"}
)

// Versions of Landlock from which on more can be held back.
const (
	landlockFiles  = 1
	landlockTCP    = 4
	landlockScopes = 6
)

// restrict holds this process to its files and its share of the machine, for good. What the system cannot hold back
// is noted.
func restrict(set settings, dir string) (notes []string, err error) {
	if err := limitProcess(set); err != nil {
		return nil, err
	}
	rules := []landlock.Rule{landlock.PathAccess(ownDir, dir), landlock.PathAccess(writeFile, "/dev/null").IgnoreIfMissing()}
	kernel := landlock.V9.BestEffort()
	if set.Lent { // scripts name what they read, programs and other machines
		err = kernel.RestrictPaths(append(rules, landlock.RODirs("/"), landlock.RWDirs(os.TempDir()))...)
	} else {
		err = kernel.Restrict(append(rules, landlock.PathAccess(readFile, set.Read...),
			landlock.PathAccess(readFile, engineReads...).IgnoreIfMissing(), landlock.PathAccess(readFile, ownReads...))...)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "hold a child to its files", Err: err,
			Hint: "see what the system's log says of Landlock"}
	}
	if !set.Lent {
		if err := noSockets(); err != nil {
			notes = append(notes, "the system filters no system calls: children can make sockets that Landlock does not know")
		}
	}
	switch abi, err := landlocksys.LandlockGetABIVersion(); {
	case err != nil || abi < landlockFiles:
		notes = append(notes, "the system has no Landlock: children can read what this process can, and reach the network")
	case abi < landlockTCP:
		notes = append(notes, fmt.Sprintf("Landlock of this system has version %d: children can reach the network", abi))
	case abi < landlockScopes:
		notes = append(notes, fmt.Sprintf("Landlock of this system has version %d: children can send signals", abi))
	}
	return notes, nil
}

// limitProcess bounds what this process takes, whatever it does.
func limitProcess(set settings) error {
	for _, l := range []struct {
		what  int
		bytes uint64
	}{
		{unix.RLIMIT_DATA, uint64(dataBytes() + set.MemoryBytes)},
		{unix.RLIMIT_FSIZE, uint64(set.SpillBytes)},
		{unix.RLIMIT_NOFILE, filesMax},
		{unix.RLIMIT_CPU, uint64(cpuMax.Seconds())},
		{unix.RLIMIT_CORE, 0},
	} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			return fmt.Errorf("read a limit of this process: %w", err)
		}
		most := min(l.bytes, now.Max)
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return fmt.Errorf("set a limit of this process: %w", err)
		}
	}
	return nil
}

// dataBytes is what this process has of what RLIMIT_DATA counts: memory of its own, also what nobody has touched yet,
// as the stacks of its threads.
func dataBytes() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nVmData:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
