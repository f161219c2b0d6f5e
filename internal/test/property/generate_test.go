package property

import (
	"fmt"
)

// builder adds nodes to a script: each one is computed at once, so that no
// formula without a value and no table that grew too large gets into it.
type builder struct {
	gen
	script *script
	tables map[string][][]any
	made   []*creator // tables so far
}

// generate makes the script of a seed.
func generate(seed uint64) *script { return generateWith(seed, func(*builder) {}) }

// generateWith makes it with tables that more adds, before those that nobody
// reads are written to files.
func generateWith(seed uint64, more func(*builder)) *script {
	b := &builder{gen: newGen(seed, 0), script: &script{seed: seed}, tables: map[string][][]any{}}
	for i := range pick(b.gen, 1, 1, 2, 2, 2, 3) {
		src := b.source(fmt.Sprintf("s%d", i), b.size())
		b.script.sources = append(b.script.sources, src)
		b.tables["source "+src.name] = src.rows
		b.try(func() node { return b.load(src) })
	}
	for range 1 + b.IntN(3) {
		b.try(b.step)
	}
	more(b)
	read := map[string]bool{}
	for _, n := range b.script.nodes {
		for _, table := range n.reads() {
			read[table] = true
		}
	}
	for _, c := range b.made {
		if !read[c.name] || b.oneIn(8) {
			name := "out_" + c.name
			b.try(func() node { return b.output(name, c) })
		}
	}
	return b.script
}

// size is the number of rows of a source: mostly few; now and then so many that
// threads share them.
func (b *builder) size() int {
	switch n := b.IntN(100); {
	case n < 6:
		return b.IntN(2)
	case n < 65:
		return 2 + b.IntN(60)
	case n < 98:
		return 60 + b.IntN(300)
	}
	return 3000 + b.IntN(5000)
}

const (
	tries       = 30
	pythonShare = 60 // one node in so many is of Python, whose processes are slow to start
)

// try adds a node that can be computed.
func (b *builder) try(draw func() node) {
	for range tries {
		var n node
		var rows [][]any
		if refusedBy(func() {
			n = draw()
			rows = n.rows(b.tables)
		}) || len(rows) > maxRows {
			continue
		}
		name := n.id()
		if c := n.table(); c != nil {
			name = c.name
			b.made = append(b.made, c)
		}
		b.tables[name] = rows
		b.script.nodes = append(b.script.nodes, n)
		return
	}
}

func (b *builder) creator(fields []outField) *creator {
	return &creator{name: fmt.Sprintf("t%d", len(b.made)), fields: fields, having: b.having(fields)}
}

func (b *builder) load(src *source) node {
	var fields []field
	for _, c := range src.columns {
		fields = append(fields, c.field)
	}
	return &load{creator: b.creator(b.fields(scope{fields: fieldsOf("r", fields)}, false)), source: src.name}
}

// step draws a node over tables that there are.
func (b *builder) step() node {
	from := pick(b.gen, b.made...)
	sc := scope{fields: fieldsOf("r", from.columns())}
	if b.oneIn(pythonShare) && len(b.tables[from.name]) < 1000 {
		return b.pythonNode(from)
	}
	switch b.IntN(11) {
	case 0, 1:
		return &project{creator: b.creator(b.fields(sc, false)), from: from.name}
	case 2:
		return b.tagging(from, sc)
	case 3, 4:
		c := b.creator(b.fields(sc, false))
		c.having = nil
		return &distinct{creator: c, from: from.name, key: b.key(c.columns())}
	case 5:
		return b.query(from)
	}
	return b.lookup(from, pick(b.gen, b.made...))
}

func (b *builder) tagging(from *creator, sc scope) node {
	n := &tagging{from: from.name}
	for i := range 1 + b.IntN(4) {
		n.tags = append(n.tags, pick(b.gen, "z", "a", "Tag ", "m")+fmt.Sprint(i))
		n.when = append(n.when, b.condition(scope{fields: sc.fields, exact: true}, 2))
	}
	fields := b.fields(sc, false)
	tag := formula{src: "p.tag", kind: stringKind, eval: func(e *env) any { return e.p[0] }}
	n.creator = b.creator(append(fields, outField{field: field{"tag", stringKind, false}, formula: tag}))
	return n
}

// lookup draws a join on fields of equal types; where there are none, another node.
func (b *builder) lookup(from, to *creator) node {
	n := &lookup{from: from.name, to: to.name, left: b.oneIn(2), group: b.oneIn(2), nullsMeet: b.oneIn(4),
		toFields: to.columns()}
	left := from.columns()
	for _, item := range b.key(n.toFields) {
		for _, i := range b.Perm(len(left)) {
			if left[i].kind == n.toFields[item.at].kind {
				n.on, n.onAt, n.key = append(n.on, left[i]), append(n.onAt, i), append(n.key, item)
				break
			}
		}
	}
	if len(n.key) == 0 {
		panic(refuse{})
	}
	r, l := fieldsOf("r", left), fieldsOf("l", n.toFields)
	both := scope{fields: append(append([]formula{}, r...), l...)}
	if b.oneIn(3) {
		f := b.condition(scope{fields: l, exact: true}, 2)
		n.filter = &f
	}
	if n.group {
		n.creator = b.creator(b.aggregates(r, both))
		return n
	}
	n.creator = b.creator(b.fields(both, n.left))
	for i, f := range n.fields {
		if n.left && f.formula.right && b.oneIn(3) {
			n.fields[i].fallback = b.fallback(f.kind, "")
		}
	}
	return n
}
