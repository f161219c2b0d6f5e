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

// runPanels has time over nodes, even and by logarithms, cost over nodes, and cost against time. Each number of cores
// of a node has a colour.
func runPanels(runs []Run) []chart.Panel {
	byCores := map[int][]Run{}
	for _, r := range deployments(runs) {
		byCores[r.Cores] = append(byCores[r.Cores], r)
	}
	var times, costs, against []chart.Series
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
			against = append(against, againstTime(cost, byCores[cores]))
		}
	}
	panels := []chart.Panel{{Title: "run time", X: "nodes", Y: "seconds", Series: times},
		{Title: "run time, by logarithms", X: "nodes", Y: "seconds", Log: true, Series: times}}
	if costs != nil {
		panels = append(panels, chart.Panel{Title: "cost of a run", X: "nodes", Y: "US dollars", Series: costs})
	}
	if allPriced(runs) {
		frontier := chart.Series{Name: "cheapest in time", Line: true}
		for _, c := range Frontier(runs) {
			frontier.Points = append(frontier.Points, chart.Point{X: c.Seconds, Y: c.Cost.USD()})
		}
		panels = append(panels, chart.Panel{Title: "cost against time", X: "seconds", Y: "US dollars",
			Series: append(against, frontier)})
	}
	return panels
}

// againstTime is a series of costs with the times of their runs in the place of nodes.
func againstTime(cost chart.Series, runs []Run) chart.Series {
	out := chart.Series{Name: cost.Name, Dots: true}
	for _, r := range runs {
		if r.Cost != nil {
			out.Points = append(out.Points, chart.Point{X: r.Seconds, Y: r.Cost.USD(),
				Text: fmt.Sprintf("%s: %s, %s", r.Shape, secondsText(r.Seconds), r.Cost)})
		}
	}
	return out
}
