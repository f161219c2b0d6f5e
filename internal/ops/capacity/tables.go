package capacity

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/price"
)

// Table is a table of a report as people read it.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
}

// Tables returns the tables of the report.
func (r Report) Tables() []Table {
	out := slices.Clone(r.tables)
	if len(r.Runs) == 0 {
		return out
	}
	out = append(out, r.runsTable())
	out = append(out, r.pivot("seconds of a run / if all cores were as good as the smallest deployment's",
		func(run ReportedRun) string {
			return figure(run.Seconds) + " / " + figure(run.PerfectSeconds)
		}))
	if r.Frontier != nil {
		out = append(out, r.pivot("cost of a run in US dollars / likewise", func(run ReportedRun) string {
			return fmt.Sprintf("%s / %s", run.Cost, run.PerfectCost)
		}))
	}
	if len(r.Steps) > 0 {
		out = append(out, r.stepsTable())
	}
	if r.Frontier != nil {
		out = append(out, r.frontierTable())
	}
	out = append(out, r.modelsTable())
	if r.Foreseen != nil {
		out = append(out, r.foreseenTable())
	}
	if classes := r.classesTable(); len(classes.Rows) > 0 {
		out = append(out, classes)
	}
	return out
}

// figure writes seconds without their unit: of few of them two figures.
func figure(seconds float64) string {
	const few = 10
	if seconds < few {
		return fmt.Sprintf("%.2g", seconds)
	}
	return fmt.Sprintf("%.0f", math.Round(seconds))
}

// costText writes what is known to cost something.
func costText(m *price.Money) string {
	if m == nil {
		return "-"
	}
	return m.String()
}

// hourText writes what an hour costs: prices differ from the fourth digit on.
func hourText(m *price.Money) string {
	if m == nil {
		return "-"
	}
	const digits = 4
	if text := m.String(); len(text) > len(m.Text(digits)) {
		return text
	}
	return m.Text(digits)
}

func (r Report) runsTable() Table {
	t := Table{Title: "runs", Header: []string{"nodes × cores", "machines", "all cores", "an hour", "time", "cost"}}
	for _, run := range r.Runs {
		cores := "-"
		if run.TotalCores > 0 {
			cores = fmt.Sprint(run.TotalCores)
		}
		t.Rows = append(t.Rows, []string{run.Shape.String(), run.Machines, cores, hourText(run.PerHour),
			secondsText(run.Seconds), costText(run.Cost)})
	}
	return t.WithoutEmpty()
}

// WithoutEmpty leaves out columns in which no row has anything.
func (t Table) WithoutEmpty() Table {
	out := Table{Title: t.Title, Rows: make([][]string, len(t.Rows))}
	for k, name := range t.Header {
		if !slices.ContainsFunc(t.Rows, func(row []string) bool { return row[k] != "" && row[k] != "-" }) {
			continue
		}
		out.Header = append(out.Header, name)
		for i, row := range t.Rows {
			out.Rows[i] = append(out.Rows[i], row[k])
		}
	}
	return out
}

