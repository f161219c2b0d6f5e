package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/fault"
	"thalweg/internal/parts"
	"thalweg/internal/plan"
	"thalweg/internal/state"
)

// fetchesMax bounds the parts that one reader has compared with their
// checksums at once.
const fetchesMax = 8

// fetch makes the parts that the batch reads local.
func (x *attempt) fetch(ctx context.Context) error {
	var wanted []wantedPart
	seen := map[string]bool{}
	for _, read := range x.p.planner.Reads(x.node, x.in, x.batch.Work, x.own) {
		for _, s := range read.Slices {
			part := read.Table.Parts[s.Part]
			if seen[part.Key] {
				continue
			}
			seen[part.Key] = true
			wanted = append(wanted, wantedPart{table: read.Table.Holder(s.Part), part: part, reader: x.claim.NodeKey})
		}
	}
	paths, release, err := fetchParts(ctx, x.p.cfg.Parts, wanted)
	if err != nil {
		return err
	}
	x.batch.Paths, x.release = paths, append(x.release, release)
	return nil
}

// FetchTables makes the parts of tables local, each compared with its checksum,
// until release is called.
func FetchTables(ctx context.Context, store parts.Store, tables []*plan.Table) (paths plan.Paths, release func(), err error) {
	var wanted []wantedPart
	for _, t := range tables {
		for _, p := range t.Parts {
			wanted = append(wanted, wantedPart{table: t, part: p})
		}
	}
	return fetchParts(ctx, store, wanted)
}

// wantedPart is a part, the table that it is of, and who reads it.
type wantedPart struct {
	table  *plan.Table
	part   state.Part
	reader state.NodeKey // none for queries
}

// fetchParts makes all parts local that one reader needs, several at once: the
// first use of each reads it.
func fetchParts(ctx context.Context, store parts.Store, wanted []wantedPart) (plan.Paths, func(), error) {
	var mu sync.Mutex
	paths := plan.Paths{}
	var bytes int64
	for _, w := range wanted {
		bytes += w.part.Bytes
	}
	reserved, err := store.Reserve(ctx, bytes)
	if err != nil {
		return nil, nil, err
	}
	releases := []func(){reserved} // given back last
	release := func() {
		for _, r := range slices.Backward(releases) {
			r()
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchesMax)
	for _, w := range wanted {
		group.Go(func() error {
			path, done, err := store.Fetch(ctx, w.part.Key, w.part.Checksum)
			if err != nil {
				return w.fault(err)
			}
			mu.Lock()
			defer mu.Unlock()
			paths[w.part.Key] = path
			releases = append(releases, done)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		release()
		return nil, nil, err
	}
	return paths, release, nil
}

// fault says which rows cannot be read, why, and the way out. A run that has
// met damage stays as it is: what its batches read is planned by the parts that
// there were, so none of them is written again behind the readers' backs.
func (w wantedPart) fault(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	what := fmt.Sprintf("the table of node %s in run %d", w.table.Writer, w.table.Run.Run)
	f := &fault.Error{Kind: fault.Environment, Err: err, Message: fmt.Sprintf("part %s of %s cannot be read", w.part.Key, what),
		Hint: fmt.Sprintf("the disk or another program has changed the state directory. "+
			"A new run makes the rows again: of everything, or with --start %s from there on. "+
			"--resume meets the same part, unless it is brought back from a copy", w.startNodes())}
	if errors.Is(err, parts.ErrCorrupt) {
		f.Message = fmt.Sprintf("part %s of %s is damaged", w.part.Key, what)
	}
	return f
}

// startNodes are the nodes with which a run begins that makes the part's table
// again and comes to its reader: one that reads another run's table may be one
// that no run comes to by itself.
func (w wantedPart) startNodes() string {
	if w.reader.Node == "" || w.reader.RunKey == w.table.Run {
		return w.table.Writer
	}
	return w.table.Writer + "," + w.reader.Node
}
