package script

import (
	"go/scanner"
	"go/token"
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// StandardPolicy is the dependency policy of scripts that define none: read
// the table of this run if the node that makes it is part of this run; else
// the latest run that the node is part of decides: if the node succeeded there
// its table is read, else none. It is written in the language of scripts.
const StandardPolicy = `is_default: true
event_priority_order: run_is_current(desc), run_id(desc)
rules:
  - {cmd: go, expression: nrs.run_is_current && nrs.run_status == wfmodel.RunStart && nrs.node_status == wfmodel.NodeBatchSuccess}
  - {cmd: wait, expression: nrs.run_is_current && (nrs.run_status == wfmodel.RunStart || nrs.run_status == wfmodel.RunNone) ` +
	`&& nrs.node_status == wfmodel.NodeBatchNone}
  - {cmd: wait, expression: nrs.run_is_current && (nrs.run_status == wfmodel.RunStart || nrs.run_status == wfmodel.RunNone) ` +
	`&& nrs.node_status == wfmodel.NodeBatchStart}
  - {cmd: nogo, expression: nrs.run_is_current && nrs.run_status == wfmodel.RunStart && nrs.node_status == wfmodel.NodeBatchFail}
  - {cmd: go, expression: "!nrs.run_is_current && nrs.run_status == wfmodel.RunStart && nrs.node_status == wfmodel.NodeBatchSuccess"}
  - {cmd: wait, expression: "!nrs.run_is_current && (nrs.run_status == wfmodel.RunStart || nrs.run_status == wfmodel.RunNone) ` +
	`&& nrs.node_status == wfmodel.NodeBatchNone"}
  - {cmd: wait, expression: "!nrs.run_is_current && (nrs.run_status == wfmodel.RunStart || nrs.run_status == wfmodel.RunNone) ` +
	`&& nrs.node_status == wfmodel.NodeBatchStart"}
  - {cmd: go, expression: "!nrs.run_is_current && nrs.run_status == wfmodel.RunComplete && nrs.node_status == wfmodel.NodeBatchSuccess"}
  - {cmd: nogo, expression: "!nrs.run_is_current && nrs.run_status == wfmodel.RunComplete && nrs.node_status == wfmodel.NodeBatchFail"}
  - {cmd: nogo, expression: "!nrs.run_is_current && nrs.run_status == wfmodel.RunStop"}
`

// StandardPolicyName is the name of the built-in policy.
const StandardPolicyName = "standard"

const builtIn = "built-in" // what StandardPolicy has for a file name

// BuiltIn reports whether the policy is StandardPolicy, and not one that a
// script declares.
func (p *DependencyPolicy) BuiltIn() bool { return p.Pos.File == builtIn }

// The aliases of rules.
const (
	statusAlias    = "nrs"
	oldStatusAlias = "e" // what earlier scripts called nrs
	constantAlias  = "wfmodel"
)

// PolicyConstant gives the value of wfmodel.<name>; ok is false if there is none.
func PolicyConstant(name string) (value int, ok bool) {
	value, ok = policyConstants()[name]
	return value, ok
}

func policyConstants() map[string]int {
	return map[string]int{"RunNone": 0, "RunStart": 1, "RunComplete": 2, "RunStop": 3,
		"NodeBatchNone": 0, "NodeBatchStart": 1, "NodeBatchSuccess": 2, "NodeBatchFail": 3,
		"NodeBatchRunStopReceived": 104}
}

// statusFields are the fields of nrs: what is known of one run of a node.
func statusFields() map[string]expr.Type {
	return map[string]expr.Type{"run_id": expr.Int, "run_is_current": expr.Bool, "run_status": expr.Int,
		"node_status": expr.Int}
}

// oldNames are fields of e.* that have another name in nrs.*; the times that
// runs and nodes started put runs in the order of their numbers.
func oldNames() map[string]string {
	return map[string]string{"run_final_status": "run_status", "run_start_ts": "run_id", "node_start_ts": "run_id"}
}

// policies reads dependency_policies, or supplies the standard one.
func (l *loader) policies(root *object) {
	members := root.members("dependency_policies")
	if len(members) == 0 {
		if v := root.get("dependency_policies"); v == nil || v.Kind == document.Map {
			l.standardPolicy()
		}
		return
	}
	var defaults []*DependencyPolicy
	for _, e := range members {
		p := l.policy(e.Name, e.Value, e.Key, join("dependency_policies", e.Name))
		if p == nil {
			continue
		}
		l.script.Policies = append(l.script.Policies, p)
		l.byPolicy[p.Name] = p
		if p.Default {
			defaults = append(defaults, p)
		}
	}
	switch {
	case len(defaults) == 1:
		l.standard = defaults[0]
	case len(defaults) == 0:
		l.ErrorAt(root.keys["dependency_policies"].Key, "dependency_policies", "no policy is the default one").Hint =
			"give one of them is_default: true"
	default:
		at := l.ErrorAt(root.keys["dependency_policies"].Key, "dependency_policies", "%d policies are the default one",
			len(defaults))
		at.Hint = "leave is_default: true with one of them"
		for _, p := range defaults {
			at.Related = append(at.Related, p.Pos)
		}
	}
}

func (l *loader) standardPolicy() {
	src := document.NewSource(builtIn, StandardPolicy)
	doc, fail := document.ReadYAML(src)
	if fail != nil {
		l.AddFile(document.Error, "built-in", "", "the standard policy is broken: "+fail.Message)
		return
	}
	l.standard = l.policy(StandardPolicyName, doc, doc, "dependency_policies."+StandardPolicyName)
	l.script.Policies = append(l.script.Policies, l.standard)
}

func (l *loader) policy(name string, v, key *document.Value, path string) *DependencyPolicy {
	o := l.object(v, path, policyShape)
	if o == nil {
		return nil
	}
	o.at = key
	p := &DependencyPolicy{Name: name, Pos: l.pos(key), Default: o.boolean("is_default")}
	l.policyOrder(o, p)
	if len(o.list("rules")) == 0 && (o.get("rules") == nil || o.get("rules").Kind == document.List) {
		l.WarnAt(key, path, "policy %s has no rules: nodes that use it wait for ever", document.Quote(name))
	}
	for i, item := range o.list("rules") {
		rulePath := join(o.keyPath("rules"), indexText(i))
		r := l.object(item, rulePath, ruleShape)
		if r == nil {
			continue
		}
		rule := DependencyRule{}
		if cmd := r.one("cmd", "it is go, wait or nogo"); cmd != nil {
			rule.Cmd = r.choice("cmd", "")
		}
		if e := r.one("expression", "a rule needs a condition"); e != nil {
			l.rule(e, r.keyPath("expression"), &rule)
		}
		p.Rules = append(p.Rules, rule)
	}
	return p
}

// policyOrder reads the order in which runs are looked at.
func (l *loader) policyOrder(o *object, p *DependencyPolicy) {
	text := "run_is_current(desc), run_id(desc)"
	v := o.expression("event_priority_order")
	types := statusFields()
	if v != nil {
		text = v.Text
		for old := range oldNames() {
			types[old] = expr.Int
		}
	}
	order, err := expr.ParseOrder(text, types)
	if err != nil {
		if v == nil {
			v = o.where()
		}
		l.exprError(v, o.keyPath("event_priority_order"), err)
		return
	}
	for i := range order {
		if now, ok := oldNames()[order[i].Field]; ok {
			l.WarnAt(v, o.keyPath("event_priority_order"), "%s is an older name: %s is used", order[i].Field, now)
			order[i].Field = now
		}
	}
	p.Order = order
}

// rule parses a rule's condition, in which e.* stands for nrs.* as it did in
// earlier scripts.
func (l *loader) rule(v *document.Value, path string, rule *DependencyRule) {
	constants := map[string]expr.Type{}
	for name := range policyConstants() {
		constants[name] = expr.Int
	}
	old := statusFields()
	old["run_final_status"] = expr.Int
	sc := newScope("a rule").with(statusAlias, statusFields(), true).with(oldStatusAlias, old, true).with(constantAlias,
		constants, true)
	c := l.condition(v, path, sc)
	if c == nil {
		return
	}
	e, err := expr.Parse(modernRule(v.Text))
	if err != nil {
		l.exprError(v, path, err)
		return
	}
	if mentions(c, oldStatusAlias) {
		l.WarnAt(v, path, "e.* is an older name of nrs.*").Hint = "write " + modernRule(v.Text)
	}
	rule.Expr = e
	rule.Cond, err = e.Check(sc.types, expr.Mode{})
	if err != nil {
		l.exprError(v, path, err)
	}
}

// modernRule writes nrs.x for e.x.
func modernRule(text string) string {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	var out strings.Builder
	copied := 0
	var words [2]struct { // the last two tokens
		at  int
		tok token.Token
		lit string
	}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		at := file.Offset(pos)
		if tok == token.IDENT && words[1].tok == token.PERIOD && words[0].tok == token.IDENT &&
			words[0].lit == oldStatusAlias {
			out.WriteString(text[copied:words[0].at])
			name := lit
			if now, ok := oldNames()[lit]; ok {
				name = now
			}
			out.WriteString(statusAlias + "." + name)
			copied = at + len(lit)
		}
		words[0] = words[1]
		words[1].at, words[1].tok, words[1].lit = at, tok, lit
	}
	out.WriteString(text[copied:])
	return out.String()
}

// nodePolicy resolves a node's dependency_policy; file_table depends on nothing.
func (l *loader) nodePolicy(d *nodeDraft) {
	v := d.o.text("dependency_policy")
	if d.node.Type == FileTable {
		return
	}
	d.node.Policy = l.standard
	if v == nil || v.Text == "" {
		return
	}
	if p := l.byPolicy[v.Text]; p != nil {
		d.node.Policy = p
		return
	}
	l.ErrorAt(v, d.o.keyPath("dependency_policy"), "there is no dependency policy %s", document.Quote(v.Text)).Hint =
		document.SuggestKey(v.Text, l.byPolicy)
}
