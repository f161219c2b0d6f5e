package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Point is a place on a panel. Text is shown when a pointer is on it.
type Point struct {
	X, Y float64
	Text string
}

// Series is a line through points.
type Series struct {
	Name   string
	Points []Point
	Dashed bool // in the colour of the series before it: what would be, beside what is
	Dots   bool // points without a line
	Line   bool // a line without points
}

// Panel is a pair of axes. X goes by logarithms, as numbers of machines do, unless it is Even, Y if Log says so.
type Panel struct {
	Title, X, Y string
	Log, Even   bool
	Series      []Series
}

// Measures in pixels.
const (
	width        = 820
	panelHeight  = 340
	left, right  = 80, 210
	above, below = 40, 60
	lineHeight   = 18
	charWidth    = 7
)

const style = `
text { font: 12px sans-serif; fill: #333; }
.title { font-weight: bold; }
.grid { stroke: #ddd; }
.line { fill: none; stroke-width: 2; }
.dashed { stroke-dasharray: 5 4; stroke-width: 1.3; opacity: .75; }
@media (prefers-color-scheme: dark) { text { fill: #ddd; } .grid { stroke: #444; } }
`

// hues are the colours of series, which come again behind the last.
var hues = []int{210, 30, 130, 280, 0, 180, 60, 330}

// Write draws the panels.
func Write(w io.Writer, title string, panels []Panel) error {
	var b strings.Builder
	height := panelHeight * len(panels)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s", escaped(title), style)
	for i, hue := range hues {
		fmt.Fprintf(&b, ".s%d { stroke: hsl(%d 70%% 45%%); } circle.s%d, .t%d { fill: hsl(%d 70%% 45%%); }\n", i, hue, i, i,
			hue)
	}
	b.WriteString("</style>\n")
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %d)">`+"\n", i*panelHeight)
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a strings.Builder does not fail
	return b.String()
}

// axis places values between two ends.
type axis struct {
	low, high float64 // of the values, or of their logarithms
	from, to  float64 // pixels
	log       bool
}

func (a axis) at(v float64) float64 {
	if a.log {
		v = math.Log(v)
	}
	if a.high == a.low {
		return (a.from + a.to) / 2
	}
	return a.from + (a.to-a.from)*(v-a.low)/(a.high-a.low)
}

// shown reports whether a point can be drawn.
func (p Panel) shown(v Point) bool {
	finite := !math.IsNaN(v.X+v.Y) && !math.IsInf(v.X+v.Y, 0)
	return finite && (v.X > 0 || v.X == 0 && p.Even) && (v.Y > 0 || v.Y == 0 && !p.Log)
}

// draw draws a panel at the origin.
func (p Panel) draw(b *strings.Builder) {
	var xs, ys []float64
	for i, s := range p.Series {
		p.Series[i].Points = slices.DeleteFunc(slices.Clone(s.Points), func(v Point) bool { return !p.shown(v) })
		for _, v := range p.Series[i].Points {
			xs, ys = append(xs, v.X), append(ys, v.Y)
		}
	}
	fmt.Fprintf(b, `<text class="title" x="%d" y="%d">%s</text>`+"\n", left, above-lineHeight, escaped(p.Title))
	if len(xs) == 0 {
		fmt.Fprintf(b, `<text x="%d" y="%d">nothing to draw</text>`+"\n", left, above+lineHeight)
		return
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	x := axis{math.Log(xs[0]), math.Log(xs[len(xs)-1]), left + 10, width - right, true}
	if p.Even {
		xs = ticksOf(0, xs[len(xs)-1], false)
		x = axis{0, xs[len(xs)-1], left + 10, width - right, false}
	}
	y := axis{0, 0, panelHeight - below, above, p.Log}
	ticks := ticksOf(slices.Min(ys), slices.Max(ys), p.Log)
	y.low, y.high = ticks[0], ticks[len(ticks)-1]
	if p.Log {
		y.low, y.high = math.Log(y.low), math.Log(y.high)
	}
	for _, t := range ticks {
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`+
			`<text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y.at(t), width-right, y.at(t), left-8, y.at(t)+4, figure(t))
	}
	taken := math.Inf(-1) // by the tick before, in pixels
	for _, t := range xs {
		text := figure(t)
		half := float64(len(text)*charWidth) / 2
		if at := x.at(t); at-half > taken {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, panelHeight-below+lineHeight, text)
			taken = at + half + charWidth
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2,
		panelHeight-below+2*lineHeight, escaped(p.X))
	fmt.Fprintf(b, `<text x="16" y="%d" text-anchor="middle" transform="rotate(-90 16 %d)">%s</text>`+"\n",
		(above+panelHeight-below)/2, (above+panelHeight-below)/2, escaped(p.Y))
	p.drawSeries(b, x, y)
}

func (p Panel) drawSeries(b *strings.Builder, x, y axis) {
	hue := -1
	for i, s := range p.Series {
		if !s.Dashed || hue < 0 {
			hue++
		}
		class := fmt.Sprintf("s%d", hue%len(hues))
		var line []string
		for _, v := range s.Points {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x.at(v.X), y.at(v.Y)))
		}
		dashed := ""
		if s.Dashed {
			dashed = " dashed"
		}
		if !s.Dots {
			fmt.Fprintf(b, `<polyline class="line %s%s" points="%s"/>`+"\n", class, dashed, strings.Join(line, " "))
		}
		points := s.Points
		if s.Line {
			points = nil
		}
		for _, v := range points {
			fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="%d"><title>%s</title></circle>`+"\n", class, x.at(v.X),
				y.at(v.Y),
				map[bool]int{true: 2, false: 3}[s.Dashed], escaped(v.Text))
		}
		at := above + lineHeight*i + 4
		fmt.Fprintf(b, `<line class="line %s%s" x1="%d" y1="%d" x2="%d" y2="%d"/><text x="%d" y="%d">%s</text>`+"\n", class,
			dashed,
			width-right+14, at, width-right+34, at, width-right+40, at+4, escaped(s.Name))
	}
}

// ticksMost is how many parts an axis has at most.
const ticksMost = 6

// ticksOf returns round values from below the least to above the most of an axis, from 0 if it goes not by logarithms.
func ticksOf(least, most float64, log bool) (out []float64) {
	if log {
		for power := math.Floor(math.Log10(least)); ; power++ {
			for _, digit := range []float64{1, 2, 5} {
				t := digit * math.Pow(10, power)
				if t <= least {
					out = out[:0]
				}
				out = append(out, t)
				if t >= most && len(out) > 1 {
					return out
				}
			}
		}
	}
	if most <= 0 {
		most = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(most/ticksMost)))
	for _, times := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if most/step <= ticksMost {
			break
		}
		step *= times
	}
	for i := 0.0; ; i++ {
		out = append(out, i*step)
		if i*step >= most {
			return out
		}
	}
}

// figure writes a number of an axis.
func figure(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + " M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + " k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
