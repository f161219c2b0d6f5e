package instance

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"thalweg/internal/store/state"
)

// RemoteDir returns the directory of a run's copies of its remote inputs. It is there as long as
// the run may go on.
func (h *Instance) RemoteDir(key state.RunKey) string {
	return filepath.Join(h.Dir, "remote", fmt.Sprintf("%s-%d", key.Workspace, key.Run))
}

// RemoteKey reads the name of a directory that remoteDir made.
func RemoteKey(name string) (key state.RunKey, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return key, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 64)
	return state.RunKey{Workspace: name[:i], Run: n}, err == nil && CheckWorkspace(name[:i]) == nil
}
