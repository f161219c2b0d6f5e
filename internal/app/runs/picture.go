package runs

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
	"thalweg/internal/lang/graph"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// Draw writes the picture of a run as SVG: its script with what has become of each node.
func Draw(w io.Writer, s *script.Script, d view.RunDetail, o DrawOptions) error {
	g := graph.FromScript(s, graph.Options{Fields: o.Fields})
	if !o.Plain {
		addRun(g, d)
	}
	if o.Roots {
		g.MarkRoots()
		for _, v := range g.Vertices {
			v.Outcome = ""
		}
	}
	g.Heading = headingOf(d)
	return graph.WriteSVG(w, g)
}

// DrawOptions say how a run is drawn.
type DrawOptions struct {
	Roots  bool // colours say which root rows come from, and not what has become of nodes
	Plain  bool // say nothing of what has become of nodes
	Fields bool // list the fields of tables
}

// headingOf says which run a picture is of.
func headingOf(d history.RunDetail) []string {
	first := fmt.Sprintf("run %d of %s: %s", d.Run.Run, filepath.Base(d.Script), d.Status)
	if d.Finished != nil {
		first += " in " + format.Span(milliseconds(d.Elapsed))
	}
	return []string{first, fmt.Sprintf("begun %s, %s, %s", d.Created.UTC().Format("2006-01-02 15:04 MST"),
		format.Counted(d.Rows, "row", "rows"), format.Size(d.Bytes))}
}

// addRun adds to a script's picture what has become of its nodes and gates in a run.
func addRun(g graph.Graph, d history.RunDetail) {
	drawn := map[*graph.Vertex]bool{}
	for _, n := range d.Nodes {
		v := g.Node(n.Node)
		if n.Type == gate.Kind {
			v = g.GateAt(gate.NameOf(n.Node))
		}
		if v == nil {
			continue
		}
		drawn[v] = true
		if f := d.Failure; n.Failure == nil && f != nil && f.Node == n.Node {
			n.Failure = f
		}
		v.Outcome = outcomeOf(n.Status)
		v.Lines = append(v.Lines, resultLines(n)...)
		if n.Failure != nil {
			v.Note = strings.TrimSpace(v.Note + "\n" + n.Failure.Text())
		}
	}
	for _, v := range g.Vertices {
		if v.Kind != graph.File && !drawn[v] {
			v.Outcome = graph.Open
			v.Lines = append(v.Lines, "not part of this run")
		}
	}
}

func outcomeOf(s state.Status) graph.Outcome {
	switch s {
	case state.Succeeded:
		return graph.Done
	case state.Running, state.Paused, state.Waiting:
		return graph.Busy
	case state.Failed, state.Invalidated:
		return graph.Failed
	}
	return graph.Open
}

// resultLines say what a node of a run has done.
func resultLines(n history.Node) []string {
	switch {
	case n.Type == gate.Kind:
		return []string{gateLine(n)}
	case n.ReusedFrom != nil:
		return []string{fmt.Sprintf("taken over from run %d", n.ReusedFrom.Run)}
	case n.ComputedIn != "" && n.Status == state.Succeeded:
		return []string{"computed in " + n.ComputedIn}
	case n.Started == nil:
		return []string{string(n.Status)}
	}
	lines := []string{fmt.Sprintf("%s rows in, %s out, %s", format.Count(n.RowsIn), format.Count(n.RowsOut),
		format.Span(milliseconds(n.Elapsed)))}
	if n.Status != state.Succeeded {
		lines = append(lines, fmt.Sprintf("%s: %d of %s done", n.Status, n.Done,
			format.Counted(int64(n.Batches), "batch",
				"batches")))
	}
	if n.Warnings > 0 {
		lines = append(lines, format.Counted(int64(n.Warnings), "warning", "warnings"))
	}
	if n.Failure != nil {
		lines = append(lines, folded(n.Failure.Text())...)
	}
	return lines
}

// gateLine says who has decided, or that somebody has to.
func gateLine(n history.Node) string {
	if n.Decision == nil {
		return string(n.Status)
	}
	verb := "rejected"
	if n.Decision.Approved {
		verb = "approved"
	}
	return strings.TrimSuffix(verb+" by "+n.Decision.Actor, " by ")
}

// How much of a failure stands in a box; the mouse shows all of it.
const (
	foldedLines = 4
	foldedRunes = 44
)

// folded breaks a text between words.
func folded(text string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > foldedRunes {
			lines, line = append(lines, line), ""
			if len(lines) == foldedLines {
				lines[foldedLines-1] += " …"
				return lines
			}
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
