package graph

import (
	"fmt"
	"path"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/lang/script"
)

// Kind says how a vertex is drawn.
type Kind string

// The kinds of vertices.
const (
	Step   Kind = "step"   // a node that runs by itself
	Manual Kind = "manual" // a node that waits for its name
	File   Kind = "file"   // input and output files
	Gate   Kind = "gate"   // people decide there
)

// Outcome selects the colour of a vertex in the picture of a run.
type Outcome string

// What has become of a node; without one it is drawn as part of a script.
const (
	Open   Outcome = "open"   // nothing has been done yet, or it was stopped
	Busy   Outcome = "busy"   // at work, or somebody has to decide
	Done   Outcome = "done"   // its rows are there
	Failed Outcome = "failed" // or declared invalid
)

// Graph is the content of a picture.
type Graph struct {
	Title    string
	Heading  []string // lines above the picture
	Vertices []*Vertex
	Edges    []Edge
}

// Vertex is a box.
type Vertex struct {
	ID    string // unique
	Kind  Kind
	Title string
	Lines []string // below the title
	Note  string   // shown when the mouse rests on it
	Tags  []string // of the node

	Outcome Outcome // of the node in a run
	Root    int     // number of the root that it belongs to, from 1; 0: of none or several, or not asked for
}

// Node is the vertex of a node, or nil.
func (g Graph) Node(name string) *Vertex { return g.find("n:" + name) }

// GateAt is the vertex of a gate, or nil.
func (g Graph) GateAt(name string) *Vertex { return g.find("g:" + name) }

func (g Graph) find(id string) *Vertex {
	for _, v := range g.Vertices {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// Edge goes from what makes rows to what reads them.
type Edge struct {
	From, To *Vertex
	Lookup   bool // the table is looked up
	Waits    bool // nothing flows: one waits for the other
}

// Options of a picture.
type Options struct {
	Fields bool // list the fields and indexes of tables
}

// FromScript tells what the picture of a script shows.
func FromScript(s *script.Script, o Options) Graph {
	g := Graph{Title: path.Base(s.Path)}
	of := map[*script.Node]*Vertex{}
	gates := map[*script.Gate]*Vertex{}
	for _, step := range s.Steps(s.Topological()) {
		n := step.Node
		if n == nil {
			gates[step.Gate] = gateVertex(step.Gate)
			g.Vertices = append(g.Vertices, gates[step.Gate])
			continue
		}
		v := &Vertex{ID: "n:" + n.Name, Kind: Step, Title: n.Name, Note: n.Desc, Lines: nodeLines(n, o),
			Tags: n.Tags}
		if n.StartPolicy == script.PolicyManual {
			v.Kind = Manual
		}
		of[n] = v
		if n.Files != nil {
			f := inputVertex(n)
			g.Vertices = append(g.Vertices, f)
			g.Edges = append(g.Edges, Edge{From: f, To: v})
		}
		g.Vertices = append(g.Vertices, v)
		if n.Out != nil {
			f := &Vertex{ID: "w:" + n.Name, Kind: File, Title: baseName(n.Out.URL), Note: address.Redact(n.Out.URL)}
			g.Vertices = append(g.Vertices, f)
			g.Edges = append(g.Edges, Edge{From: v, To: f})
		}
	}
	for _, n := range s.Nodes {
		for _, source := range n.Sources(s) {
			e := Edge{From: of[source], To: of[n]}
			if n.Lookup != nil && n.Lookup.Index.Node == source && (!n.Reader.Reads(source) || hasEdge(g.Edges, e)) {
				e.Lookup = true
			}
			g.Edges = append(g.Edges, e)
		}
	}
	for _, gate := range s.Gates {
		for _, n := range gate.Inputs() {
			g.Edges = append(g.Edges, Edge{From: of[n], To: gates[gate], Waits: true})
		}
		for _, n := range gate.Guards {
			g.Edges = append(g.Edges, Edge{From: gates[gate], To: of[n], Waits: true})
		}
	}
	return g
}

// gateVertex says who is asked for what.
func gateVertex(g *script.Gate) *Vertex {
	v := &Vertex{ID: "g:" + g.Name, Kind: Gate, Title: "approval " + g.Name, Note: g.Message}
	if len(g.By) > 0 {
		v.Lines = append(v.Lines, "by "+strings.Join(g.By, " or "))
	}
	if !g.Always {
		v.Lines = append(v.Lines, "if a check fails")
	}
	for _, a := range g.Answers {
		v.Lines = append(v.Lines, "? "+a.Name+" "+a.Type)
	}
	return v
}

func hasEdge(edges []Edge, e Edge) bool {
	for _, x := range edges {
		if x.From == e.From && x.To == e.To {
			return true
		}
	}
	return false
}

func lookupLine(l *script.Lookup) string {
	line := "inner"
	if l.Left {
		line = "left"
	}
	if l.Group {
		line += ", grouped"
	}
	return line + ": " + l.Index.Node.Table.Name + " by " + strings.Join(l.JoinOn, ", ")
}

// inputVertex stands for all files of a node.
func inputVertex(n *script.Node) *Vertex {
	v := &Vertex{ID: "r:" + n.Name, Kind: File}
	urls := n.Files.URLs
	if len(urls) == 0 {
		v.Title = "no files"
		return v
	}
	v.Title, v.Note = baseName(urls[0].URL), address.Redact(urls[0].URL)
	if len(urls) > 1 {
		v.Lines = []string{fmt.Sprintf("and %d more", len(urls)-1)}
		v.Note = fmt.Sprintf("%s … %s (%d files)", v.Note, address.Redact(urls[len(urls)-1].URL), len(urls))
	}
	return v
}

func baseName(url string) string {
	name := address.Redact(url)
	name, _, _ = strings.Cut(name, "?")
	return path.Base(name)
}

// nodeLines says what a node does and makes.
func nodeLines(n *script.Node, o Options) []string {
	kind := string(n.Type)
	switch {
	case n.PyCalc != nil:
		kind = script.ProcPyCalc
	case n.Tag != nil:
		kind = script.ProcTag
	}
	if n.StartPolicy == script.PolicyManual {
		kind += ", manual"
	}
	if n.Ephemeral {
		kind += ", ephemeral"
	}
	lines := []string{kind}
	if n.Lookup != nil {
		lines = append(lines, lookupLine(n.Lookup))
	}
	if n.Table == nil {
		return lines
	}
	lines = append(lines, "→ "+n.Table.Name)
	if !o.Fields {
		return lines
	}
	for _, f := range n.Table.Fields {
		lines = append(lines, f.Name+" "+f.Type.String())
	}
	for _, ix := range n.Table.Indexes {
		lines = append(lines, indexLine(ix))
	}
	return lines
}

func indexLine(ix *script.Index) string {
	keys := make([]string, len(ix.Key))
	for i, k := range ix.Key {
		keys[i] = k.Field
	}
	unique := ""
	if ix.Unique {
		unique = "unique "
	}
	return fmt.Sprintf("%s%s (%s)", unique, ix.Name, strings.Join(keys, ", "))
}
