package graph

import "math"

// Layout is a picture as the places of its boxes and lines, in pixels from the upper left corner.
type Layout struct {
	Width, Height float64
	Boxes         []Box // in the order of the graph's vertices
	Lines         []Line
}

// Box is a vertex in its place; X and Y are its upper left corner.
type Box struct {
	*Vertex
	X, Y, Width, Height float64
}

// Line is an edge with the points that it passes, both ends included. It may begin where it leaves that of another
// edge.
type Line struct {
	Edge
	Points [][2]float64
}

// Place lays the graph out as WriteSVG does.
func Place(g Graph) Layout {
	p := layOut(g)
	out := Layout{Width: p.width, Height: p.height}
	at := make(map[*Vertex]*cell, len(g.Vertices))
	for _, rank := range p.ranks {
		for _, c := range rank {
			if c.v != nil {
				at[c.v] = c
			}
		}
	}
	for _, v := range g.Vertices {
		c := at[v]
		out.Boxes = append(out.Boxes, Box{Vertex: v, X: c.x - c.width/2, Y: c.y, Width: c.width, Height: c.height})
	}
	for _, r := range p.routes {
		line := Line{Edge: r.edge}
		cells := r.cells[r.own:]
		for i, c := range cells {
			if i > 0 {
				line.Points = append(line.Points, [2]float64{c.x, c.y})
			}
			if i < len(cells)-1 {
				line.Points = append(line.Points, [2]float64{c.x, c.y + c.height})
			}
		}
		line.Points = bends(line.Points)
		out.Lines = append(out.Lines, line)
	}
	return out
}

// bends leaves out the points at which a line that goes down goes straight on.
func bends(points [][2]float64) [][2]float64 {
	const same = 0.5
	kept := points[:1]
	for i := 1; i < len(points)-1; i++ {
		x := points[i][0]
		if math.Abs(kept[len(kept)-1][0]-x) > same || math.Abs(points[i+1][0]-x) > same {
			kept = append(kept, points[i])
		}
	}
	return append(kept, points[len(points)-1])
}

// MarkRoots sets the Root of each vertex, and returns the titles of the roots: the nodes that read no table. A vertex
// belongs to the root that its rows come from; tables that are looked up and gates do not count.
func (g Graph) MarkRoots() (titles []string) {
	flows := map[*Vertex][]*Vertex{}
	beside := map[*Vertex]*Vertex{} // the node of input files
	for _, e := range g.Edges {
		switch {
		case e.Lookup || e.Waits:
		case e.From.Kind == File:
			beside[e.From] = e.To
		default:
			flows[e.To] = append(flows[e.To], e.From)
		}
	}
	for _, v := range g.Vertices { // what is read comes first
		if v.Kind == Gate || beside[v] != nil {
			continue
		}
		if len(flows[v]) == 0 {
			titles = append(titles, v.Title)
			v.Root = len(titles)
			continue
		}
		v.Root = flows[v][0].Root
		for _, from := range flows[v] {
			if from.Root != v.Root {
				v.Root = 0
			}
		}
	}
	for file, node := range beside {
		file.Root = node.Root
	}
	return titles
}
