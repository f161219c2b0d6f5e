package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// Bounds of a sweep.
const (
	// sweepTimeout is for removing what the dead attempts of one run left.
	sweepTimeout = 10 * time.Second
	// sweepRuns is the number of latest runs that are looked at.
	sweepRuns = 20
)

// SweepDead removes what runs that nobody works on left behind them, except
// keep: files under temporary names, unfinished uploads, copies of remote inputs
// (a run that goes on later copies them again).
func (t *Runtime) SweepDead(ctx context.Context, keep state.RunKey) error {
	keys, err := t.unfinished(ctx, keep.Workspace)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(t.Instance.Dir, "remote"))
	if err != nil {
		return instance.Fault(t.Instance.Dir, "look for copies of remote files", err)
	}
	for _, e := range entries {
		if key, ok := instance.RemoteKey(e.Name()); ok {
			keys[key] = true
		}
	}
	delete(keys, keep)
	for key := range keys {
		if err := t.sweepRun(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// unfinished are the latest runs of a workspace that have not completed, and in
// which a node was at work when it ended.
func (t *Runtime) unfinished(ctx context.Context, workspace string) (map[state.RunKey]bool, error) {
	runs, _, err := t.Store.Runs(ctx, workspace, state.Page{Limit: sweepRuns})
	if err != nil {
		return nil, fmt.Errorf("look for runs of workspace %s: %w", workspace, err)
	}
	keys := map[state.RunKey]bool{}
	for _, r := range runs {
		for _, n := range r.Nodes {
			if r.Status != state.Complete && mayLeave(n.Status) {
				keys[r.RunKey] = true
			}
		}
	}
	return keys, nil
}

// mayLeave reports whether attempts at a node may have left something.
func mayLeave(s state.Status) bool { return s != state.Succeeded }

// sweepRun removes what a run left that nobody works on.
func (t *Runtime) sweepRun(ctx context.Context, key state.RunKey) error {
	lock, ok, err := t.Instance.Liveness.Empty(key, false)
	if err != nil || !ok {
		return err // somebody works on it
	}
	defer func() { _ = lock.Close() }() // gives the lock back
	t.SweepLeavings(ctx, key, true)
	if err := os.RemoveAll(t.Instance.RemoteDir(key)); err != nil {
		return instance.Fault(t.Instance.Dir, "remove copies of remote files", err)
	}
	return nil
}

// SweepLeavings removes what attempts of a run left that are over. What cannot
// be removed now stays in the run's state, for the next one who looks.
func (t *Runtime) SweepLeavings(ctx context.Context, key state.RunKey, dead bool) {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	nodes, err := t.Store.Nodes(ctx, key)
	left := pipeline.Leavings{Store: t.Store, Remote: t.Process.Remote, Dead: dead}
	var errs []error
	for _, n := range nodes {
		if !mayLeave(n.Status) && dead {
			continue
		}
		errs = append(errs, left.Clear(ctx, n.NodeKey))
	}
	if errors.Is(err, state.ErrNotFound) { // a directory of a run that is not in the state
		err = nil
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Process.Logger.Warn("what a dead attempt left stays: a temporary file, or an upload at its server", "run",
			key.Run, "error", err)
	}
	if err := SweepNotes(ctx, t.Instance, t.Process.Remote, key); err != nil {
		t.Process.Logger.Warn("an upload that a dead run left stays at its server", "run", key.Run, "error", err)
	}
}

// uploadNote holds the note that earlier versions kept of an upload, in a file beside the copies of
// remote inputs.
type uploadNote struct {
	Bucket, Key string
	Begun       time.Time
	Upload      string
}

// SweepNotes ends the uploads that a run of an earlier version noted. Nobody
// else may be at work on the run.
func SweepNotes(ctx context.Context, home *instance.Instance, client *remote.Client, key state.RunKey) error {
	dir := filepath.Join(home.RemoteDir(key), "out")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var note uploadNote
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &note)
		}
		if err == nil && note.Key != "" {
			err = client.Abandon(ctx, "s3://"+note.Bucket+"/"+note.Key, remote.Leftover{Upload: note.Upload,
				Begun: note.Begun})
		}
		if err == nil {
			err = os.Remove(path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
