package script

import (
	"fmt"
	"slices"
	"strings"
)

// Why an ephemeral table is not stored, and what that takes away: docs/ephemeral.md.

// NotEphemeral says why n's table cannot be computed inside the node that
// reads it; "" if it can.
func (s *Script) NotEphemeral(n *Node) string {
	if why := n.mustBeStored(); why != "" {
		return why
	}
	for _, g := range s.Gates {
		if g.Writer == n || slices.Contains(g.Show, n) {
			return "gate " + g.Name + " shows it"
		}
	}
	readers := s.readers()[n]
	switch {
	case len(readers) == 0:
		return "no node reads its table"
	case len(readers) > 1:
		return "its table is read more than once: by " + strings.Join(names(readers), ", ")
	}
	return readers[0].cannotCompute(n)
}

// EphemeralReader is the node inside which an ephemeral node's rows are computed.
func (s *Script) EphemeralReader(n *Node) *Node {
	for _, reader := range s.readers()[n] {
		return reader
	}
	return nil
}

// mustBeStored says what of n by itself needs its rows to be stored.
func (n *Node) mustBeStored() string {
	switch {
	case n.Table == nil:
		return "it writes a file, not a table"
	case n.PyCalc != nil, n.PyTable != nil:
		return "it computes in Python"
	case n.Query != nil:
		return "it is a query, which DuckDB computes as a whole"
	case n.StartPolicy == PolicyManual:
		return "somebody starts it by hand"
	case n.BadRows != nil:
		return "it keeps bad rows beside its table"
	case len(n.Checks) > 0:
		return "its rows are checked"
	}
	for _, ix := range n.Table.Indexes {
		if ix.Unique && n.Type != Distinct {
			return fmt.Sprintf("its rows are checked: index %s is unique", ix.Name)
		}
	}
	return ""
}

// cannotCompute says what keeps n, the only reader of source's table, from
// computing it.
func (n *Node) cannotCompute(source *Node) string {
	reads := n.Reader.Reads(source) || n.Lookup != nil && n.Lookup.Index != nil && n.Lookup.Index.Node == source
	switch {
	case n.Query != nil && !reads:
		return fmt.Sprintf("node %s reads it in a query", n.Name)
	case !reads:
		return fmt.Sprintf("a check of node %s reads it", n.Name)
	case n.Reader.Reads(source) && len(n.Reader.Creators) > 1:
		return fmt.Sprintf("node %s reads it as one with other tables", n.Name)
	case n.PyCalc != nil, n.PyTable != nil:
		return fmt.Sprintf("node %s gives its rows to Python", n.Name)
	case n.StartPolicy == PolicyManual:
		return fmt.Sprintf("somebody looks at it before starting node %s by hand", n.Name)
	case n.BadRows != nil:
		return fmt.Sprintf("node %s keeps bad rows, and says where they are in it", n.Name)
	case n.Out != nil && len(n.Checks) > 0:
		return fmt.Sprintf("node %s checks the rows of its file before it writes them", n.Name)
	case n.Out != nil && n.Out.PerBatch():
		return fmt.Sprintf("node %s shares its rows out to several files", n.Name)
	case n.Policy != nil && !n.Policy.BuiltIn():
		return fmt.Sprintf("the dependency policy %s of node %s may read it from another run", n.Policy.Name, n.Name)
	}
	return ""
}

func names(nodes []*Node) []string {
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Name
	}
	return out
}

// ephemeral refuses ephemeral: true where the table has to be stored.
func (l *loader) ephemeral() {
	for _, d := range l.nodes {
		if !d.node.Ephemeral {
			continue
		}
		if why := l.script.NotEphemeral(d.node); why != "" {
			l.ErrorAt(d.o.get("ephemeral"), d.o.keyPath("ephemeral"), "the table of node %s cannot be ephemeral: %s",
				d.node.Name, why).Hint =
				"leave ephemeral out: the table is stored then"
		}
	}
}
