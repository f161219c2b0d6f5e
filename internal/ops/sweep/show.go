package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
	"thalweg/internal/run/concurrency"
)

// Table is a table for people.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
}

func knobs() []string { return []string{concurrency.Batches, concurrency.Threads, concurrency.Writers} }

// Title says what was measured.
func (r Report) Title() string {
	of := cmp.Or(r.Script, "a generated pipeline")
	return fmt.Sprintf("%s on %s, with state and parts in %s", of, format.Counted(int64(r.Cores), "core", "cores"), r.State)
}

// Tables are what people read: first what the worker has chosen, then each class.
func (r Report) Tables() []Table {
	own := Table{Title: "what the worker chose", Header: []string{"class", "batches", "threads", "writers", "rows/s",
		"best fixed", "of it", "≥ " + strconv.FormatFloat(ShareWanted, 'g', -1, 64)}}
	out := []Table{own}
	for _, c := range r.Classes {
		out[0].Rows = append(out[0].Rows, c.own())
		if t := c.table(); len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func (c Class) own() []string {
	row := []string{c.Class}
	for _, name := range knobs() {
		text := "-"
		for _, k := range c.Knobs {
			if k.Knob == name {
				text = k.chosen()
				if !k.Chosen.Settled {
					text += "?"
				}
			}
		}
		row = append(row, text)
	}
	best, share := "-", "-"
	if c.Best != nil {
		best = fmt.Sprintf("%s %d", c.Best.Knob, c.Best.N)
	}
	if c.Share != nil {
		share = c.Share.text(func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }, "")
	}
	return append(row, c.Chosen.Rows.around(), best, share, cmp.Or(c.Verdict, "-"))
}

func (c Class) table() Table {
	t := Table{Title: fmt.Sprintf("%s (%s): %s, %s a run", c.Class, strings.Join(c.Nodes, ", "),
		format.Counted(c.Rows, "row", "rows"), format.Size(c.Bytes)),
		Header: []string{"knob", "at once", "rows/s", "bytes/s", "gain of doubling", "twice as many"}}
	for _, k := range c.Knobs {
		for _, f := range k.Fixed {
			n := strconv.Itoa(f.N)
			if f.Chosen {
				n = "chosen " + n
			}
			t.Rows = append(t.Rows, []string{k.Knob, n, f.Rate.Rows.around(), size(f.Rate.Bytes.Mean), gainText(f.Gain),
				k.next(f)})
		}
	}
	return t
}

func gainText(gain *Figure) string {
	if gain == nil {
		return ""
	}
	return gain.text(func(v float64) string { return fmt.Sprintf("%+.1f", 100*v) }, " %")
}

// next is what there is to say of doing more than a number, where that gains too little.
func (k Knob) next(f Fixed) string {
	if f.N != k.Enough {
		return ""
	}
	gains := "gain"
	for _, next := range k.Fixed {
		if next.N > f.N && next.Gain != nil { // the next one
			if next.Gain.N < onlyOnce || next.Gain.High >= GainWanted {
				gains = "may gain"
			}
			break
		}
	}
	return fmt.Sprintf("%s < %.0f %%", gains, 100*GainWanted)
}

// chosen is what the worker has chosen, in a word.
func (k Knob) chosen() string {
	if k.free() {
		return "free"
	}
	return strconv.Itoa(k.Chosen.Value)
}

// text writes a figure with its interval, if it has one, and its unit.
func (f Figure) text(of func(float64) string, unit string) string {
	if f.N < onlyOnce {
		return of(f.Mean) + unit
	}
	return fmt.Sprintf("%s%s (%s to %s)", of(f.Mean), unit, of(f.Low), of(f.High))
}

// around writes a count with how far its interval goes to both sides, if it has one.
func (f Figure) around() string {
	if f.N < onlyOnce || f.Mean <= 0 {
		return count(f.Mean)
	}
	return fmt.Sprintf("%s ± %.0f %%", count(f.Mean), 100*(f.High-f.Mean)/f.Mean)
}

func count(v float64) string { return format.Count(int64(math.Round(max(v, 0)))) }

func size(v float64) string { return format.Size(int64(max(v, 0))) }

// WriteSVG draws a panel for each knob: how many times as much each number does as what the worker chose.
func (r Report) WriteSVG(w io.Writer) error {
	var panels []chart.Panel
	for _, name := range knobs() {
		p := chart.Panel{Title: "rows a second by " + name + ", beside what the worker chose", X: name + " at once",
			Y: "times as many"}
		for _, c := range r.Classes {
			for _, k := range c.Knobs {
				if k.Knob == name && len(k.Fixed) > 0 && c.Chosen.Rows.Mean > 0 {
					p.Series = append(p.Series, series(c, k))
				}
			}
		}
		if len(p.Series) > 0 {
			panels = append(panels, p)
		}
	}
	return chart.Write(w, r.Title(), panels)
}

func series(c Class, k Knob) chart.Series {
	s := chart.Series{Name: fmt.Sprintf("%s (chose %s)", c.Class, k.chosen())}
	for _, f := range k.Fixed {
		s.Points = append(s.Points, chart.Point{X: float64(f.N), Y: f.Rate.Rows.Mean / c.Chosen.Rows.Mean,
			Text: fmt.Sprintf("%s, %s %d: %s rows/s", c.Class, k.Knob, f.N, f.Rate.Rows.around())})
	}
	return s
}
