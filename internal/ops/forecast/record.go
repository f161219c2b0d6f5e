package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/sheet"
	"thalweg/internal/store/state"
)

// Record is what a complete run took.
type Record struct {
	Run     state.RunKey
	Elapsed time.Duration
	Nodes   []Node // in the order in which they read each other

	// What its time sheets say; 0: there are none. Elapsed is then without times in which no worker was there.
	Workers int                // that were there, in the mean
	Slots   int                // of each
	Cores   int                // of each
	Memory  int64              // that each may use: of the one with the least
	Peak    int64              // most memory that a worker was seen to have, by its slots
	Machine string             // type; "": not known, or of several
	Shares  map[string]float64 // parts of the slots' time by what it went to, by name
	Claim   time.Duration      // mean of calls that claimed a batch; 0: there are too few
}

// Node is what a node of a run took.
type Node struct {
	Name    string
	Kind    script.NodeType
	Inputs  []string
	Batches int
	Files   int64         // bytes of the files that it read, if it reads no table
	Out     plan.Size     // its table
	Stored  int64         // bytes of its table's parts
	Worked  time.Duration // of slots, by batches that succeeded; without waits, and without Moved
	Moved   time.Duration // fetching and storing parts
	Spread  []float64     // the times of its batches over their mean, the shortest first; nil: one batch
	Code    string        // fingerprint of its code and parameters
	Taken   bool          // its rows were taken over: what they took is of the run that computed them
	Other   bool          // other code than that of the next run computed it
}

// measured reports whether the run says what the next one takes at the node.
func (n Node) measured() bool { return !n.Taken && !n.Other }

// classes are those of nodes, in the order in which scripts have them.
var classes = []string{"load", "join", "python", "write"}

// classOf returns the class of a type of node.
func classOf(kind script.NodeType) string {
	switch kind {
	case script.FileTable:
		return "load"
	case script.ProcPyCalc, script.PyTableNode:
		return "python"
	case script.TableFile:
		return "write"
	}
	return "join"
}

// ClassTime is the time of a run that nodes of a class took.
type ClassTime struct {
	Class   string
	Seconds float64
}

// spreadMax limits the points of a spread.
const spreadMax = 32

// Read returns the record of a complete run.
func Read(ctx context.Context, store state.Store, run state.Run) (Record, error) {
	rec := Record{Run: run.RunKey, Elapsed: run.Finished.Sub(run.Created)}
	nodes, err := store.Nodes(ctx, run.RunKey)
	if err != nil {
		return rec, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	for _, n := range nodes {
		one, err := readNode(ctx, store, n)
		if err != nil {
			return rec, fmt.Errorf("read what node %s of run %d took: %w", n.Name, run.Run, err)
		}
		rec.Nodes = append(rec.Nodes, one)
	}
	sheets, err := sheet.Of(ctx, store, run.RunKey)
	if err != nil {
		return rec, err
	}
	rec.attend(sheets)
	return rec, nil
}

// readNode reads what a node took, where its rows were computed.
func readNode(ctx context.Context, store state.Store, n state.Node) (one Node, err error) {
	one = Node{Name: n.Name, Kind: script.NodeType(n.Kind), Inputs: n.Inputs, Code: n.Fingerprint}
	if n.ReusedFrom != nil {
		one.Taken = true
		origin, err := store.Node(ctx, *n.ReusedFrom)
		switch {
		case errors.Is(err, state.ErrNotFound): // nothing of it is left
			one.Batches = 1
			return one, nil
		case err != nil:
			return one, err
		}
		n = origin
	}
	one.Batches = max(n.BatchesTotal, 1)
	tally, err := store.Tally(ctx, n.NodeKey)
	if err != nil {
		return one, err
	}
	s := tally.Stats
	one.Moved = s.Read + s.Write
	one.Worked = max(s.Elapsed-s.Turn-s.Wait-one.Moved, 0)
	if len(n.Inputs) == 0 {
		one.Files = s.BytesIn
	}
	one.Spread = spread(tally)
	one.Out, one.Stored, err = table(ctx, store, n.NodeKey)
	return one, err
}

// table returns the size of a node's table.
func table(ctx context.Context, store state.Store, key state.NodeKey) (size plan.Size, stored int64, err error) {
	for page := (state.Page{}); ; {
		parts, next, err := store.Parts(ctx, key, page)
		if err != nil {
			return size, stored, fmt.Errorf("read its parts: %w", err)
		}
		for _, p := range parts {
			if p.Side == "" {
				size.Rows, size.Bytes, size.Parts = size.Rows+p.Rows, size.Bytes+p.RawBytes, size.Parts+1
				stored += p.Bytes
			}
		}
		if page.From = next; next == 0 {
			return size, stored, nil
		}
	}
}

// spread returns the quantiles of the times that batches took, as multiples of their mean.
func spread(t state.Tally) []float64 {
	total := 0
	for _, n := range t.Took {
		total += n
	}
	if total < 2 {
		return nil
	}
	out, seen, next := make([]float64, 0, spreadMax), 0, 0
	points := min(total, spreadMax)
	for _, span := range t.Spans() {
		from, to := state.SpanBounds(span)
		for seen += t.Took[span]; next < points && (2*next+1)*total < 2*points*seen; next++ {
			out = append(out, float64(from+(to-from)/2))
		}
	}
	return scaledToMean(out)
}

func scaledToMean(values []float64) []float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if sum <= 0 || math.IsInf(sum, 0) {
		return nil
	}
	for i := range values {
		values[i] *= float64(len(values)) / sum
	}
	return values
}

// Has reports whether the run had all nodes of a set that have work.
func (r Record) Has(work map[string]bool) bool {
	for name, has := range work {
		if has && r.node(name).Name == "" {
			return false
		}
	}
	return true
}

// Computed reports whether the run has computed any node itself.
func (r Record) Computed() bool {
	return slices.ContainsFunc(r.Nodes, func(n Node) bool { return !n.Taken })
}

// reads returns the sizes of the tables that a node reads, with what it looks up apart, and the bytes of their parts.
func (r Record) reads(n Node) (read, lookup plan.Size, stored int64) {
	if len(n.Inputs) == 0 {
		return plan.Size{Bytes: n.Files}, lookup, 0
	}
	for i, name := range n.Inputs {
		in := r.node(name)
		stored += in.Stored
		if n.Kind == script.LookupTable && i > 0 {
			lookup = in.Out
			continue
		}
		read.Rows, read.Bytes = read.Rows+in.Out.Rows, read.Bytes+in.Out.Bytes
		read.Parts += in.Out.Parts
	}
	return read, lookup, stored
}

func (r Record) node(name string) Node {
	for _, n := range r.Nodes {
		if n.Name == name {
			return n
		}
	}
	return Node{}
}
