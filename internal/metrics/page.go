package metrics

import (
	"fmt"
	"strings"
)

// Page is docs/metrics.md.
func Page(inventory []Metric) string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, m := range inventory {
		fmt.Fprintf(&b, "| `%s` | %s, %s | %s | %s |\n", m.Name, m.Kind, m.Unit, labels(m.Labels), m.Help)
	}
	b.WriteString(pageFoot)
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

` + "`thalweg worker --metrics :9464`" + ` (in a cluster also ` + "`worker: {metrics: \":9464\"}`" + ` of its configuration) serves, on loopback unless a host is named:

| path | what |
| --- | --- |
| ` + "`/metrics`" + ` | Prometheus' format |
| ` + "`/metrics.json`" + ` | the same as JSON: every metric of the inventory with unit, meaning and samples |
| ` + "`/healthz`" + ` | 200 while the process answers |
| ` + "`/readyz`" + ` | 200 while it reaches the state and the queue and was not asked to end, else 503 with the reason |

There is no password: whoever reaches the port reads figures, and no names or values of users' data. ` +
	"`deploy/grafana.json`" + ` is a dashboard and ` + "`deploy/alerts.yaml`" + ` are alert rules over them.

## Inventory

This page is made from the code (` + "`go test ./internal/metrics -update`" + `). A metric without samples has not moved yet.

| name | kind, unit | labels | meaning |
| --- | --- | --- | --- |
`

const pageFoot = `
Stages and calls are measured by the clock, processor time by process: a batch's stages overlap, and while several batches are in flight
their seconds add up to more than the clock's. Figures are of one worker since it began; sums over a fleet are Prometheus' to make.
`
