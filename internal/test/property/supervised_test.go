package property

import (
	"fmt"
	"strconv"
)

// approval is a script's question to people about a table, or before a file is written.
type approval struct {
	always bool    // else only a check that has failed does
	check  object  // with severity approval; nil: none
	answer *answer // nil: nothing is to be answered
}

// answer is a value that is asked for, and what is answered.
type answer struct {
	name, value string
	number      bool // an int; else a text
}

// put adds what is asked to a node as it is written.
func (a *approval) put(spec object, table bool) object {
	if a == nil {
		return spec
	}
	if a.check != nil {
		spec = append(spec, entry{"checks", []object{a.check}})
	}
	if !a.always {
		return spec
	}
	asked := object{{"message", "Is this right?"}}
	if w := a.answer; w != nil {
		kind, otherwise := "string", any("nobody said")
		if w.number {
			kind, otherwise = "int", 0
		}
		asked = append(asked, entry{"answers", object{{w.name, object{{"type", kind}, {"default", otherwise}}}}})
	}
	if !table {
		return append(spec, entry{"approval", asked})
	}
	for i := range spec {
		if spec[i].key == "w" {
			spec[i].value = append(spec[i].value.(object), entry{"approval", asked})
		}
	}
	return spec
}

// supervised makes the script of a seed with what people supervise: gates with
// answers that show in the rows behind them, checks that ask, Python.
func supervised(seed uint64) *script {
	asks := map[string]*approval{}
	g := newGen(seed, 20)
	s := generateWith(seed, func(b *builder) {
		if len(b.made) == 0 {
			return
		}
		if g.oneIn(supervisedPython) {
			if from := pick(g, b.made...); len(b.tables[from.name]) < 1000 {
				b.try(func() node { return b.pythonNode(from) })
			}
		}
		if g.oneIn(2) {
			b.answered(g, asks)
		}
	})
	for _, n := range s.nodes {
		if asks[n.id()] != nil || !g.oneIn(8) {
			continue
		}
		a := &approval{always: g.oneIn(2)}
		if c := n.table(); c == nil {
			a.always = true
		} else if !a.always || g.oneIn(3) {
			rows := len(s.tables()[c.name])
			// it fails, or does not
			a.check = object{{"rows", object{{"min", rows + g.IntN(2)}}}, {"severity", "approval"}}
		}
		asks[n.id()] = a
	}
	s.asks = asks
	return s
}

// supervisedPython: one script in so many has a node more of Python.
const supervisedPython = 3

// answered adds a gate that asks for a value, and a table behind it that has it in each row.
func (b *builder) answered(g gen, asks map[string]*approval) {
	var at node
	for _, n := range b.script.nodes {
		if n.table() != nil && (at == nil || g.oneIn(2)) {
			at = n
		}
	}
	if at == nil {
		return
	}
	from := at.table()
	a := &answer{name: "answer_" + from.name, number: g.oneIn(2), value: strconv.Itoa(2 + g.IntN(90))}
	f := formula{src: "{" + a.name + "}", kind: intKind, fixed: true}
	var value any
	if a.number {
		n, _ := strconv.ParseInt(a.value, 10, 64)
		value = n
	} else {
		a.value = "as agreed " + a.value
		f.src, f.kind, value = fmt.Sprintf(`"{%s}"`, a.name), stringKind, a.value
	}
	f.eval = func(*env) any { return value }
	b.try(func() node {
		cols := from.columns()
		var fields []outField
		for i, of := range fieldsOf("r", cols) {
			fields = append(fields, outField{field: cols[i], formula: of})
		}
		fields = append(fields, outField{field: field{"answered", f.kind, false}, formula: f})
		asks[at.id()] = &approval{always: true, answer: a}
		return &project{creator: b.creator(fields), from: from.name}
	})
}

// answers returns the answers given at the gates, by parameter.
func (s *script) answers() map[string]string {
	out := map[string]string{}
	for _, a := range s.asks {
		if a.answer != nil {
			out[a.answer.name] = a.answer.value
		}
	}
	return out
}
