package local

import (
	"errors"

	"golang.org/x/sys/unix"
)

// renameExclusive renames and refuses to replace. Old kernels and some file
// systems cannot do it in one step.
func renameExclusive(fromDir int, from string, toDir int, to string) error {
	err := unix.Renameat2(fromDir, from, toDir, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return renameByLink(fromDir, from, toDir, to)
	}
	return err
}
