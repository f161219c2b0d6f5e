package graph

import (
	"math"
	"sort"
	"unicode/utf8"
)

// Measures of the picture, in pixels.
const (
	charWidth   = 7.0 // of the picture's font; a little more than most letters take
	lineHeight  = 16.0
	boxPadding  = 10.0
	boxWidthMin = 90.0
	gapX        = 28.0
	gapY        = 46.0
	dummyWidth  = 8.0 // what an edge takes where it passes a rank
	margin      = 16.0
	lineRunes   = 46 // a longer line is cut
)

// passesMax is the number of points in ranks between, beyond which the edges from a vertex share theirs: where all
// nodes of a deep script look up the first one, it would grow with the square of the nodes.
const passesMax = 5_000

// orderSweeps and placeSweeps are the numbers of passes over all ranks; more changed no picture of the scripts tried.
const (
	orderSweeps = 16
	placeSweeps = 24
)

// cell is a vertex in its place, or a point through which an edge passes.
type cell struct {
	v             *Vertex // nil: an edge passes
	rank          int
	x, y          float64 // centre, top
	width, height float64
	up, down      []*cell
	key           float64 // for ordering
}

// route is an edge with the cells that it passes, ends included.
type route struct {
	edge  Edge
	cells []*cell
	own   int // from this cell on the line is not that of another edge
}

// picture is a laid-out graph.
type picture struct {
	ranks         [][]*cell
	routes        []route
	shared        map[pass]*cell // nil: each edge passes by itself
	width, height float64
}

// pass is where edges from a cell pass a rank.
type pass struct {
	from *cell
	rank int
}

// layOut puts the vertices into ranks, data flowing down, orders each rank so
// that few edges cross (barycentres), and moves cells towards their
// neighbours as far as the others leave room.
func layOut(g Graph) *picture {
	p := &picture{}
	cells := make(map[*Vertex]*cell, len(g.Vertices))
	for v, rank := range ranksOf(g) {
		cells[v] = &cell{v: v, rank: rank, width: boxWidth(v), height: boxHeight(v)}
	}
	for _, v := range g.Vertices {
		p.add(cells[v])
	}
	passes := 0
	for _, e := range g.Edges {
		passes += max(0, cells[e.To].rank-cells[e.From].rank-1)
	}
	if passes > passesMax {
		p.shared = map[pass]*cell{}
	}
	for _, e := range g.Edges {
		p.routes = append(p.routes, p.route(e, cells[e.From], cells[e.To]))
	}
	p.order()
	p.place()
	return p
}

func (p *picture) add(c *cell) {
	for len(p.ranks) <= c.rank {
		p.ranks = append(p.ranks, nil)
	}
	p.ranks[c.rank] = append(p.ranks[c.rank], c)
}

// route links two cells by way of one cell in each rank between them.
func (p *picture) route(e Edge, from, to *cell) route {
	r := route{edge: e, cells: []*cell{from}}
	last := from
	link := func(c *cell) { last.down, c.up, last = append(last.down, c), append(c.up, last), c }
	for at := from.rank + 1; at < to.rank; at++ {
		c := p.shared[pass{from, at}]
		if c == nil {
			c = &cell{rank: at, width: dummyWidth}
			p.add(c)
			link(c)
			if p.shared != nil {
				p.shared[pass{from, at}] = c
			}
		} else {
			r.own = len(r.cells)
		}
		last = c
		r.cells = append(r.cells, c)
	}
	link(to)
	r.cells = append(r.cells, to)
	return r
}

// ranksOf puts each vertex behind all that it reads, and what reads nothing
// right before its first reader. Vertices come in topological order.
func ranksOf(g Graph) map[*Vertex]int {
	rank := make(map[*Vertex]int, len(g.Vertices))
	in, out := map[*Vertex][]*Vertex{}, map[*Vertex][]*Vertex{}
	for _, e := range g.Edges {
		in[e.To], out[e.From] = append(in[e.To], e.From), append(out[e.From], e.To)
	}
	for _, v := range g.Vertices {
		rank[v] = 0
		for _, from := range in[v] {
			rank[v] = max(rank[v], rank[from]+1)
		}
	}
	// From the end, so that a file moves with the node that reads it.
	for i := len(g.Vertices) - 1; i >= 0; i-- {
		v := g.Vertices[i]
		if len(out[v]) == 0 || len(in[v]) > 1 || len(in[v]) == 1 && in[v][0].Kind != File {
			continue
		}
		nearest := math.MaxInt
		for _, to := range out[v] {
			nearest = min(nearest, rank[to]-1)
		}
		rank[v] = nearest
	}
	return rank
}

func boxWidth(v *Vertex) float64 {
	longest := utf8.RuneCountInString(cut(v.Title))
	for _, l := range v.Lines {
		longest = max(longest, utf8.RuneCountInString(cut(l)))
	}
	return max(float64(longest)*charWidth+2*boxPadding, boxWidthMin)
}

func boxHeight(v *Vertex) float64 { return float64(1+len(v.Lines))*lineHeight + boxPadding }

// cut shortens a line to what a box holds.
func cut(s string) string {
	runes := []rune(s)
	if len(runes) <= lineRunes {
		return s
	}
	return string(runes[:lineRunes-1]) + "…"
}

