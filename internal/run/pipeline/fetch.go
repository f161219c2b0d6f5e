package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/base/action"
	"thalweg/internal/base/fault"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// fetchesMax bounds the parts that one reader has compared with their
// checksums at once.
const fetchesMax = 8

// fetch makes the parts that the batch reads local.
func (x *attempt) fetch(ctx context.Context) error {
	var wanted []wantedPart
	at := map[string]int{} // in wanted
	for _, read := range x.p.planner.Reads(x.node, x.in, x.batch.Work, x.own) {
		for _, s := range read.Slices {
			part := read.Table.Parts[s.Part]
			i, ok := at[part.Key]
			if !ok {
				i = len(wanted)
				at[part.Key] = i
				wanted = append(wanted, x.wanted(read.Table.Holder(s.Part), part))
			}
			wanted[i].slices = append(wanted[i].slices, s)
		}
	}
	paths, release, err := fetchParts(ctx, x.p.cfg.Parts, wanted)
	if err != nil {
		x.p.noteDamage(ctx, err)
		return err
	}
	x.batch.Paths, x.release = paths, append(x.release, release)
	return nil
}

func (x *attempt) wanted(t *plan.Table, part state.Part) wantedPart {
	w := wantedPart{table: t, part: part, reader: x.claim.NodeKey}
	w.taken = t.Node != nil && slices.Contains(x.state.Inputs, t.Node.Name)
	return w
}

// FetchTables makes the parts of tables local, each compared with its checksum,
// until release is called.
func FetchTables(ctx context.Context, store parts.Store, tables []*plan.Table) (paths plan.Paths, release func(),
	err error) {
	var wanted []wantedPart
	for _, t := range tables {
		for _, p := range t.Parts {
			wanted = append(wanted, wantedPart{table: t, part: p})
		}
	}
	return fetchParts(ctx, store, wanted)
}

// FetchSlices makes what a table's slices read local, likewise: of parts that are elsewhere no more than that.
func FetchSlices(ctx context.Context, store parts.Store, t *plan.Table, list []plan.PartSlice) (plan.Paths, func(),
	error) {
	wanted := make([]wantedPart, len(list))
	for i, s := range list {
		wanted[i] = wantedPart{table: t.Holder(s.Part), part: t.Parts[s.Part], slices: list[i : i+1]}
	}
	return fetchParts(ctx, store, wanted)
}

// wantedPart is a part, the table that it is of, and who reads it.
type wantedPart struct {
	table  *plan.Table
	part   state.Part
	slices []plan.PartSlice // of it that are read; none: all
	reader state.NodeKey    // none for queries
	taken  bool             // the reader's run has the table's node, which took its rows over

	pieces []parts.Piece // of its bytes that are fetched; none: all
	bytes  int64         // that are fetched
}

// fetchParts makes all parts local that one reader needs, several at once: the
// first use of each reads it.
func fetchParts(ctx context.Context, store parts.Store, wanted []wantedPart) (plan.Paths, func(), error) {
	var mu sync.Mutex
	paths := plan.Paths{}
	var bytes int64
	for i := range wanted {
		wanted[i].pick(store)
		bytes += wanted[i].bytes
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
			path, done, err := w.fetch(ctx, store)
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

// fault says which rows cannot be read, why, and the way out.
func (w wantedPart) fault(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, parts.ErrCorrupt) || errors.Is(err, parts.ErrNotFound) {
		err = &damagedPart{w.table, err}
	}
	what := fmt.Sprintf("the table of node %s in run %d", w.table.Writer, w.table.Run.Run)
	f := &fault.Error{Kind: fault.Environment, Retryable: fault.Passes(err), Err: err,
		Message: fmt.Sprintf("part %s of %s cannot be read", w.part.Key, what),
		Hint: fmt.Sprintf("the disk or another program has changed what is stored of the state. "+
			"%s writes the part again, and what was made from it. "+
			"A new run makes the rows again as well: of everything with {{set fresh}}, or with %s from there on. "+
			"{{set resume}} meets the same part, unless it is brought back from a copy",
			w.table.Run.Do("retry", "batch", fmt.Sprintf("%s:%d", w.table.Writer, w.part.Batch)),
			action.Setting("start", w.startNodes()))}
	if errors.Is(err, parts.ErrCorrupt) {
		f.Message = fmt.Sprintf("part %s of %s is damaged", w.part.Key, what)
	}
	return f
}

// startNodes are the nodes with which a run begins that makes the part's table
// again and comes to its reader: one that reads another run's table may be one
// that no run comes to by itself.
func (w wantedPart) startNodes() string {
	writer := w.table.Writer
	if w.table.Node != nil { // of another script, it may have another name there
		writer = w.table.Node.Name
	}
	if w.reader.Node == "" || w.reader.RunKey == w.table.Run || w.taken {
		return writer
	}
	return writer + "," + w.reader.Node
}
