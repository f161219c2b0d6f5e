package causes

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/lang/script"
	"thalweg/internal/ops/history"
	"thalweg/internal/ops/samples"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Facts holds what was measured of a run.
type Facts struct {
	Run     state.Run
	To      time.Time // its end, or up to when its workers have noted what they did; now if they have not
	Holds   []Times   // in which the run stood still, or waited for a decision
	Nodes   []Node    // that have batches of this run
	Workers []sheet.Sheet
	Samples []samples.Worker // what workers used of their processors
}

// Times is a time from one moment to another.
type Times struct{ From, To time.Time }

// Node has what was measured of a node.
type Node struct {
	Name    string
	Class   string // load, join, python, write, table
	Planned int    // batches
	Tally   state.Tally
	Batches []Batch // that have begun, by number
	More    bool    // there are more than are read
}

// Batch says when a batch had a slot.
type Batch struct {
	Number int
	Owner  string
	Times
	Rows  int64 // that it made
	Bytes int64 // that it read and wrote
}

// batchesMost limits the batches of a run that are read.
const batchesMost = 500_000

// Gather reads the facts of a run.
func Gather(ctx context.Context, store state.Store, key state.RunKey, now time.Time) (Facts, error) {
	h, err := history.Gather(ctx, store, key, now, history.ProcessFacts{})
	if err != nil {
		return Facts{}, err
	}
	f := Facts{Run: h.Run}
	if f.Workers, err = sheet.Of(ctx, store, key); err != nil {
		return f, err
	}
	f.To = f.endOf(now)
	for _, hold := range h.Holds {
		f.Holds = append(f.Holds, Times{hold.From, hold.To})
	}
	if f.Run.Status == state.Paused && f.Run.Command != nil {
		f.Holds = append(f.Holds, Times{f.Run.Command.Time, f.To})
	}
	left := batchesMost
	for _, n := range h.Nodes {
		if g, asked := h.Gates[n.Name]; asked {
			until := f.To
			if n.Decision != nil {
				until = n.Decision.Time
			}
			f.Holds = append(f.Holds, Times{g.Since, until})
		}
		if n.BatchesTotal == 0 || n.ReusedFrom != nil {
			continue
		}
		one := Node{Name: n.Name, Class: classOf(script.NodeType(n.Kind)), Planned: n.BatchesTotal,
			Tally: h.Tallies[n.Name]}
		if one.Batches, one.More, err = batchesOf(ctx, store, n, left, f.To); err != nil {
			return f, err
		}
		left -= len(one.Batches)
		f.Nodes = append(f.Nodes, one)
	}
	f.Samples, err = samples.Of(ctx, store, key, samples.Options{From: f.Run.Created, To: f.To, Now: now})
	return f, err
}

// endOf returns up to when a run is looked at. A batch of a worker that has died is claimed until somebody takes the run
// over, perhaps for days: that is nobody's work.
func (f *Facts) endOf(now time.Time) (to time.Time) {
	if !f.Run.Finished.IsZero() {
		return f.Run.Finished
	}
	for _, w := range f.Workers {
		if w.To.After(to) {
			to = w.To
		}
	}
	if to.IsZero() || to.After(now) {
		return now
	}
	return to
}

// classes are the classes of nodes by their kinds.
var classes = map[script.NodeType]string{script.FileTable: "load", script.LookupTable: "join",
	script.CustomTable: "python", script.ProcPyCalc: "python", script.PyTableNode: "python", script.TableFile: "write"}

func classOf(t script.NodeType) string {
	if class, ok := classes[t]; ok {
		return class
	}
	return "table"
}

// batchesOf reads when the batches of a node had slots: most of them.
func batchesOf(ctx context.Context, store state.Store, n state.Node, most int, now time.Time) (out []Batch, more bool,
	err error) {
	for page := (state.Page{}); ; {
		some, next, err := store.Batches(ctx, n.NodeKey, page)
		if err != nil {
			return nil, false, fmt.Errorf("read the batches of node %s: %w", n.Name, err)
		}
		for _, b := range some {
			if at := slotOf(b, now); at.From.Before(at.To) {
				out = append(out, Batch{Number: b.BatchKey.Batch, Owner: b.Owner, Times: at, Rows: b.Stats.RowsOut,
					Bytes: b.Stats.BytesIn + b.Stats.BytesOut})
			}
		}
		if page.From = next; next == 0 || len(out) >= most {
			return out, next != 0, nil
		}
	}
}

// slotOf returns when a batch had a slot: until it was committed, for as long as it was executed.
func slotOf(b state.Batch, now time.Time) Times {
	switch {
	case b.Started.IsZero():
	case b.Status == state.Claimed:
		return Times{b.Started, now}
	case b.Status == state.Succeeded || b.Status == state.Failed:
		from := b.Finished.Add(-max(b.Stats.Elapsed-b.Stats.Turn, 0))
		if from.Before(b.Started) {
			from = b.Started
		}
		return Times{from, b.Finished}
	}
	return Times{}
}