// order sorts the ranks, down and up in turn, and keeps the best.
func (p *picture) order() {
	best, fewest := p.snapshot(), p.crossings()
	for sweep := 0; sweep < orderSweeps && fewest > 0; sweep++ {
		if sweep%2 == 0 {
			for _, rank := range p.ranks {
				sortRank(rank, func(c *cell) []*cell { return c.up })
			}
		} else {
			for i := len(p.ranks) - 1; i >= 0; i-- {
				sortRank(p.ranks[i], func(c *cell) []*cell { return c.down })
			}
		}
		if n := p.crossings(); n < fewest {
			best, fewest = p.snapshot(), n
		}
	}
	p.ranks = best
	p.number()
}

func (p *picture) snapshot() [][]*cell {
	out := make([][]*cell, len(p.ranks))
	for i, rank := range p.ranks {
		out[i] = append([]*cell{}, rank...)
	}
	p.number()
	return out
}

// number sets the cells' x to their positions in their ranks.
func (p *picture) number() {
	for _, rank := range p.ranks {
		for i, c := range rank {
			c.x = float64(i)
		}
	}
}

// sortRank orders a rank by the mean position of each cell's neighbours;
// cells without any stay where they are.
func sortRank(rank []*cell, neighbours func(*cell) []*cell) {
	for i, c := range rank {
		c.key = float64(i)
		if near := neighbours(c); len(near) > 0 {
			c.key = mean(near)
		}
	}
	sort.SliceStable(rank, func(i, j int) bool { return rank[i].key < rank[j].key })
	for i, c := range rank {
		c.x = float64(i)
	}
}

func mean(cells []*cell) float64 {
	sum := 0.0
	for _, c := range cells {
		sum += c.x
	}
	return sum / float64(len(cells))
}

// crossings counts pairs of edges that cross between neighbouring ranks:
// inversions of their lower ends when sorted by their upper ends.
func (p *picture) crossings() int {
	p.number()
	total := 0
	for _, rank := range p.ranks {
		var ends []int
		for _, c := range rank {
			own := make([]int, len(c.down))
			for i, d := range c.down {
				own[i] = int(d.x)
			}
			sort.Ints(own)
			ends = append(ends, own...)
		}
		total += inversions(ends)
	}
	return total
}

// inversions counts pairs in the wrong order, and sorts.
func inversions(a []int) int {
	if len(a) < 2 {
		return 0
	}
	left, right := append([]int{}, a[:len(a)/2]...), append([]int{}, a[len(a)/2:]...)
	n := inversions(left) + inversions(right)
	for i := range a {
		if len(right) == 0 || len(left) > 0 && left[0] <= right[0] {
			a[i], left = left[0], left[1:]
		} else {
			n += len(left)
			a[i], right = right[0], right[1:]
		}
	}
	return n
}

// place gives the cells their coordinates.
func (p *picture) place() {
	for _, rank := range p.ranks {
		x := 0.0
		for _, c := range rank {
			c.x = x + c.width/2
			x += c.width + gapX
		}
	}
	for sweep := range placeSweeps {
		if sweep%2 == 0 {
			for _, rank := range p.ranks {
				settle(rank, func(c *cell) []*cell { return c.up })
			}
		} else {
			for i := len(p.ranks) - 1; i >= 0; i-- {
				settle(p.ranks[i], func(c *cell) []*cell { return c.down })
			}
		}
	}
	left, right, y := math.Inf(1), math.Inf(-1), margin
	for _, rank := range p.ranks {
		height := 0.0
		for _, c := range rank {
			c.y = y
			height = max(height, c.height)
			left, right = min(left, c.x-c.width/2), max(right, c.x+c.width/2)
		}
		for _, c := range rank {
			if c.v == nil {
				c.height = height
			}
		}
		y += height + gapY
	}
	if len(p.ranks) == 0 {
		left, right, y = 0, 0, margin+gapY
	}
	for _, rank := range p.ranks {
		for _, c := range rank {
			c.x += margin - left
		}
	}
	p.width, p.height = right-left+2*margin, y-gapY+margin
}

// settle moves a rank's cells as near to the mean of their neighbours as
// their order and widths allow: least squares under minimal distances, which
// is isotonic regression (pool adjacent violators) once the distances are
// taken off.
func settle(rank []*cell, neighbours func(*cell) []*cell) {
	type block struct {
		sum, weight float64
		cells       int
	}
	var blocks []block
	offset := make([]float64, len(rank))
	for i, c := range rank {
		if i > 0 {
			offset[i] = offset[i-1] + rank[i-1].width/2 + gapX + c.width/2
		}
		want, weight := c.x, 0.1 // without neighbours: rather stay
		if near := neighbours(c); len(near) > 0 {
			want, weight = mean(near), 1
			if c.v == nil {
				weight = 4 // edges that pass should be straight
			}
		}
		b := block{(want - offset[i]) * weight, weight, 1}
		for len(blocks) > 0 && blocks[len(blocks)-1].sum/blocks[len(blocks)-1].weight > b.sum/b.weight {
			last := blocks[len(blocks)-1]
			b = block{b.sum + last.sum, b.weight + last.weight, b.cells + last.cells}
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	i := 0
	for _, b := range blocks {
		for range b.cells {
			rank[i].x = b.sum/b.weight + offset[i]
			i++
		}
	}
}
