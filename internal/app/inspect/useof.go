package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/address"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// useOfRunsMax is the most runs that are searched for a file, the latest first.
const useOfRunsMax = 100

// topicQueried is of files that queries have written: they may be written again.
const topicQueried = "queried"

func queriedName(path string) string {
	sum := sha256.Sum256([]byte(address.Resolve(path)))
	return hex.EncodeToString(sum[:])
}

// stampOf returns a text that tells a file from what somebody else writes at its place.
func stampOf(file fs.FileInfo) string {
	return fmt.Sprint(file.Size(), " ", file.ModTime().UnixNano())
}

// NoteQueried notes that a query has written a file: UseOf passes it over then.
func NoteQueried(ctx context.Context, home *instance.Instance, workspace, path string) error {
	file, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at what was written: %w", err)
	}
	return home.State.PutNote(ctx, workspace, state.Note{Topic: topicQueried, Name: queriedName(path),
		Data: []byte(stampOf(file)), Time: time.Now()})
}

// UseOf says what one of the latest runs of a workspace has to do with a file of this machine;
// "": none has, or the file is not there.
func UseOf(ctx context.Context, home *instance.Instance, workspace, path string) (string, error) {
	file, err := os.Stat(path)
	if err != nil {
		return "", nil //nolint:nilerr // it cannot be replaced either, which writing it says
	}
	notes, err := state.AllNotes(ctx, home.State, workspace, topicQueried)
	if err != nil {
		return "", err
	}
	for _, n := range notes {
		if n.Name == queriedName(path) && string(n.Data) == stampOf(file) {
			return "", nil
		}
	}
	is := func(dir, name string) bool {
		if name == "" || address.Remote(name) {
			return false
		}
		other, err := os.Stat(address.SeenFrom(dir, name))
		return err == nil && os.SameFile(file, other)
	}
	runs, _, err := home.State.Runs(ctx, workspace, state.Page{Limit: useOfRunsMax})
	if err != nil {
		return "", fmt.Errorf("list the runs of workspace %s: %w", workspace, err)
	}
	for _, r := range runs {
		what, err := useBy(ctx, home, r.RunKey, is)
		if err != nil {
			return "", err
		}
		if what != "" {
			return fmt.Sprintf("%s run %d", what, r.Run), nil
		}
	}
	return "", nil
}

func useBy(ctx context.Context, h *instance.Instance, key state.RunKey, is func(dir, name string) bool) (string,
	error) {
	run, err := h.State.Run(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read run %d: %w", key.Run, err)
	}
	dir := ""
	if set, err := runtime.SettingsOf(ctx, h.State, run); err != nil {
		return "", err
	} else if set != nil {
		dir = set.Dir
	}
	for _, pin := range run.Pins {
		if is(dir, pin.Name) {
			return "part of the script of", nil
		}
	}
	nodes, err := h.State.Nodes(ctx, key)
	if err != nil {
		return "", fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	for _, n := range nodes {
		read, err := pipeline.LocalInputs(ctx, h.State, dir, n.NodeKey)
		if err != nil {
			return "", err
		}
		for _, in := range read {
			if is(dir, in.Path) {
				return "an input of", nil
			}
		}
		if n.Table != "" {
			continue
		}
		files, err := state.All(ctx, h.State.Files, HolderOf(n))
		if err != nil {
			return "", fmt.Errorf("read the files of node %s of run %d: %w", n.Name, key.Run, err)
		}
		for _, f := range files {
			if is("", f.URL) {
				return "an output of", nil
			}
		}
	}
	return "", nil
}
