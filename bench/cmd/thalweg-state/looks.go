package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

// looks measures what people look at: as the commands do it, with a store that
// is opened for each, but without the start of a process.
func looks(ctx context.Context, o options, steps map[string]float64) error {
	large := state.NodeKey{RunKey: state.RunKey{Workspace: batchesWorkspace, Run: 1}, Node: batchesNode}
	now := time.Now()
	read := history.ListOptions{Limit: 20, Now: now}
	var lines int64
	for _, look := range []struct {
		name string
		do   func(s state.Store) error
	}{
		{"history", func(s state.Store) error { _, err := history.List(ctx, s, runsWorkspace, read); return err }},
		{"audit", func(s state.Store) error { _, err := history.AuditAll(ctx, s, runsWorkspace, 100); return err }},
		{"approvals", func(s state.Store) error { _, err := gate.Waiting(ctx, s, runsWorkspace, now); return err }},
		{"show", func(s state.Store) error { _, err := history.ShowRun(ctx, s, large.RunKey, read); return err }},
		{"show a node", func(s state.Store) error { _, err := history.ShowNode(ctx, s, large, now); return err }},
		{"show a batch", func(s state.Store) error {
			_, err := history.ShowBatch(ctx, s, state.BatchKey{NodeKey: large, Batch: o.Batches / 2}, now)
			return err
		}},
		{"why", func(s state.Store) error {
			f, err := history.Gather(ctx, s, large.RunKey, now, history.ProcessFacts{})
			f.Why()
			return err
		}},
		{"events, read first", func(s state.Store) (err error) {
			lines,
				err = readEvents(ctx, s, large.RunKey, 0)
			return err
		}},
		{"events, read again", func(s state.Store) error { _, err := readEvents(ctx, s, large.RunKey, 0); return err }},
		{"events behind the last",
			func(s state.Store) error { _, err := readEvents(ctx, s, large.RunKey, lines); return err }},
	} {
		took, err := timed(ctx, o, look.do)
		if err != nil {
			return fmt.Errorf("%s: %w", look.name, err)
		}
		steps[look.name] = took.Seconds()
	}
	return nil
}

// timed opens the state and looks at it.
func timed(ctx context.Context, o options, look func(state.Store) error) (took time.Duration, err error) {
	began := time.Now()
	store, err := sqlite.Open(ctx, filepath.Join(o.Dir, "state.db"))
	if err != nil {
		return 0, err
	}
	err = errors.Join(look(store), store.Close())
	return time.Since(began), err
}

// readEvents reads a run's events behind so many.
func readEvents(ctx context.Context, s state.Store, key state.RunKey, after int64) (lines int64, err error) {
	_, err = history.Tell(ctx, history.NewStream(s, key, after), func(some []history.Line) error {
		lines += int64(len(some))
		return nil
	})
	return lines, err
}
