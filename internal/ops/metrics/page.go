package metrics

import (
	"fmt"
	"strings"
)

// Page is docs/metrics.md: of a worker, and of a server of a table.
func Page(worker, table []Metric) string {
	var b strings.Builder
	rows := func(inventory []Metric) {
		for _, m := range inventory {
			fmt.Fprintf(&b, "| `%s` | %s, %s | %s | %s |\n", m.Name, m.Kind, m.Unit, labels(m.Labels), m.Help)
		}
	}
	b.WriteString(pageHead)
	rows(worker)
	b.WriteString(pageFoot)
	b.WriteString(pageTable)
	rows(table)
	return b.String()
}

func labels(list []Label) string {
	var out []string
	for _, l := range list {
		out = append(out, fmt.Sprintf("`%s`: %s", l.Name, l.Values))
	}
	return strings.Join(out, "; ")
}

const pageHead = `# Metrics of a worker

` + "`thalweg worker --metrics :9464`" + ` (or, in a cluster, ` + "`worker: {metrics: \":9464\"}`" +
	` in its configuration) answers at these paths, on loopback unless you name a host:

| path | what |
| --- | --- |
| ` + "`/metrics`" + ` | Prometheus' format |
| ` + "`/metrics.json`" + ` | the same as JSON: every metric of the inventory with unit, meaning and samples |
| ` + "`/healthz`" + ` | 200 while the process answers |
| ` + "`/readyz`" +
	` | 200 while it reaches the state and the queue, can write its scratch directory, waits for no memory, ` +
	`and was not asked to end; else 503 (also while it waits for services that are away when it is started) ` +
	`with the reason. What somebody should look at is in its notices, runs that it cannot work on, too |

There is no password. Whoever can reach the port can read the figures; they contain no names or values of users' data. ` +
	"`deploy/grafana.json`" + ` has a dashboard for these metrics, and ` + "`deploy/alerts.yaml`" + ` alert rules.

## Inventory

This page is made from the code (` + "`go test ./internal/ops/metrics -update`" + `). A metric without samples has not changed yet.

| name | kind, unit | labels | meaning |
| --- | --- | --- | --- |
`

const pageFoot = `
Stages and calls are measured by the clock, processor time for each process. The stages of a batch overlap, and several batches may be in flight,
so their seconds add up to more than the time that has passed. Each figure is that of one worker since it began; let Prometheus add them up for a fleet.

## Samples

Each process that works on runs (` + "`run`, `worker`, `serve --worker`" + `) also takes a sample every 10 s and keeps it in the state for 24 h, whoever
looks: processor time of itself and of what it started, cores that it may use, resident memory and its limit, free space of the disk of its directory,
bytes read from and written to disks. A process that works for less than 10 s leaves none; one that is killed leaves what it told. The page of a run's timeline
draws them, and ` + "`GET …/runs/N/samples`" + ` ([serving.md](serving.md)) has them for who may view the run. A worker of several runs shows all that it used.

What a run cost is there for good: ` + "`cost`" + ` in the JSON of ` + "`show`" + ` and ` + "`history`" + `, of a run and each node, is the time that workers spent on attempts,
` + "`worked_ms`" + ` on those that succeeded and ` + "`lost_ms`" + ` on those that failed, were given back, or ended with their worker (until their lease did). Attempts under way, and
those that a stop or another order cut off, are not in it.
`

const pageTable = `
## A served table

` + "`thalweg serve-table --metrics`" + ` ([serve-table.md](serve-table.md)) answers at the same paths:

| name | kind, unit | labels | meaning |
| --- | --- | --- | --- |
`
