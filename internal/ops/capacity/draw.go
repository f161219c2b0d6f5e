package capacity

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
)

// WriteSVG draws the report.
func (r Report) WriteSVG(w io.Writer) error { return chart.Write(w, r.Title, r.panels) }

// runPanels has time over nodes, even and by logarithms, and cost over nodes. Each number of cores of a node has a
// line.
func runPanels(runs []Run) []chart.Panel {
	byCores := map[int][]Run{}
	for _, r := range deployments(runs) {
		byCores[r.Cores] = append(byCores[r.Cores], r)
	}
	var times, costs []chart.Series
	for _, cores := range slices.Sorted(maps.Keys(byCores)) {
		time := chart.Series{Name: fmt.Sprintf("%s each", format.Counted(int64(cores), "core", "cores"))}
		perfect := chart.Series{Name: "if perfect", Dashed: true}
		cost := time
		for _, r := range byCores[cores] {
			of := PerfectOf(r, runs)
			x := float64(r.Nodes)
			time.Points = append(time.Points, chart.Point{X: x, Y: r.Seconds,
				Text: fmt.Sprintf("%s: %s", r.Shape, secondsText(r.Seconds))})
			perfect.Points = append(perfect.Points, chart.Point{X: x, Y: of.Seconds,
				Text: fmt.Sprintf("%s, if perfect: %s", r.Shape, secondsText(of.Seconds))})
			if r.Cost != nil {
				cost.Points = append(cost.Points, chart.Point{X: x, Y: r.Cost.USD(), Text: fmt.Sprintf("%s: %s", r.Shape, r.Cost)})
			}
		}
		times = append(times, time, perfect)
		if cost.Points != nil {
			costs = append(costs, cost)
		}
	}
	panels := []chart.Panel{{Title: "run time", X: "nodes", Y: "seconds", Series: times},
		{Title: "run time, by logarithms", X: "nodes", Y: "seconds", Log: true, Series: times}}
	if costs != nil {
		panels = append(panels, chart.Panel{Title: "cost of a run", X: "nodes", Y: "US dollars", Series: costs})
	}
	return panels
}
