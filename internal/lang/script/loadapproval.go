package script

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// gateDraft is a gate while it is being read.
type gateDraft struct {
	gate *Gate
	o    *object // its keys; nil: checks ask for it
	at   *document.Value
	path string
	uses *answerUses
}

// gates reads the approvals of all nodes, once it is known who reads what.
func (l *loader) gates() {
	var drafts []*gateDraft
	for _, d := range l.nodes {
		if g := l.openGate(d.o, d.uses.front); g != nil {
			g.gate.Name, g.gate.Front = d.node.Name, d.node
			drafts = append(drafts, g)
		}
		drafts = append(drafts, l.tableGate(d)...)
	}
	for _, g := range drafts {
		l.readGate(g)
		l.script.Gates = append(l.script.Gates, g.gate)
	}
	l.gateNames(drafts)
	l.answerNames(drafts)
	l.guards()
	if !l.gateCycles(drafts) {
		l.checkAnswerUses(drafts)
	}
}

// openGate opens the key approval of a node or table; nil if there is none.
func (l *loader) openGate(o *object, uses *answerUses) *gateDraft {
	switch e := o.entry("approval"); {
	case e == nil:
		return nil
	case !e.Value.Present():
		l.ErrorAt(e.Key, o.keyPath("approval"), "approval says nothing: it is not clear whether it is meant").Hint =
			"write approval: {} to ask anybody, or leave it out"
		return nil
	}
	keys := l.object(o.get("approval"), o.keyPath("approval"), approvalShape)
	if keys == nil {
		return nil
	}
	keys.at = o.keys["approval"].Key
	return &gateDraft{o: keys, at: keys.at, path: keys.path, uses: uses, gate: &Gate{Pos: l.pos(keys.at), Always: true}}
}

// tableGate is the gate of a node's table: the one that it has by itself, or
// the one that its checks open.
func (l *loader) tableGate(d *nodeDraft) []*gateDraft {
	if d.node.Table == nil {
		if e := d.w.entry("approval"); e != nil {
			l.ErrorAt(e.Key, d.w.keyPath("approval"), "a file has no readers that could wait").Hint =
				"put the approval on the node: it asks before the file is written"
		}
		return nil
	}
	g := l.openGate(d.w, d.uses.table)
	i := slices.IndexFunc(d.node.Checks, func(c *Check) bool { return c.Severity == SeverityApproval })
	switch {
	case g == nil && i < 0:
		return nil
	case g == nil:
		g = &gateDraft{at: d.key, path: d.path, uses: &answerUses{}, gate: &Gate{Pos: d.node.Checks[i].Pos}}
	}
	g.gate.Name, g.gate.Writer = d.node.Table.Name, d.node
	return []*gateDraft{g}
}

// readGate reads what a gate says of itself.
func (l *loader) readGate(g *gateDraft) {
	o := g.o
	if v := o.expression("message"); v != nil {
		if g.gate.Message = strings.TrimSpace(v.Text); len([]rune(v.Text)) > MaxGateMessageChars {
			l.ErrorAt(v, o.keyPath("message"), "the message is longer than %d characters", MaxGateMessageChars)
		}
	}
	if v := o.expression("timeout"); v != nil {
		g.gate.Timeout = l.timeout(v, o.keyPath("timeout"))
	}
	g.gate.By = l.roles(o)
	g.gate.Verified, g.gate.FourEyes = o.boolean("verified"), o.boolean("four_eyes")
	g.gate.Show = l.shownTables(g)
	entries := o.members("answers")
	if len(entries) > MaxAnswersCount {
		l.ErrorAt(o.get("answers"), o.keyPath("answers"), "the gate asks for %d answers; the limit is %d", len(entries),
			MaxAnswersCount)
		return
	}
	for _, e := range entries {
		if a := l.answer(e, join(o.keyPath("answers"), e.Name)); a != nil {
			g.gate.Answers = append(g.gate.Answers, a)
		}
	}
}

func (l *loader) timeout(v *document.Value, path string) time.Duration {
	d, ok := duration(v.Text)
	if !ok || d < time.Second {
		l.ErrorAt(v, path, "%s is not a length of time", document.Quote(v.Text)).Hint =
			"write 3d, 36h or 90m; when it is over the gate is rejected"
		return 0
	}
	return d
}

