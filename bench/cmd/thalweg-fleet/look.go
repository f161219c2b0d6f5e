package main

import (
	"context"
	"slices"
	"time"

	"thalweg/bench/internal/cluster"
	"thalweg/internal/app/instance"
	"thalweg/internal/store/state"
)

// figures are the steps of a measurement, in seconds, and what was counted.
type figures struct {
	Steps  map[string]float64 `json:"steps"`
	Counts map[string]float64 `json:"counts"`
}

// look adds what the run's events tell: its batches, and how long it took from a
// node's last commit to the first claim of nodes that read it, at all and while workers
// had one of their places free.
func (f *figures) look(ctx context.Context, config string, places int) error {
	return cluster.Within(ctx, config, func(home *instance.Instance) error { return f.lookIn(ctx, home, places) })
}

func (f *figures) lookIn(ctx context.Context, home *instance.Instance, places int) error {
	nodes, err := home.State.Nodes(ctx, state.RunKey{Workspace: workspace, Run: 1})
	if err != nil {
		return err
	}
	if err := f.least(ctx, home.State, nodes); err != nil {
		return err
	}
	ends, begins := map[string]time.Time{}, map[string]time.Time{}
	var held []change
	for _, n := range nodes {
		f.Counts["batches"] += float64(n.BatchesTotal)
		for after := int64(0); ; {
			events, err := home.State.Events(ctx, n.NodeKey, after, 0)
			if err != nil {
				return err
			}
			if len(events) == 0 {
				break
			}
			for _, e := range events {
				after = e.Seq
				switch e.Kind {
				case state.BatchEnded:
					held = append(held, change{e.Time, -1})
					if e.Status == state.Succeeded {
						ends[n.Name] = e.Time
					}
				case state.BatchClaimed:
					held = append(held, change{e.Time, 1})
					if begins[n.Name].IsZero() {
						begins[n.Name] = e.Time
					}
				}
			}
		}
	}
	slices.SortStableFunc(held, func(a, b change) int { return a.at.Compare(b.at) })
	var waits, free []float64
	for _, n := range nodes {
		var last time.Time
		for _, name := range n.Inputs {
			if ends[name].After(last) {
				last = ends[name]
			}
		}
		if begin := begins[n.Name]; !last.IsZero() && !begin.IsZero() {
			waits = append(waits, begin.Sub(last).Seconds())
			free = append(free, placeFree(held, places, last, begin).Seconds())
		}
	}
	f.quantiles("dependents", free)
	f.quantiles("dependents and slots", waits)
	f.Counts["conditional writes a batch"] = f.Counts["conditional writes"] / max(1, f.Counts["batches"])
	f.Counts["rows a statement"] = f.Counts["rows"] / max(1, f.Counts["statements"])
	return nil
}

// quantiles adds the middle and the worst but one in a hundred.
func (f *figures) quantiles(name string, of []float64) {
	if slices.Sort(of); len(of) > 0 {
		f.Steps[name+", median"], f.Steps[name+", p99"] = of[len(of)/2], of[(len(of)*99-1)/100]
	}
}

// change is that of the number of batches that workers hold.
type change struct {
	at time.Time
	by int
}

// placeFree returns the time, between two moments, in which workers held fewer batches than they have places
// for. At other times ready batches wait for a place, and not to be found.
func placeFree(held []change, places int, from, to time.Time) (free time.Duration) {
	now, since := 0, from
	for _, c := range append(slices.Clone(held), change{at: to}) {
		if at := c.at; at.After(since) {
			if at.After(to) {
				at = to
			}
			if now < places {
				free += at.Sub(since)
			}
			since = at
		}
		now += c.by
	}
	return free
}

// least adds what had to travel: each part once to where it is kept, and once to
// each node that reads its table. Copies that workers keep can make it less.
func (f *figures) least(ctx context.Context, store state.Store, nodes []state.Node) error {
	sizes := map[string]float64{}
	written, read := 0.0, 0.0
	for _, n := range nodes {
		parts, err := state.All(ctx, store.Parts, n.NodeKey)
		if err != nil {
			return err
		}
		for _, p := range parts {
			sizes[n.Name] += float64(p.Bytes)
		}
		written += sizes[n.Name]
	}
	for _, n := range nodes {
		for _, name := range n.Inputs {
			read += sizes[name]
		}
	}
	f.Counts["written over least"] = f.Counts["part bytes put"] / max(1, written)
	f.Counts["read over least"] = f.Counts["part bytes open"] / max(1, read)
	return nil
}
