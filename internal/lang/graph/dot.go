package graph

import (
	"fmt"
	"io"
	"strings"
)

// WriteDOT writes the graph in Graphviz's language.
func WriteDOT(w io.Writer, g Graph) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  node [fontname=monospace, fontsize=11, shape=box, style=rounded];\n  edge "+
		"[fontname=monospace, fontsize=10];\n", quoteDOT(g.Title))
	for _, v := range g.Vertices {
		attributes := ""
		switch v.Kind {
		case File:
			attributes = ", shape=note, style=solid"
		case Manual:
			attributes = `, style="rounded,dashed", penwidth=2`
		case Gate:
			attributes = ", shape=hexagon, style=solid"
		}
		if v.Note != "" {
			attributes += ", tooltip=" + quoteDOT(v.Note)
		}
		fmt.Fprintf(&b, "  %s [label=%s%s];\n", quoteDOT(v.ID),
			quoteDOT(strings.Join(append([]string{v.Title}, v.Lines...), "\n")), attributes)
	}
	for _, e := range g.Edges {
		attributes := ""
		if e.Lookup {
			attributes = " [style=dashed]"
		}
		if e.Waits {
			attributes = " [style=dotted]"
		}
		fmt.Fprintf(&b, "  %s -> %s%s;\n", quoteDOT(e.From.ID), quoteDOT(e.To.ID), attributes)
	}
	b.WriteString("}\n")
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the graph: %w", err)
	}
	return nil
}

// quoteDOT quotes an identifier or label. A backslash would begin one of
// Graphviz's own escapes.
func quoteDOT(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f {
			return '\uFFFD'
		}
		return r
	}, s)
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
