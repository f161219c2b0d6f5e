package property

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// script is a random graph of nodes over random sources.
type script struct {
	seed    uint64
	sources []*source
	nodes   []node
	asks    map[string]*approval // by node; of most scripts none
}

// node is a step of a script: how it is written, and what it makes of its rows.
type node interface {
	id() string
	reads() []string // tables
	table() *creator // that it writes; nil: files
	spec(s *script, at place) object
	rows(tables map[string][][]any) [][]any
}

// place holds the paths of a variant's files.
type place struct {
	inputs *inputs
	out    string // directory
	python string // file of formulas
}

// creator is a table that a node writes.
type creator struct {
	name   string
	fields []outField
	having *formula
}

type outField struct {
	field
	formula  formula
	fallback any        // default_value; nil: none
	over     *aggregate // in place of the formula
}

func (c *creator) table() *creator { return c }

func (c *creator) columns() []field {
	out := make([]field, len(c.fields))
	for i, f := range c.fields {
		out[i] = f.field
	}
	return out
}

// spec is the table's part of its node, with the indexes that lookups want.
func (c *creator) spec(s *script) object {
	fields := object{}
	for _, f := range c.fields {
		o := object{{"expression", f.formula.src}, {"type", f.kind.String()}}
		if f.null {
			o = append(o, entry{"nullable", true})
		}
		if f.fallback != nil {
			o = append(o, entry{"default_value", defaultText(f.fallback)})
		}
		fields = append(fields, entry{f.name, o})
	}
	out := object{{"name", c.name}, {"fields", fields}}
	if c.having != nil {
		out = append(out, entry{"having", c.having.src})
	}
	indexes := object{}
	for _, n := range s.nodes {
		if i, ok := n.(indexer); ok && i.indexed() == c.name {
			name, text := i.index()
			indexes = append(indexes, entry{name, text})
		}
	}
	if len(indexes) > 0 {
		out = append(out, entry{"indexes", indexes})
	}
	return out
}

// indexer is a node that needs an index on a table.
type indexer interface {
	indexed() string
	index() (name, text string)
}

// row computes the fields of one row; ok says whether having lets it through.
func (c *creator) row(e *env) (row []any, ok bool) {
	row = make([]any, len(c.fields))
	for i, f := range c.fields {
		row[i] = f.formula.eval(e)
	}
	return row, holds(c.having, &env{w: row})
}

func (s *script) outputs() []*output {
	var out []*output
	for _, n := range s.nodes {
		if o, ok := n.(*output); ok {
			out = append(out, o)
		}
	}
	return out
}

// tables computes what the script makes, by tables and output nodes.
func (s *script) tables() map[string][][]any {
	out := map[string][][]any{}
	for _, src := range s.sources {
		out["source "+src.name] = src.rows
	}
	for _, n := range s.nodes {
		name := n.id()
		if c := n.table(); c != nil {
			name = c.name
		}
		out[name] = n.rows(out)
	}
	return out
}

// text is the script as JSON.
func (s *script) text(at place) (string, error) {
	nodes := object{}
	for _, n := range s.nodes {
		nodes = append(nodes, entry{n.id(), s.asks[n.id()].put(n.spec(s, at), n.table() != nil)})
	}
	text, err := marshal(object{{"nodes", nodes}})
	if err != nil {
		return "", fmt.Errorf("write script %d: %w", s.seed, err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), "", " "); err != nil {
		return "", fmt.Errorf("indent script %d: %w", s.seed, err)
	}
	return b.String(), nil
}

// marshal writes a value as JSON, < and > as they are.
func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimRight(b.Bytes(), "\n")), nil
}
