package history_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2031, 5, 6, 12, 0, 0, 0, time.UTC)

// stateOf is a run of nodes a and b, b reading a, that began ten minutes ago.
func stateOf(status state.Status, change func(f *history.Facts, a, b *state.Node)) history.Facts {
	f := history.Facts{Now: noon, Zone: time.UTC, Tallies: map[string]state.Tally{},
		Unsettled: map[string][]state.Batch{}, Gates: map[string]gate.Record{}}
	f.Slots = 2
	f.Run = state.Run{RunKey: state.RunKey{Workspace: "main", Run: 7}, Status: status, ScriptPath: "s.yaml",
		Created: noon.Add(-10 * time.Minute)}
	if status.Terminal() {
		f.Run.Finished = noon
	}
	key := func(name string) state.NodeKey { return state.NodeKey{RunKey: f.Run.RunKey, Node: name} }
	a := state.Node{NodeKey: key("a"), NodeSpec: state.NodeSpec{Name: "a"}, Status: state.Pending}
	b := state.Node{NodeKey: key("b"), NodeSpec: state.NodeSpec{Name: "b", Inputs: []string{"a"}},
		Status: state.Pending}
	change(&f, &a, &b)
	f.Nodes, f.Worked = []state.Node{a, b}, map[string]time.Duration{"a": worked(f, a), "b": worked(f, b)}
	return f
}

// worked returns the time for which a node has been worked on.
func worked(f history.Facts, n state.Node) time.Duration {
	if n.Started.IsZero() {
		return 0
	}
	end := noon
	if !n.Finished.IsZero() {
		end = n.Finished
	}
	sum := end.Sub(n.Started)
	for _, h := range f.Holds {
		if h.To.After(n.Started) {
			sum -= h.To.Sub(h.From)
		}
	}
	return sum
}

// works puts a node to work on batches, of which some are done.
func works(n *state.Node, batches, done int, began time.Duration) {
	n.Status, n.BatchesTotal, n.BatchesDone, n.Started = state.Running, batches, done, noon.Add(-began)
	if batches == done {
		n.Status, n.Finished = state.Succeeded, noon
	}
}

// took is a tally of batches that took so long and spent it so.
func took(times []time.Duration, spent func(time.Duration) state.Stats) (t state.Tally) {
	for i, d := range times {
		s := spent(d)
		s.Elapsed = d
		t.Count(i, state.Succeeded, s)
	}
	return t
}

func seconds(n ...int) (all []time.Duration) {
	for _, s := range n {
		all = append(all, time.Duration(s)*time.Second)
	}
	return all
}

func computing(d time.Duration) state.Stats { return state.Stats{Engine: d * 9 / 10, RowsIn: 1000} }

var noWorker = history.Orphan{Why: "no worker is there", Do: "start one: {{do worker}}"}

func mark(reason string) state.Mark {
	return state.Mark{Actor: "eva@host", Time: noon.Add(-time.Minute), Reason: reason}
}

