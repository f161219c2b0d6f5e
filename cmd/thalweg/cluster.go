package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
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
func (c *clusterInitCmd) Run(ctx context.Context, a *console) error {
	cfg, err := app.LoadCluster(c.Cluster, a.process())
	if err != nil {
		return err
	}
	if err := app.PrepareCluster(ctx, cfg, a.warnFault); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "the cluster is ready: start workers with `thalweg worker --cluster %s`\n", c.Cluster)
	return nil
}

// warnFault says what is wrong and keeps nobody from going on, such as a broker that is away.
func (a *console) warnFault(err error) {
	fmt.Fprintf(a.stderr, "%s %s\n", a.mark("warning:", yellow), plain(err.Error()))
	if hint := fault.Of(err).Hint; hint != "" {
		fmt.Fprintf(a.stderr, "  hint: %s\n", plain(hint))
	}
}

type clusterStatusCmd struct {
	Cluster string `help:"Configuration of the cluster." type:"path" env:"THALWEG_CLUSTER" placeholder:"FILE"`
	JSON    bool   `name:"json" help:"Print a JSON object."`
}

// Run implements kong's command.
func (c *clusterStatusCmd) Run(ctx context.Context, a *console) error {
	out, broker, err := c.status(ctx, a)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(a.stdout, out)
	}
	if broker != nil {
		a.warnFault(broker)
	}
	a.printWorkers(out, c.Cluster)
	a.printOpenRuns(out.Runs)
	return nil
}

// status asks the cluster, or the server. broker is why the cluster's broker cannot be used.
func (c *clusterStatusCmd) status(ctx context.Context, a *console) (out view.ClusterStatus, broker, err error) {
	if a.server != "" {
		client, err := a.serverClient()
		if err != nil {
			return out, nil, err
		}
		if out, err = client.ClusterStatus(ctx); out.Broker != "" {
			broker = &fault.Error{Kind: fault.Environment, Message: out.Broker}
		}
		return out, broker, err
	}
	if c.Cluster == "" {
		return out, nil, &fault.Error{Kind: fault.Script, Message: "cluster status needs a cluster",
			Hint: "name one with --cluster FILE, or a server that has it with --server URL"}
	}
	home, err := placeFlags{Cluster: c.Cluster}.openHome(ctx, a, false)
	if err != nil {
		return out, nil, err
	}
	defer home.Close()
	return home.Fleet.Status(ctx)
}

func (a *console) printWorkers(status view.ClusterStatus, config string) {
	workers := status.Workers
	if len(workers) == 0 {
		fmt.Fprintf(a.stdout, "no worker is there; start one: thalweg worker --cluster %s\n", cmp.Or(config, "FILE"))
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
		t.AppendRow([]any{w.Host, w.PID, w.Version, w.Engine, w.Python, w.Slots, size(w.Memory),
			span(time.Since(w.Since)), strings.Join(runs, " "), status})
	}
	t.Render()
	for _, s := range app.SharersOf(workers) {
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

func (a *console) printOpenRuns(runs []view.OpenRun) {
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
