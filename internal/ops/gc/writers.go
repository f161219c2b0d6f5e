package gc

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// writers are the last that wrote each output, by a digest of its address.
type writers map[[sha256.Size / 2]byte]written

// written is the run that wrote an output, and the time.
type written struct {
	run int64
	at  int64 // Unix nanoseconds
}

func outputKey(url string) (key [sha256.Size / 2]byte) {
	sum := sha256.Sum256([]byte(url))
	copy(key[:], sum[:])
	return key
}

// writers finds who has written each output last, of the runs that are not dropped.
func (c *collector) writers(ctx context.Context) (writers, error) {
	w := writers{}
	return w, c.eachRun(ctx, func(run state.Run) error {
		if c.dropped[run.Run] {
			return nil
		}
		return c.eachFile(ctx, run, func(n state.Node, f state.File) bool {
			key, at := outputKey(f.URL), writtenAt(run, n).UnixNano()
			if last, ok := w[key]; !ok || at > last.at || at == last.at && run.Run > last.run {
				w[key] = written{run.Run, at}
			}
			return true
		})
	})
}

// writtenAt returns the latest time at which a node's files can have been shown.
func writtenAt(run state.Run, n state.Node) time.Time {
	for _, at := range []time.Time{n.Finished, run.Finished} {
		if !at.IsZero() {
			return at
		}
	}
	return run.Created
}

// current names an output that a run was the last to write and that is there; "": none.
func (c *collector) current(ctx context.Context, run state.Run, w writers) (url string, err error) {
	err = c.eachFile(ctx, run, func(_ state.Node, f state.File) bool {
		if w[outputKey(f.URL)].run == run.Run && c.There(ctx, f.URL) {
			url = f.URL
		}
		return url == ""
	})
	return url, err
}

// eachFile calls do for each output that a run itself has written, until it answers false.
func (c *collector) eachFile(ctx context.Context, run state.Run, do func(state.Node, state.File) bool) error {
	nodes, err := c.Store.Nodes(ctx, run.RunKey)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		if n.Table != "" || n.PlanDigest == "" || n.ReusedFrom != nil {
			continue
		}
		for page := (state.Page{}); ; {
			files, next, err := c.Store.Files(ctx, n.NodeKey, page)
			if err != nil {
				return fmt.Errorf("read the files of node %s of run %d: %w", n.Name, n.Run, err)
			}
			for _, f := range files {
				if !do(n, f) {
					return nil
				}
			}
			if page.From = next; next == 0 {
				break
			}
		}
	}
	return nil
}