// TestWhy compares the sentences of made-up states with testdata/why.txt.
func TestWhy(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		status state.Status
		change func(f *history.Facts, a, b *state.Node)
	}{
		{"nothing has happened", state.Running, func(*history.Facts, *state.Node, *state.Node) {}},
		{"all is well", state.Running, func(f *history.Facts, a, _ *state.Node) { works(a, 100, 40, time.Second) }},
		{"workers that have noticed something", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 40, time.Second)
			for i := range 7 {
				f.Notices = append(f.Notices, fmt.Sprintf("h (process %d): 60 messages of a later version", i))
			}
		}},
		{"complete, in no time", state.Complete,
			func(f *history.Facts, a, b *state.Node) { f.Run.Created = noon.Add(-900 * time.Millisecond) }},
		{"failed in a batch", state.Failed, func(f *history.Facts, a, _ *state.Node) {
			f.Run.Failure = &state.Failure{Kind: fault.UserData, Message: "not a number", Node: "a", Batch: 3,
				Place: fault.Place{File: "in.csv", Line: 7, Column: 3}}
		}},
		{"failed in a plan, in a workspace", state.Failed, func(f *history.Facts, a, _ *state.Node) {
			f.Run.Workspace, f.Run.Failure = "other", &state.Failure{Message: "no such file", Node: "a", Batch: -1}
		}},
		{"failed, and somebody looks after it", state.Failed, func(f *history.Facts, _, _ *state.Node) {
			f.Run.Failure = &state.Failure{Message: "no such file", Node: "a", Batch: -1}
			f.Run.Command = &state.Command{Kind: state.CommandTake, Mark: mark("I ask the supplier"), Done: true}
		}},
		{"stopped", state.Stopped, func(f *history.Facts, _, _ *state.Node) {
			f.Run.Command = &state.Command{Kind: state.CommandStop, Mark: mark("too early"), Done: true}
		}},
		{"invalidated", state.Complete, func(f *history.Facts, _, _ *state.Node) {
			m := mark("wrong prices")
			m.Time = noon.AddDate(0, 0, -3)
			f.Run.Invalidated = &m
		}},
		{"nodes invalidated", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, time.Minute)
			a.Status, b.Status = state.Invalidated, state.Invalidated
			f.Voided = map[string]state.Mark{a.Name: mark("wrong prices"), b.Name: mark("wrong prices")}
		}},
		{"a node invalidated by nobody knows whom", state.Complete, func(f *history.Facts, a, b *state.Node) {
			a.Status = state.Invalidated
		}},
		{"dropped", state.Failed, func(f *history.Facts, _, _ *state.Node) {
			m := mark("")
			f.Run.Dropped = &m
		}},
		{"paused", state.Paused, func(f *history.Facts, a, _ *state.Node) {
			f.Run.Command = &state.Command{Kind: state.CommandPause, Mark: mark("the disk is nearly full"), Done: true}
			a.Status = state.Paused
			f.Unsettled["a"] = []state.Batch{{Status: state.Claimed, Lease: noon.Add(time.Minute)}}
		}},
		{"an order half carried out", state.Running, func(f *history.Facts, a, b *state.Node) {
			f.Run.Command = &state.Command{Kind: state.CommandStop, Epoch: 1, Mark: mark("")}
			a.Epoch = 1
		}},
		{"an order half carried out, and nobody is there", state.Running, func(f *history.Facts, a, b *state.Node) {
			f.Run.Command = &state.Command{Kind: state.CommandStop, Epoch: 1, Mark: mark("")}
			a.Epoch, f.Orphaned = 1, true
		}},
		{"paused, and nobody is there", state.Paused, func(f *history.Facts, a, _ *state.Node) {
			a.Status, f.Orphaned = state.Paused, true
			f.Unsettled["a"] = []state.Batch{{Status: state.Claimed, Lease: noon.Add(time.Minute)}}
		}},
		{"approved, and nobody is there", state.Running, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, time.Minute)
			f.Orphaned, b.Decision = true, &state.Decision{Approved: true}
		}},
		{"a gate", state.Running, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, time.Minute)
			b.Name, b.Node, b.Status = "approval:totals", "approval:totals", state.Waiting
			f.Gates["approval:totals"] = gate.Record{Since: noon.Add(-2 * time.Hour), By: []string{"finance", "risk"},
				Until: noon.Add(time.Hour)}
		}},
		{"two gates since yesterday", state.Running, func(f *history.Facts, a, b *state.Node) {
			f.Orphaned = true
			a.Status, b.Status = state.Waiting, state.Waiting
			f.Gates["a"] = gate.Record{Since: noon.Add(-30 * time.Hour), Until: noon.Add(-time.Minute)}
		}},
		{"a gate, and there is work", state.Running, func(f *history.Facts, a, b *state.Node) {
			works(a, 100, 40, time.Second)
			b.Status = state.Waiting
		}},
		{"memory of others", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 0, time.Second)
			f.Memory = []string{"process 12 has none of 1000 MiB for all", "process 11 holds 900 MiB"}
		}},
		{"who has its batch waits for memory", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 0, time.Second)
			f.Unsettled["a"] = []state.Batch{{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: 41},
				Status: state.Claimed, Owner: "h/12/2", Lease: noon.Add(time.Minute)}}
			f.Memory, f.Waits = []string{"a batch of process 12 needs all of the 1000 MiB"},
				func(owner string) bool { return owner == "h/12/2" }
		}},
		{"others wait for memory, and nobody is there", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 0, time.Second)
			f.Memory, f.Orphaned = []string{"process 12 has none of 1000 MiB for all"}, true
		}},
		{"interrupted", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 1234, 40, time.Minute)
			f.Orphaned = true
			f.Unsettled["a"] = []state.Batch{{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: 41},
				Status: state.Claimed, Owner: "h/1/2", Lease: noon.Add(-time.Second)}}
		}},
		{"no worker of the cluster", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 1234, 40, time.Minute)
			f.Run.Workspace, f.Orphaned, f.Alone = "other", true, noWorker
		}},
		{"an order, and no worker of the cluster", state.Running, func(f *history.Facts, a, b *state.Node) {
			f.Run.Command = &state.Command{Kind: state.CommandRedo, Epoch: 1, Mark: mark("")}
			a.Epoch, f.Orphaned, f.Alone = 1, true, noWorker
		}},
		{"a lease that nobody extends", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 99, time.Minute)
			f.Unsettled["a"] = []state.Batch{{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: 41},
				Status: state.Claimed,
				Owner:  "h/1/2", Started: noon.Add(-time.Minute), Lease: noon.Add(-5 * time.Second)}}
		}},
		{"claims of a worker that has ended", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 98, time.Minute)
			f.Gone = func(owner string) bool { return owner == "h/1/2" }
			for i := range 2 {
				f.Unsettled["a"] = append(f.Unsettled["a"],
					state.Batch{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: 41 + i},
						Status: state.Claimed, Owner: "h/1/2", Started: noon.Add(-time.Minute),
						Lease: noon.Add(time.Duration(i+5) * time.Second)})
			}
		}},
		{"a lease that nobody extends, and other work", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 100, 50, time.Second)
			f.Unsettled["a"] = []state.Batch{{Status: state.Claimed, Lease: noon.Add(-5 * time.Second)}}
		}},
		{"tried again later", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 10, 8, time.Minute)
			for i, wait := range []time.Duration{40, 12} {
				f.Unsettled["a"] = append(f.Unsettled["a"],
					state.Batch{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: i},
						Status: state.Pending, Tries: 2, NotBefore: noon.Add(wait * time.Second)})
			}
		}},
		{"planning", state.Running, func(f *history.Facts, a, b *state.Node) { works(a, 2, 2, time.Millisecond) }},
		{"one batch goes on and on", state.Running, func(f *history.Facts, a, _ *state.Node) {
			works(a, 9, 8, time.Minute)
			f.Tallies["a"] = took(seconds(2, 2, 2, 2, 2, 2, 2, 2), computing)
			f.Unsettled["a"] = []state.Batch{{BatchKey: state.BatchKey{NodeKey: a.NodeKey, Batch: 5},
				BatchSpec: state.BatchSpec{RowsIn: 4_000_000}, Status: state.Claimed,
				Started: noon.Add(-50 * time.Second), Lease: noon.Add(time.Minute)}}
		}},
		{"a batch took most of the time", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 5, 5, 5*time.Minute)
			a.RowsIn = 5000
			f.Tallies["a"] = took(seconds(2, 3, 240, 3, 2),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d, RowsIn: int64(d / time.Second)} })
			works(b, 2, 2, time.Second)
		}},
		{"even batches", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 5, 5, 9*time.Minute)
			f.Tallies["a"] = took(seconds(100, 110, 120, 110, 100), computing)
		}},
		{"one batch for two slots", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 1, 1, 9*time.Minute)
			f.Tallies["a"] = took(seconds(500), computing)
		}},
		{"one batch of a script beside the program", state.Complete, func(f *history.Facts, a, b *state.Node) {
			f.Run.ScriptPath = "/srv/thalweg data/x.yaml"
			works(a, 1, 1, 9*time.Minute)
			f.Tallies["a"] = took(seconds(500), computing)
		}},
		{"one batch, and two interpreters", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 1, 1, 9*time.Minute)
			f.Tallies["a"] = took(seconds(500),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 10, Python: 2 * d} })
		}},
		{"Python", state.Running, func(f *history.Facts, a, b *state.Node) {
			works(a, 50, 20, 9*time.Minute)
			f.Tallies["a"] = took(seconds(10, 12, 11),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 10, Python: d * 85 / 100} })
		}},
		{"reading", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 8*time.Minute)
			f.Tallies["a"] = took(seconds(300, 310, 300),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 4, Read: d / 2} })
		}},
		{"disk", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 8*time.Minute)
			f.Tallies["a"] = took(seconds(300, 310, 300),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 4, Write: d / 3, Commit: d / 4} })
		}},
		{"waiting for memory", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 8*time.Minute)
			f.Tallies["a"] = took(seconds(300, 310, 300),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 4, Wait: d / 3} })
		}},
		{"waiting for a slot", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 8*time.Minute)
			f.Tallies["a"] = took(seconds(300, 310, 300),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 4, Turn: d / 2} })
		}},
		{"our own work", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 8*time.Minute)
			f.Tallies["a"] = took(seconds(300, 310, 300),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 4} })
		}},
		{"many small batches", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, 9*time.Minute)
			a.RowsIn = 40
			f.Tallies["a"] = took(seconds(10, 11, 10, 10),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 3, Read: d / 3} })
		}},
		{"slots that other nodes had", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, 9*time.Minute)
			f.Tallies["a"] = took(seconds(100, 110, 100, 100),
				func(d time.Duration) state.Stats { return state.Stats{Engine: d / 3, Read: d / 3} })
			works(b, 4, 4, 8*time.Minute)
			f.Tallies["b"] = took(seconds(200, 200, 200, 100), computing)
		}},
		{"a decision that came late", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 4, 4, time.Minute)
			b.Name, b.Node, b.Status = "approval:totals", "approval:totals", state.Succeeded
			b.Decision = &state.Decision{Approved: true, Mark: mark("looks right")}
			f.Gates["approval:totals"] = gate.Record{Since: noon.Add(-9 * time.Minute)}
		}},
		{"stopped overnight", state.Complete, func(f *history.Facts, a, b *state.Node) {
			f.Run.Created = noon.Add(-10 * time.Hour)
			f.Holds = []history.Hold{{From: noon.Add(-10*time.Hour + 4*time.Minute), To: noon.Add(-time.Minute),
				Order: state.Command{Kind: state.CommandStop, Mark: mark("for the night")}}}
			works(a, 4, 4, 10*time.Hour-time.Minute)
			f.Tallies["a"] = took(seconds(100, 110, 100, 100), computing)
		}},
		{"failed, and went on", state.Complete, func(f *history.Facts, a, b *state.Node) {
			f.Holds = []history.Hold{{From: noon.Add(-9 * time.Minute), To: noon.Add(-time.Minute),
				Order: state.Command{Kind: state.CommandFail}}}
		}},
		{"memory", state.Complete, func(f *history.Facts, a, b *state.Node) {
			works(a, 3, 3, 9*time.Minute)
			f.Tallies["a"] = took(seconds(100, 110, 120), func(d time.Duration) state.Stats {
				return state.Stats{Engine: d / 3,
					Counters: map[string]int64{state.CounterPieces: 4, state.CounterAlone: 1,
						state.CounterSpilled: 1 << 29}}
			})
		}},
	}
	var got strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&got, "== %s\n", c.name)
		for _, a := range stateOf(c.status, c.change).Why() {
			fmt.Fprintf(&got, "%s: %s\n", a.Rule, a.Text)
			if a.Do != "" {
				fmt.Fprintf(&got, "    %s\n", a.Do)
			}
		}
	}
	const golden = "testdata/why.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String())
}

