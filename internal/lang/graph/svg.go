package graph

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// style follows the reader's preference for light or dark.
const style = `
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1c2733; text-anchor: middle; }
.title { font-weight: bold; }
rect, .paper { fill: #eef4fa; stroke: #5b7fa3; }
.paper { fill: #fbf7ea; stroke: #a8935a; }
.gate rect { fill: #f6e6ee; stroke: #a35b80; }
.open rect { fill: #f2f3f5; stroke: #8b959f; }
.busy rect { fill: #fdf3d8; stroke: #b48a1e; }
.done rect { fill: #e7f4e8; stroke: #4f9257; }
.failed rect { fill: #fbe4e1; stroke: #b8473c; stroke-width: 2; }
.heading { text-anchor: start; }
.manual rect { stroke-width: 3; stroke-dasharray: 7 3; }
.edge { fill: none; stroke: #5b7fa3; stroke-width: 1.4; }
.lookup { stroke-dasharray: 5 4; }
.waits { stroke-dasharray: 2 3; }
#arrow path { fill: #5b7fa3; }
@media (prefers-color-scheme: dark) {
  text { fill: #dce6ef; }
  rect { fill: #1d2a36; }
  .gate rect { fill: #36202b; }
  .open rect { fill: #22272c; }
  .busy rect { fill: #38301a; }
  .done rect { fill: #1b2f20; }
  .failed rect { fill: #3d1f1c; }
  .paper { fill: #2d2a1e; }
}
`

// rootHues are the colours of roots, which come again behind the last; boxes without an outcome have them.
var rootHues = []int{210, 30, 130, 280, 0, 60, 180, 330}

// rootClass is the class of the vertices of a root; "": it has none.
func rootClass(root int) string {
	if root == 0 {
		return ""
	}
	return fmt.Sprintf("root%d", (root-1)%len(rootHues)+1)
}

// rootStyle has the colours of roots; nothing if no vertex has one.
func rootStyle(g Graph) string {
	if !slices.ContainsFunc(g.Vertices, func(v *Vertex) bool { return v.Root > 0 }) {
		return ""
	}
	var b strings.Builder
	for i, hue := range rootHues {
		class := rootClass(i + 1)
		fmt.Fprintf(&b, ".%s rect, .%s .paper { fill: hsl(%d 60%% 90%%); stroke: hsl(%d 45%% 45%%); }\n", class, class, hue, hue)
	}
	b.WriteString("@media (prefers-color-scheme: dark) {\n")
	for i, hue := range rootHues {
		class := rootClass(i + 1)
		fmt.Fprintf(&b, "  .%s rect, .%s .paper { fill: hsl(%d 35%% 18%%); }\n", class, class, hue)
	}
	b.WriteString("}\n")
	return b.String()
}

// WriteSVG draws the graph.
func WriteSVG(w io.Writer, g Graph) error {
	p := layOut(g)
	above := headingHeight(g.Heading)
	width, height := max(p.width, headingWidth(g.Heading)), p.height+above
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" `+
		`role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", escape(g.Title), style+rootStyle(g))
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" ` +
		`orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	writeHeading(&b, g.Heading)
	if above > 0 {
		fmt.Fprintf(&b, `<g transform="translate(%.1f %.1f)">`+"\n", (width-p.width)/2, above)
	}
	for _, r := range p.routes {
		writeRoute(&b, r)
	}
	for _, rank := range p.ranks {
		for _, c := range rank {
			if c.v != nil {
				writeBox(&b, c)
			}
		}
	}
	if above > 0 {
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

func headingHeight(lines []string) float64 {
	if len(lines) == 0 {
		return 0
	}
	return margin + float64(len(lines))*lineHeight
}

func headingWidth(lines []string) float64 {
	longest := 0
	for _, l := range lines {
		longest = max(longest, utf8.RuneCountInString(l))
	}
	return float64(longest)*charWidth + 2*margin
}

// writeHeading writes lines at the top, the first as a title.
func writeHeading(b *strings.Builder, lines []string) {
	class := "heading title"
	for i, l := range lines {
		fmt.Fprintf(b, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, margin,
			margin+(float64(i)+0.75)*lineHeight, escape(l))
		class = "heading"
	}
}

// writeRoute draws an edge from rank to rank, vertical at each end.
func writeRoute(b *strings.Builder, r route) {
	class := "edge"
	if r.edge.Lookup {
		class += " lookup"
	}
	if r.edge.Waits {
		class += " waits"
	}
	cells := r.cells[r.own:]
	first := cells[0]
	y := first.y + first.height
	fmt.Fprintf(b, `<path class="%s" marker-end="url(#arrow)" d="M%.1f %.1f`, class, first.x, y)
	for i, c := range cells[1:] {
		bend := (c.y - y) / 2
		fmt.Fprintf(b, "C%.1f %.1f %.1f %.1f %.1f %.1f", cells[i].x, y+bend, c.x, c.y-bend, c.x, c.y)
		if c.v == nil {
			fmt.Fprintf(b, "L%.1f %.1f", c.x, c.y+c.height)
		}
		y = c.y + c.height
	}
	b.WriteString("\"/>\n")
}

func writeBox(b *strings.Builder, c *cell) {
	left := c.x - c.width/2
	fmt.Fprintf(b, `<g class="%s"><title>%s</title>`, strings.Join(strings.Fields(string(c.v.Kind)+" "+string(c.v.Outcome)+" "+rootClass(c.v.Root)), " "),
		escape(strings.TrimSpace(c.v.Title+"\n"+c.v.Note)))
	if c.v.Kind == File {
		const fold = 9
		fmt.Fprintf(b, `<path class="paper" d="M%.1f %.1fh%.1fl%d %dv%.1fh-%.1fz"/>`, left, c.y,
			c.width-fold, fold, fold, c.height-fold, c.width)
	} else {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="6"/>`, left, c.y, c.width, c.height)
	}
	y := c.y + boxPadding/2 + lineHeight*0.75
	fmt.Fprintf(b, `<text class="title" x="%.1f" y="%.1f">%s</text>`, c.x, y, escape(cut(c.v.Title)))
	for _, line := range c.v.Lines {
		y += lineHeight
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f">%s</text>`, c.x, y, escape(cut(line)))
	}
	b.WriteString("</g>\n")
}

// escape makes text of a script harmless in XML, characters that XML cannot
// hold included.
func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return "" // a strings.Builder takes everything
	}
	return b.String()
}
