//go:build unix && !linux

package peek

// dataBytes is not known here.
func dataBytes() int64 { return 0 }

// restrict can do nothing here.
func restrict(settings, string) ([]string, error) {
	return []string{"this system cannot hold children to their files and their memory"}, nil
}
