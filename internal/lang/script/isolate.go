package script

import (
	"fmt"

	"thalweg/internal/base/document"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/expr"
)

// Isolation is part of a script, cut out to be run on made-up tables.
type Isolation struct {
	script *Script
	inside map[*Node]bool
	// Tables are the creators of tables that the nodes read from outside.
	Tables []*Node
}

// Isolate begins to cut the named nodes out of a script that was loaded for
// nothing else: Cut changes it.
func (s *Script) Isolate(names []string) (*Isolation, error) {
	i := &Isolation{script: s, inside: map[*Node]bool{}}
	for _, name := range names {
		n := s.Node(name)
		if n == nil {
			var known []string
			for _, other := range s.Nodes {
				known = append(known, other.Name)
			}
			return nil, &fault.Error{Kind: fault.Script,
				Message: fmt.Sprintf("the script has no node %s", document.Quote(name)),
				Hint:    document.DidYouMean(name, known)}
		}
		i.inside[n] = true
	}
	seen := map[*Node]bool{}
	for _, n := range s.Nodes {
		if !i.inside[n] {
			continue
		}
		for _, source := range sources(n) {
			if !i.inside[source] && !seen[source] {
				seen[source] = true
				i.Tables = append(i.Tables, source)
			}
		}
	}
	return i, nil
}

// Cut leaves nothing of the script but the nodes and, for each of Tables, a
// node that loads it from the Parquet file that path gives, whose columns
// have the names and types of the table's fields.
func (i *Isolation) Cut(path func(table string) string) error {
	var nodes []*Node
	for _, n := range i.Tables {
		if err := n.loadFrom(path(n.Table.Name)); err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	for _, n := range i.script.Nodes {
		if i.inside[n] {
			n.StartPolicy, n.Ephemeral = PolicyAuto, false // its rows are what a test looks at
			nodes = append(nodes, n)
		}
	}
	i.script.Nodes = nodes
	return nil
}

// loadFrom makes n a load of its table, which the nodes that read it know by
// pointer.
func (n *Node) loadFrom(path string) error {
	r := &FileReader{Pos: n.Pos, URLs: []FileURL{{URL: path, Pos: n.Pos}}, Parquet: true}
	types := map[string]expr.Type{}
	for _, f := range n.Table.Fields {
		r.Columns = append(r.Columns, &InputColumn{Name: f.Name, Pos: f.Pos, Type: f.Type, Parquet: f.Name,
			Nullable: f.Nullable})
		types[f.Name] = f.Type
	}
	for _, f := range n.Table.Fields {
		e, err := expr.Parse("r." + f.Name)
		if err != nil {
			return fmt.Errorf("refer to field %s: %w", f.Name, err)
		}
		mode := expr.Mode{Nullable: func(ref expr.Ref) bool { return n.Table.Field(ref.Field).Nullable }}
		if f.Expr, err = e.Check(expr.Scope{"r": types}, mode); err != nil {
			return fmt.Errorf("refer to field %s: %w", f.Name, err)
		}
	}
	n.Table.Having = nil
	*n = Node{Name: n.Name, Pos: n.Pos, Type: FileTable, StartPolicy: PolicyAuto, RerunPolicy: PolicyRerun, Files: r,
		Table: n.Table, Fingerprint: n.Fingerprint}
	return nil
}