// pivot has a row for each number of nodes, and a column for each number of cores of one.
func (r Report) pivot(title string, cell func(ReportedRun) string) Table {
	byShape, nodes, cores := map[Shape]string{}, map[int]bool{}, map[int]bool{}
	var runs []Run
	for _, run := range r.Runs {
		runs = append(runs, run.Run)
	}
	chosen := deployments(runs)
	for _, run := range r.Runs {
		if slices.ContainsFunc(chosen, func(c Run) bool { return c.Shape == run.Shape && c.Seconds == run.Seconds }) {
			byShape[run.Shape], nodes[run.Nodes], cores[run.Cores] = cell(run), true, true
		}
	}
	t := Table{Title: title, Header: []string{"nodes"}}
	columns := slices.Sorted(maps.Keys(cores))
	for _, c := range columns {
		t.Header = append(t.Header, fmt.Sprintf("%s each", format.Counted(int64(c), "core", "cores")))
	}
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		row := []string{fmt.Sprint(n)}
		for _, c := range columns {
			row = append(row, byShape[Shape{n, c}])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// stepsTable has the doublings from each shape, out and up beside each other.
func (r Report) stepsTable() Table {
	t := Table{Title: "twice the cores: what becomes of time and cost",
		Header: []string{"from", "out to", "time ×", "cost ×", "up to", "time ×", "cost ×"}}
	for _, s := range r.Steps {
		at := len(t.Rows) - 1
		if at < 0 || t.Rows[at][0] != s.From.String() {
			t.Rows = append(t.Rows, []string{s.From.String(), "", "", "", "", "", ""})
			at++
		}
		first, cost := 1, ""
		if s.Up {
			first = 4
		}
		if s.Cost > 0 {
			cost = fmt.Sprintf("%.2f", s.Cost)
		}
		copy(t.Rows[at][first:], []string{s.To.String(), fmt.Sprintf("%.2f", s.Time), cost})
	}
	return t.WithoutEmpty()
}

func (r Report) frontierTable() Table {
	t := Table{Title: "cheapest deployment for each deadline",
		Header: []string{"deadline from", "below", "nodes × cores", "time", "cost"}}
	for _, c := range r.Frontier {
		until := "any later"
		if c.Until > 0 {
			until = secondsText(c.Until)
		}
		t.Rows = append(t.Rows, []string{secondsText(c.Seconds), until, c.Shape.String(), secondsText(c.Seconds),
			c.Cost.String()})
	}
	return t
}

func (r Report) modelsTable() Table {
	t := Table{Title: "models: errors of deployments left out",
		Header: []string{"model", "median", "worst", "80 % intervals held", "formula and parts"}}
	for _, m := range r.Models {
		if m.Why != "" {
			t.Rows = append(t.Rows, []string{m.Name, "-", "-", "-", "not fitted: " + m.Why})
			continue
		}
		parts := make([]string, len(m.fit.Parts))
		for k, part := range m.fit.Parts {
			parts[k] = part + " " + partText(m.fit.Values[k])
		}
		t.Rows = append(t.Rows, []string{m.Name, percent(m.Median), percent(m.Worst), fmt.Sprintf("%d of %d", m.Held, m.Of),
			m.Formula + ": " + strings.Join(parts, ", ")})
	}
	return t
}

// partText writes the value of a part: of a large one no fractions.
func partText(v float64) string {
	if math.Abs(v) < 1000 {
		return fmt.Sprintf("%.3g", v)
	}
	return format.Count(int64(min(math.Round(v), math.MaxInt64/2)))
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func (r Report) foreseenTable() Table {
	t := Table{Title: "each deployment foreseen from the others, by " + Floors.Formula,
		Header: []string{"nodes × cores", "took", "foreseen", "80 % interval", "error", "held"}}
	for _, f := range r.Foreseen {
		t.Rows = append(t.Rows, []string{f.Shape.String(), secondsText(f.Took), secondsText(f.Seconds),
			fmt.Sprintf("%.0f–%.0f s", f.Lower, f.Upper), fmt.Sprintf("%+.1f %%", 100*f.Error()),
			map[bool]string{true: "yes", false: "no"}[f.Held()]})
	}
	return t
}

// classesTable has the times by class of the runs that have them.
func (r Report) classesTable() Table {
	t := Table{Title: "time by class of node", Header: []string{"nodes × cores", "time"}}
	var names []string
	for _, run := range r.Runs {
		for _, c := range run.Classes {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	t.Header = append(t.Header, names...)
	for _, run := range r.Runs {
		row, all := []string{run.Shape.String(), secondsText(run.Seconds)}, 0.0
		for _, c := range run.Classes {
			all += c.Seconds
		}
		for _, name := range names {
			cell := "-"
			if i := slices.IndexFunc(run.Classes, func(c Class) bool { return c.Name == name }); i >= 0 {
				seconds := run.Classes[i].Seconds
				cell = fmt.Sprintf("%s (%.0f %%)", secondsText(seconds), 100*seconds/math.Max(all, 1e-9))
			}
			row = append(row, cell)
		}
		if len(run.Classes) > 0 {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}
