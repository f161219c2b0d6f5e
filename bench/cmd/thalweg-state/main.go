// Command thalweg-state measures what the state of runs costs where there is
// much of it: claims and commits at both ends of a run of many batches, what the
// coordinator reads meanwhile, and the lists of a workspace of many runs. It
// drives real coordinators and executors whose batches do nothing, and writes
// its figures, in seconds, where the benchmark looks for them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alecthomas/kong"

	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
	"thalweg/internal/store/state/sqlite"
)

type options struct {
	Dir     string `required:"" type:"path" help:"Directory for the state."`
	Batches int    `default:"100000" help:"Batches of a run."`
	Runs    int    `default:"10000" help:"Runs of a workspace."`
	Ends    int    `default:"1000" help:"Batches at each end of the run that are measured by themselves."`
	Figures string `required:"" type:"path" help:"File for the figures."`
}

// figures are the steps of a measurement, in seconds.
type figures struct {
	Steps map[string]float64 `json:"steps"`
}

func main() {
	var o options
	kong.Parse(&o, kong.Name("thalweg-state"), kong.Description("Measure what the state of large runs costs."))
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "thalweg-state:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the state: %w", err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(o.Dir, "state.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	out := figures{Steps: map[string]float64{}}
	if err := batches(ctx, store, o, out.Steps); err != nil {
		return err
	}
	if err := runs(ctx, store, o, out.Steps); err != nil {
		return err
	}
	if err := looks(ctx, o, out.Steps); err != nil {
		return err
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	return os.WriteFile(o.Figures, text, 0o644)
}

// Where the runs are.
const (
	batchesWorkspace = "batches"
	batchesNode      = "n"
	runsWorkspace    = "many"
	gateNode         = gate.Prefix + "totals"
	waitsEvery       = 500 // runs, of which one waits for people
)

// batches drives a run of so many.
func batches(ctx context.Context, store state.Store, o options, steps map[string]float64) error {
	m := newMeter(store)
	if err := m.drive(ctx, o.Batches); err != nil {
		return err
	}
	steps["reconcile"] = m.reading.Seconds() / float64(o.Batches)
	steps["claim and commit, first"] = mean(m.batches[:min(o.Ends, o.Batches)])
	steps["claim and commit, last"] = mean(m.batches[max(0, o.Batches-o.Ends):])
	return nil
}

func mean(all []time.Duration) float64 {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum.Seconds() / float64(len(all))
}

// wait lets a gate wait.
func wait(ctx context.Context, store state.Store, key state.NodeKey) error {
	now := time.Now()
	record := gate.Record{Gate: gate.NameOf(key.Node), Message: "well?"}
	record.SetDigest()
	data, err := record.Begin(now).Encode()
	if err != nil {
		return err
	}
	if err := gate.Note(ctx, store, key, now); err != nil {
		return err
	}
	return store.MoveNode(ctx, key, state.Move{From: state.Pending, To: state.Waiting, Gate: data,
		GateDigest: record.Digest, Actor: "me", Now: now})
}

// runs fills a workspace and reads its lists.
func runs(ctx context.Context, store state.Store, o options, steps map[string]float64) error {
	const workspace = runsWorkspace
	nodes := []state.NodeSpec{{Name: "read", Table: "t"}, {Name: gateNode, Kind: gate.Kind, Ordinal: 1,
		Inputs: []string{"read"}},
		{Name: "write", Ordinal: 2, Inputs: []string{"read", gateNode}}}
	for i := range o.Runs {
		key, err := store.CreateRun(ctx, state.Run{RunKey: state.RunKey{Workspace: workspace}, Script: "s",
			ScriptPath: "s.yaml"}, nodes)
		if err != nil {
			return err
		}
		if i%waitsEvery == 0 || i == o.Runs-1 { // some wait for people
			err = wait(ctx, store, state.NodeKey{RunKey: key, Node: gateNode})
		} else {
			err = state.Direct(ctx, store, key, state.Command{Kind: state.CommandStop, Token: "t",
				Mark: state.Mark{Actor: "me", Time: time.Now()}})
		}
		if err != nil {
			return err
		}
	}
	last := state.RunKey{Workspace: workspace, Run: int64(o.Runs)}
	for name, read := range map[string]func() error{
		"a page of runs": func() error {
			_, _, err := store.Runs(ctx, workspace, state.Page{Limit: 20})
			return err
		},
		"all runs":       func() error { _, err := state.All(ctx, store.Runs, workspace); return err },
		"nodes of a run": func() error { _, err := store.Nodes(ctx, last); return err },
		"a page of notes": func() error {
			_, err := store.Notes(ctx, workspace, state.TopicWaiting, "", 0)
			return err
		},
		"runs that are open": func() error { _, err := state.OpenRuns(ctx, store, workspace, nil); return err },
	} {
		began := time.Now()
		if err := read(); err != nil {
			return err
		}
		steps[name] = time.Since(began).Seconds()
	}
	return nil
}
