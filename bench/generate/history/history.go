// Package history fills a workspace with many runs, to try on it what people look at.
package history

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// Workspace is where the runs are.
const Workspace = "main"

// underWay is the number of runs, the latest, that are not over.
const underWay = 5

// Began returns when a run began, by its number from 0: one a minute.
func Began(run int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(run) * time.Minute)
}

// Runs makes so many runs of five nodes, of ten scripts in turn.
func Runs(ctx context.Context, store state.Store, count int) error {
	nodes := make([]state.NodeSpec, 5)
	for i := range nodes {
		nodes[i] = state.NodeSpec{Name: fmt.Sprint("node", i), Kind: "table_table", Table: fmt.Sprint("t", i), Ordinal: i}
	}
	for i := range count {
		key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: Workspace}, Actor: "ann",
			ScriptPath: fmt.Sprintf("/jobs/script%d.yaml", i%10), Description: fmt.Sprint("run number ", i),
			Created: Began(i)}, nodes)
		if err == nil && i < count-underWay {
			err = store.CompleteRun(ctx, key, 0, "ann", Began(0))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
