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

// Title says what was measured.
func (r Report) Title() string {
	of := cmp.Or(r.Script, "a generated pipeline")
	return fmt.Sprintf("%s on %s, with state and parts in %s", of, format.Counted(int64(r.Cores), "core", "cores"), r.State)
}

// Tables are what people read: first what the worker has chosen, then each class.
func (r Report) Tables() []Table {
	own := Table{Title: "what the worker chose", Header: []string{"class", "batches", "threads", "writers", "rows/s",
		"bytes/s", "best fixed", "of it", "≥ " + strconv.FormatFloat(ShareWanted, 'g', -1, 64)}}
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
	for _, name := range []string{concurrency.Batches, concurrency.Threads, concurrency.Writers} {
		text := "-"
		for _, k := range c.Knobs {
			if k.Knob == name {
				text = k.chosen()
				if !k.Chosen.Settled {
					text += " (still trying)"
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
		share = c.Share.text(func(v float64) string { return fmt.Sprintf("%.3f", v) })
	}
	return append(row, c.Chosen.Rows.text(count), c.Chosen.Bytes.text(size), best, share, cmp.Or(c.Verdict, "-"))
}

func (c Class) table() Table {
	t := Table{Title: fmt.Sprintf("%s (%s): %s, %s a run", c.Class, strings.Join(c.Nodes, ", "),
		format.Counted(c.Rows, "row", "rows"), format.Size(c.Bytes)),
		Header: []string{"knob", "at once", "rows/s", "bytes/s", "gain of doubling", ""}}
	for _, k := range c.Knobs {
		for _, f := range k.Fixed {
			t.Rows = append(t.Rows, []string{k.Knob, strconv.Itoa(f.N), f.Rate.Rows.text(count), f.Rate.Bytes.text(size),
				gainText(f.Gain), strings.Join(k.says(f), "; ")})
		}
	}
	return t
}

func gainText(gain *Figure) string {
	if gain == nil {
		return ""
	}
	return gain.text(func(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) })
}

// says is what there is to say of a number.
func (k Knob) says(f Fixed) (out []string) {
	if f.Chosen {
		out = append(out, "chosen")
	}
	if f.N == k.Enough {
		gain := "gain"
		for _, next := range k.Fixed {
			if next.N > f.N && next.Gain != nil { // the next one
				if next.Gain.N < onlyOnce || next.Gain.High >= GainWanted {
					gain = "may gain"
				}
				break
			}
		}
		out = append(out, fmt.Sprintf("twice as many %s less than %.0f %%", gain, 100*GainWanted))
	}
	return out
}

// chosen is what the worker has chosen, in a word.
func (k Knob) chosen() string {
	if k.free() {
		return "free"
	}
	return strconv.Itoa(k.Chosen.Value)
}

// text writes a figure with its interval, if it has one.
func (f Figure) text(of func(float64) string) string {
	if f.N < onlyOnce {
		return of(f.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", of(f.Mean), of(f.Low), of(f.High))
}

func count(v float64) string { return format.Count(int64(math.Round(max(v, 0)))) }

func size(v float64) string { return format.Size(int64(max(v, 0))) }

// WriteSVG draws a panel for each knob: how many times as much each number does as what the worker chose.
func (r Report) WriteSVG(w io.Writer) error {
	var panels []chart.Panel
	for _, name := range []string{concurrency.Batches, concurrency.Threads, concurrency.Writers} {
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
			Text: fmt.Sprintf("%s, %s %d: %s rows/s", c.Class, k.Knob, f.N, f.Rate.Rows.text(count))})
	}
	return s
}
