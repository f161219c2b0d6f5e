package local

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"thalweg/internal/address"
	"thalweg/internal/document"
	"thalweg/internal/fault"
	"thalweg/internal/pipeline"
	"thalweg/internal/remote"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// remoteDir is what a run keeps of remote files: copies of its inputs, notes
// of uploads. It is there as long as the run may go on.
func (h *Home) remoteDir(key state.RunKey) string {
	return filepath.Join(h.Dir, "remote", fmt.Sprintf("%s-%d", key.Workspace, key.Run))
}

// sweepTimeout bounds ending the uploads that dead runs left at servers.
const sweepTimeout = 10 * time.Second

// sweepRemote removes what runs that nobody works on keep of remote files,
// except that of keep: a run that goes on later copies its inputs again.
func (h *Home) sweepRemote(ctx context.Context, client *remote.Client, keep state.RunKey, log *slog.Logger) error {
	entries, err := os.ReadDir(filepath.Join(h.Dir, "remote"))
	if err != nil {
		return homeFault(h.Dir, "look for copies of remote files", err)
	}
	for _, e := range entries {
		key, ok := remoteKey(e.Name())
		if !ok || key == keep {
			continue
		}
		if err := h.sweepRun(ctx, client, key, log); err != nil {
			return err
		}
	}
	return nil
}

// remoteKey reads the name of a directory that remoteDir made.
func remoteKey(name string) (key state.RunKey, ok bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return key, false
	}
	n, err := strconv.ParseInt(name[i+1:], 10, 64)
	return state.RunKey{Workspace: name[:i], Run: n}, err == nil && CheckWorkspace(name[:i]) == nil
}

func (h *Home) sweepRun(ctx context.Context, client *remote.Client, key state.RunKey, log *slog.Logger) error {
	lock, ok, err := h.tryLock(key, unix.LOCK_EX)
	if err != nil || !ok {
		return err // somebody works on it
	}
	defer func() { _ = lock.Close() }() // gives the lock back
	dir := h.remoteDir(key)
	notes, err := filepath.Glob(filepath.Join(globEscape(dir), pipeline.UploadsDir, "*.json"))
	if err != nil {
		return homeFault(h.Dir, "look for uploads of dead runs", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	for _, note := range notes {
		if err := client.Abandon(ctx, note); err != nil {
			log.Warn("an upload that a dead run left stays at its server", "run", key.Run, "error", err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return homeFault(h.Dir, "remove copies of remote files", err)
	}
	return nil
}

// globEscape makes a path match only itself.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// checkAddress refuses, before a run exists, what cannot be read or written.
func checkAddress(ctx context.Context, client *remote.Client, s *script.Script, url string, pos document.Pos) error {
	var err error
	if address.Remote(url) {
		err = client.Check(ctx, url, s)
	} else {
		_, err = address.Local(url)
	}
	if err == nil {
		return nil
	}
	f := *fault.Of(err)
	if f.Place.File != "" { // of what serves the address; faults of the address itself have it in their message
		f.Message = f.Place.File + ": " + f.Message
	}
	f.Place = fault.Place{File: pos.File, Line: int64(pos.Line), Column: pos.Col}
	return &f
}