// The times in which a run stood still are read from its events.
func TestHolds(t *testing.T) {
	t.Parallel()
	store, key := long(t, 1, 4)
	order := func(kind state.CommandKind, at time.Time) {
		require.NoError(t, state.Direct(t.Context(), store, key, state.Command{Kind: kind, Token: fmt.Sprint(kind, at),
			Mark: state.Mark{Actor: "eva@host", Time: at}}))
	}
	order(state.CommandPause, noon.Add(time.Minute))
	order(state.CommandUnpause, noon.Add(3*time.Minute))
	order(state.CommandStop, noon.Add(10*time.Minute))
	order(state.CommandReopen, noon.Add(8*time.Hour))
	f, err := history.Gather(t.Context(), store, key, noon.Add(8*time.Hour+5*time.Minute), history.ProcessFacts{})
	require.NoError(t, err)
	f.Zone = time.UTC
	require.Len(t, f.Holds, 2)
	require.Equal(t, state.CommandPause, f.Holds[0].Order.Kind)
	require.Equal(t, 7*time.Hour+50*time.Minute, f.Holds[1].To.Sub(f.Holds[1].From))
	require.Equal(t, "run 1 stood still for 7 h 50 min of its 8 h 5 min: stopped by eva@host at 12:10:00; it went on at "+
		"20:00:00", f.Why()[0].Text)
}
