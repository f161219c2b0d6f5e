package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/app/fleet"
	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/worker"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// clusterCmd is about a cluster as a whole.
type clusterCmd struct {
	Init   clusterInitCmd   `cmd:"" help:"Make what a cluster needs and has not got yet: tables, directories."`
	Status clusterStatusCmd `cmd:"" help:"List the workers that are there, and the runs that are not over."`
}

// clusterFlag names a cluster.
type clusterFlag struct {
	Cluster string `help:"Configuration of the cluster." type:"path" env:"THALWEG_CLUSTER" required:"" placeholder:"FILE"`
}

type clusterInitCmd struct{ clusterFlag }

// Run implements kong's command.
func (c *clusterInitCmd) Run(ctx context.Context, a *app) error {
	cfg, err := instance.LoadCluster(c.Cluster, a.known)
	if err != nil {
		return err
	}
	if err := fleet.InitCluster(ctx, cfg); err != nil {
		return err
	}
	if err := fleet.CheckCopies(ctx, cfg); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		a.warnFault(err)
	}
	switch err := instance.CheckBroker(ctx, cfg, true); {
	case err == nil:
	case ctx.Err() != nil || exitCode(fault.Of(err).Kind) == exitUsers:
		return err
	default:
		a.warnFault(err)
	}
	fmt.Fprintf(a.stdout, "the cluster is ready: start workers with `thalweg worker --cluster %s`\n", c.Cluster)
	return nil
}

// warnFault says what is wrong and keeps nobody from going on, such as a broker that is away.
func (a *app) warnFault(err error) {
	fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), plain(err.Error()))
	if hint := fault.Of(err).Hint; hint != "" {
		fmt.Fprintf(a.stderr, "  hint: %s\n", plain(hint))
	}
}

type clusterStatusCmd struct {
	clusterFlag
	JSON bool `name:"json" help:"Print a JSON object."`
}

// clusterStatus is the JSON form.
type clusterStatus struct {
	Workers []registry.WorkerEntry `json:"workers"`
	Runs    []openRunRow           `json:"runs"`
	Broker  string                 `json:"broker,omitempty"` // why it cannot be used
}

// openRunRow is a run that is not over.
type openRunRow struct {
	Workspace string `json:"workspace"`
	Run       int64  `json:"run"`
	Script    string `json:"script"`
	Status    string `json:"status"` // as history has it
	Workers   int    `json:"workers"`
	Why       string `json:"why,omitempty"` // what it waits for
	Do        string `json:"do,omitempty"`
}

// Run implements kong's command.
func (c *clusterStatusCmd) Run(ctx context.Context, a *app) error {
	home, err := placeFlags{Cluster: c.Cluster}.openHome(ctx, a, false)
	if err != nil {
		return err
	}
	defer home.Close()
	workers, err := registry.Workers(ctx, home)
	if err != nil {
		return err
	}
	runs, err := a.openRunRows(ctx, home, workers)
	if err != nil {
		return err
	}
	onlyOpen(workers, runs)
	broker := instance.CheckBroker(ctx, home.Cluster(), false)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if c.JSON {
		out := clusterStatus{Workers: append([]registry.WorkerEntry{}, workers...), Runs: append([]openRunRow{}, runs...)}
		if broker != nil {
			out.Broker = broker.Error()
		}
		return printJSON(a.stdout, out)
	}
	if broker != nil {
		a.warnFault(broker)
	}
	a.printWorkers(workers, c.Cluster)
	a.printOpenRuns(runs)
	return nil
}

// onlyOpen leaves out of what workers say the runs that are over: one that has died says for a day what it
// said last.
func onlyOpen(workers []registry.WorkerEntry, runs []openRunRow) {
	over := func(at registry.RunAt) bool {
		return !slices.ContainsFunc(runs, func(r openRunRow) bool { return r.Workspace == at.Workspace && r.Run == at.Run })
	}
	for i := range workers {
		workers[i].Runs = slices.DeleteFunc(workers[i].Runs, over)
		workers[i].Refused = slices.DeleteFunc(workers[i].Refused, over)
	}
}