// roles reads who may decide.
func (l *loader) roles(o *object) []string {
	var out []string
	names := o.names("by")
	if len(names) > MaxRolesCount {
		l.ErrorAt(o.get("by"), o.keyPath("by"), "%d roles; the limit is %d", len(names), MaxRolesCount)
		return nil
	}
	for _, n := range names {
		switch {
		case n.name == "" || len([]rune(n.name)) > MaxRoleChars ||
			strings.ContainsFunc(n.name, func(r rune) bool { return r < ' ' || r == ',' || r == 0x7f }):
			l.ErrorAt(n.at, o.keyPath("by"), "%s is not the name of a role", document.Quote(n.name)).Hint =
				fmt.Sprintf("write one line of 1 to %d characters without commas", MaxRoleChars)
		case slices.Contains(out, n.name):
			l.ErrorAt(n.at, o.keyPath("by"), "role %s is there twice", document.Quote(n.name))
		default:
			out = append(out, n.name)
		}
	}
	return out
}

// shownTables finds the tables that a gate shows: those that its node reads,
// or its table, if it names none.
func (l *loader) shownTables(g *gateDraft) []*Node {
	if !g.o.has("show") {
		if g.gate.Writer != nil {
			return []*Node{g.gate.Writer}
		}
		return (&Gate{Front: g.gate.Front}).Inputs()
	}
	var out []*Node
	for _, n := range g.o.names("show") {
		made := l.script.byTable[n.name]
		switch {
		case made == nil:
			l.noCreator(n.at, g.o.keyPath("show"), n.name)
		case slices.Contains(out, made):
			l.ErrorAt(n.at, g.o.keyPath("show"), "table %s is there twice", document.Quote(n.name))
		default:
			out = append(out, made)
		}
	}
	if len(out) > MaxShownTablesCount {
		l.ErrorAt(g.o.get("show"), g.o.keyPath("show"), "%d tables; the limit is %d", len(out), MaxShownTablesCount)
	}
	return out
}

// answer reads what people are asked for; nil after an error.
func (l *loader) answer(e *document.Entry, path string) *Answer {
	if !isWord(e.Name) || isBuiltin(e.Name) {
		l.ErrorAt(e.Key, path, "%s is not a name for an answer", document.Quote(e.Name)).Hint =
			"use letters, digits and underscores: nodes refer to it as a parameter; batch_idx and run_id are taken"
		return nil
	}
	o := l.object(e.Value, path, answerShape)
	if o == nil {
		return nil
	}
	o.at = e.Key
	a := &Answer{Name: e.Name, Pos: l.pos(e.Key), Message: o.str("message")}
	t := l.columnType(o, "type")
	if t == expr.Invalid {
		return nil
	}
	if t == expr.Date || t == expr.Instant || t.Nested() || t.IsDecimal() && t != expr.Decimal {
		l.ErrorAt(o.get("type"), o.keyPath("type"), "an answer is not %s",
			article(t)).Hint = "ask for a datetime, a decimal2 or a string"
		return nil
	}
	a.Type = t.String()
	ok := true
	read := func(key string, v *document.Value, as func(string) (string, error)) string {
		if !v.Scalar() {
			l.ErrorAt(v, join(path, key), "expected a value of type %s, found %s", t, v.Kind)
			ok = false
			return ""
		}
		value, err := as(v.Text)
		if err != nil {
			l.ErrorAt(v, join(path, key), "%s: %s", key, err)
			ok = false
		}
		return value
	}
	for key, to := range map[string]*string{"min": &a.Min, "max": &a.Max} {
		switch v := o.get(key); {
		case v == nil:
		case t == expr.Bool || t == expr.String:
			l.ErrorAt(v, join(path, key), "%s has no %s", article(t), key).Hint = "list what is allowed in one_of"
			ok = false
		default:
			*to = read(key, v, a.read)
		}
	}
	for _, v := range o.list("one_of") {
		a.OneOf = append(a.OneOf, read("one_of", v, a.read))
	}
	if ok && a.Min != "" && a.Max != "" && a.compare(a.Min, a.Max) > 0 {
		l.ErrorAt(o.get("min"), join(path, "min"), "min is above max: no answer would do")
		return nil
	}
	switch v := o.get("default"); {
	case v == nil:
		o.missing("default", "until it is decided the script is read with it; it is also the answer of who gives none")
		return nil
	case ok:
		a.Default = read("default", v, a.Value)
	}
	if !ok || !l.effectiveDefault(a, e.Key, path) {
		return nil
	}
	return a
}

// effectiveDefault takes what the parameters say of an answer instead of its
// default, and what has been answered.
func (l *loader) effectiveDefault(a *Answer, at *document.Value, path string) bool {
	if given, ok := l.answered.params[a.Name]; ok {
		value, err := a.Value(given)
		if err != nil {
			l.ErrorAt(at, path, "the parameter %s, which stands in for the default: %s", document.Quote(a.Name), err)
			return false
		}
		a.Default = value
	}
	if given, ok := l.src.Answers[a.Name]; ok {
		if value, err := a.Value(given); err != nil || value != given {
			l.ErrorAt(at, path, "the answer %s cannot be used: %s", document.Quote(a.Name), document.Quote(given))
			return false
		}
	}
	return true
}

