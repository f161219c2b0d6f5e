//go:build unix && !linux

package local

// renameExclusive renames and refuses to replace.
func renameExclusive(fromDir int, from string, toDir int, to string) error {
	return renameByLink(fromDir, from, toDir, to)
}