func (a *app) openRunRows(ctx context.Context, home *instance.Instance,
	workers []registry.WorkerEntry) (out []openRunRow,
	err error) {
	workspaces, err := home.State.Workspaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for workspaces: %w", err)
	}
	for _, w := range workspaces {
		runs, err := state.OpenRuns(ctx, home.State, w, nil)
		if err != nil {
			return nil, fmt.Errorf("look for runs of workspace %s: %w", w, err)
		}
		for _, r := range runs {
			seen, err := a.statusOf(ctx, home, r)
			if err != nil {
				return nil, err
			}
			row := openRunRow{Workspace: w, Run: r.Run, Script: r.ScriptPath, Status: seen.Status, Why: seen.NoWorker,
				Do: seen.Do}
			if len(seen.WaitsFor) > 0 && seen.Status == history.Waiting {
				row.Why = "waits for a decision about " + gate.NameOf(seen.WaitsFor[0])
			}
			for _, there := range workers {
				for _, at := range there.Runs {
					if !there.Gone && at.Workspace == w && at.Run == r.Run {
						row.Workers++
					}
				}
			}
			out = append(out, row)
		}
	}
	return out, nil
}

func (a *app) printWorkers(workers []registry.WorkerEntry, config string) {
	if len(workers) == 0 {
		fmt.Fprintf(a.stdout, "no worker is there; start one: thalweg worker --cluster %s\n", config)
		return
	}
	t := a.newTable("host", "process", "thalweg", "duckdb", "python", "slots", "memory", "since", "runs",
		"status").leaves("python", "duckdb", "since", "process", "memory", "slots", "runs")
	rightAligned(t, 2, 6, 7)
	for _, w := range workers {
		status := "at work"
		switch {
		case w.Gone:
			status = "gone: last heard of " + span(time.Since(w.Seen)) + " ago"
		case w.Draining:
			status = "draining"
		case len(w.Cannot) > 0:
			status = "cannot work"
		case len(w.Runs) == 0:
			status = "idle"
		}
		var runs []string
		for _, r := range w.Runs {
			runs = append(runs, fmt.Sprintf("%s/%d", r.Workspace, r.Run))
		}
		t.AppendRow([]any{w.Host, w.PID, w.Version, w.Engine, w.Python, w.Slots, size(w.Memory), span(time.Since(w.Since)),
			strings.Join(runs, " "), status})
	}
	t.Render()
	for _, s := range worker.SharersOf(workers) {
		if s.Workers > 1 {
			fmt.Fprintf(a.stdout, "%s: %d workers share %s of memory\n", s.Host, s.Workers, size(s.Memory))
		}
	}
	for _, w := range workers {
		if w.Gone {
			continue
		}
		for _, why := range w.Cannot {
			fmt.Fprintf(a.stdout, "%s, process %d, takes no work: %s\n", w.Host, w.PID, plain(why))
		}
		for _, r := range w.Refused {
			fmt.Fprintf(a.stdout, "%s, process %d, cannot work on run %d in workspace %s: %s\n", w.Host, w.PID, r.Run,
				r.Workspace, plain(r.Why))
		}
		for _, text := range w.Notices {
			fmt.Fprintf(a.stdout, "%s, process %d: %s\n", w.Host, w.PID, plain(text))
		}
	}
}

func (a *app) printOpenRuns(runs []openRunRow) {
	if len(runs) == 0 {
		fmt.Fprintln(a.stdout, "no run is under way")
		return
	}
	t := a.newTable("workspace", "run", "script", "status", "workers", "")
	rightAligned(t, 2, 5)
	for _, r := range runs {
		t.AppendRow([]any{r.Workspace, r.Run, plain(r.Script), runStatusText(a, r.Status), r.Workers, plain(r.Why)})
	}
	t.Render()
}

// needCluster refuses what only a cluster has.
func needCluster(flag, cluster string) error {
	if cluster != "" {
		return nil
	}
	return &fault.Error{Kind: fault.Script, Message: flag + " is for runs of a cluster",
		Hint: "name one with --cluster FILE"}
}