// gateNames refuses two gates of one name: one in front of a node, one of a table.
func (l *loader) gateNames(drafts []*gateDraft) {
	first := map[string]*gateDraft{}
	for _, g := range drafts {
		key := strings.ToLower(g.gate.Name)
		other := first[key]
		if first[key] = g; other == nil {
			continue
		}
		what := func(g *gateDraft) string {
			if g.gate.Front != nil {
				return "in front of node " + g.gate.Front.Name
			}
			return "of table " + g.gate.Name
		}
		d := l.ErrorAt(g.at, g.path, "two gates would be called %s: the one %s and the one %s",
			document.Quote(g.gate.Name), what(other), what(g))
		d.Hint = "give the node or the table another name: a gate is called what its node or table is"
		if d.Severity != "" {
			d.Related = append(d.Related, other.gate.Pos)
		}
	}
}

// answerNames refuses answers that two gates ask for.
func (l *loader) answerNames(drafts []*gateDraft) {
	first := map[string]*Answer{}
	for _, g := range drafts {
		for _, a := range g.gate.Answers {
			if other := first[a.Name]; other != nil {
				d := l.ErrorAt(g.o.get("answers"), g.o.keyPath("answers"), "answer %s is asked for by two gates",
					document.Quote(a.Name))
				d.Hint = "the nodes behind the first gate may use it: they are behind the second one, too"
				if d.Severity != "" {
					d.Related = append(d.Related, other.Pos)
				}
			}
			first[a.Name] = a
		}
	}
}

// guards finds who waits for each gate: who it is in front of, who reads its
// table, and who uses its answers.
func (l *loader) guards() {
	readers := l.script.readers()
	for _, g := range l.script.Gates {
		uses := func(d *nodeDraft) bool {
			return slices.ContainsFunc(g.Answers, func(a *Answer) bool { return d.uses.own.names[a.Name] != nil })
		}
		for _, d := range l.nodes {
			n := d.node
			if n == g.Front || g.Writer != nil && slices.Contains(readers[g.Writer], n) || uses(d) {
				g.Guards = append(g.Guards, n)
			}
		}
	}
}

// gateCycles reports gates that show, or ask about, what is made behind them.
func (l *loader) gateCycles(drafts []*gateDraft) (found bool) {
	if l.HasErrors() {
		return true // what depends on what may not be what was meant
	}
	// A node that uses an answer without being behind its gate is not yet known
	// to be in front of it: it is left out of what waits here.
	_, stuck := l.script.steps(l.script.Nodes)
	for _, s := range stuck {
		if s.Gate == nil {
			continue
		}
		g := drafts[slices.IndexFunc(drafts, func(g *gateDraft) bool { return g.gate == s.Gate })]
		behind := l.script.behind(g.gate)
		for _, n := range g.gate.Show {
			if !behind[n] {
				continue
			}
			found = true
			at, path := g.at, g.path
			for _, shown := range g.o.names("show") {
				if shown.name == n.Table.Name {
					at, path = shown.at, g.o.keyPath("show")
				}
			}
			l.ErrorAt(at, path, "the gate shows table %s, which is made behind it: by node %s",
				document.Quote(n.Table.Name), n.Name).Hint =
				"show tables that are there when it asks"
		}
	}
	return found
}

// behind lists the nodes that a gate keeps waiting by where it stands: who it is
// in front of or reads its table, and all that need them. That a node uses an
// answer does not put it there.
func (s *Script) behind(g *Gate) map[*Node]bool {
	readers := s.readers()
	direct := func(g *Gate) map[*Node]bool {
		out := map[*Node]bool{}
		for _, n := range g.Guards {
			if n == g.Front || g.Writer != nil && slices.Contains(readers[g.Writer], n) {
				out[n] = true
			}
		}
		return out
	}
	shownBy := map[*Node][]*Gate{}
	for _, other := range s.Gates {
		for _, n := range other.Inputs() {
			shownBy[n] = append(shownBy[n], other)
		}
	}
	out := map[*Node]bool{}
	walk(direct(g), func(n *Node, visit func(*Node)) {
		out[n] = true
		for _, child := range readers[n] {
			visit(child)
		}
		for _, other := range shownBy[n] {
			for guarded := range direct(other) {
				visit(guarded)
			}
		}
	})
	return out
}
