package script

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strings"

	"thalweg/internal/base/document"
)

// Answers are parameters that people give while a run waits. Until then, and
// for who gives none, they have defaults, which are in the script itself: so
// the script is read twice, the first time to find them.

// answered holds the answers of a script that are known before it is read.
type answered struct {
	names  map[string]bool
	params map[string]string // what the parameters say of them, instead of their defaults
	uses   map[string]nodeUses
}

// answers finds the answers that the script's gates ask for, and makes them
// parameters: as they were given, or by the parameters of that name, or by
// their defaults.
func (l *loader) answers(ctx context.Context, script *document.Source, params *parameters) {
	l.answered = answered{names: map[string]bool{}, params: map[string]string{}}
	if !strings.Contains(script.Original, "answers") && !strings.Contains(script.Original, "include") {
		return
	}
	for name, a := range l.scout(ctx, script, params) {
		if isBuiltin(name) {
			continue // refused where it is read
		}
		l.answered.names[name] = true
		text, given, literal := a.Default, "", false
		if p, ok := params.values[name]; ok {
			given, literal = p.text, p.literal
			l.answered.params[name], text = given, given
		}
		if value, err := a.Value(text); err == nil {
			text = value
		}
		if said, ok := l.src.Answers[name]; ok {
			text, literal = said, true
		}
		params.values[name] = paramValue{kind: anyKind, text: text, exact: true, literal: literal}
		params.used[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.src.Answers)) {
		if !l.answered.names[name] {
			l.AddFile(document.Error, l.script.Path, "", "no gate of the script asks for "+document.Quote(name)).Hint =
				document.SuggestKey(name, l.answered.names)
		}
	}
}

// scout reads the script and what it includes for their answers alone. What is
// wrong with them is found when they are read the second time.
func (l *loader) scout(ctx context.Context, script *document.Source, params *parameters) map[string]Answer {
	read, kept := l.src.Read, map[string][]byte{}
	l.src.Read = func(ctx context.Context, url string) ([]byte, error) {
		if text, ok := kept[url]; ok {
			return text, nil
		}
		return read(ctx, url)
	}
	scout := newLoader(l.src)
	scout.src.Read = func(ctx context.Context, url string) ([]byte, error) {
		text, err := read(ctx, url)
		if err == nil {
			kept[url] = text
		}
		return text, err
	}
	again := document.NewSource(script.Name, script.Original)
	again.URL = script.URL
	scout.fetched[l.src.Path] = fetched{again}
	guess := &parameters{values: maps.Clone(params.values), given: params.given, used: map[string]bool{}, guess: true}
	scout.readScript(ctx, again, guess, nil)
	out := map[string]Answer{}
	for _, f := range scout.files {
		for _, e := range entriesOf(f.root.get("nodes")) {
			for _, at := range []*document.Value{e.Value, entryOf(e.Value, "w")} {
				for _, a := range entriesOf(entryOf(entryOf(at, "approval"), "answers")) {
					out[a.Name] = Answer{Name: a.Name, Type: scalarText(entryOf(a.Value, "type")),
						Default: scalarText(entryOf(a.Value, "default"))}
				}
			}
		}
	}
	return out
}

func entriesOf(v *document.Value) []*document.Entry {
	if v == nil || v.Kind != document.Map {
		return nil
	}
	return v.Entries
}

// entryOf finds a key of a map whatever its case; the last one counts.
func entryOf(v *document.Value, key string) (out *document.Value) {
	for _, e := range entriesOf(v) {
		if strings.EqualFold(e.Name, key) {
			out = e.Value
		}
	}
	return out
}

func scalarText(v *document.Value) string {
	if v == nil || !v.Scalar() {
		return ""
	}
	return v.Text
}

// answerUses says where a part of the document refers to answers, by name.
type answerUses struct{ names map[string]*document.Value }

// nodeUses holds the references to answers in a node and in its approvals.
type nodeUses struct{ own, front, table *answerUses }

// usesOf gives what findAnswerUses has noted of a node.
func (l *loader) usesOf(n *Node) nodeUses {
	u, ok := l.answered.uses[n.Name]
	if !ok {
		return nodeUses{own: &answerUses{}, front: &answerUses{}, table: &answerUses{}}
	}
	n.Answers = slices.Sorted(maps.Keys(u.own.names))
	return u
}

// swapKey names a stretch of text that a parameter was put into.
type swapKey struct {
	src *document.Source
	nth int
}

// findAnswerUses notes which answers each node of the document refers to, as it
// was written, and refuses references where nothing could wait for them.
func (l *loader) findAnswerUses(root *object) {
	l.answered.uses = map[string]nodeUses{}
	if len(l.answered.names) == 0 {
		return
	}
	seen := map[swapKey]bool{}
	find := func(v *document.Value, but ...*document.Value) *answerUses {
		u := &answerUses{names: map[string]*document.Value{}}
		l.collectUses(v, but, u, seen, map[*document.Value]bool{})
		return u
	}
	for _, e := range entriesOf(root.get("nodes")) {
		front, table := entryOf(e.Value, "approval"), entryOf(entryOf(e.Value, "w"), "approval")
		l.answered.uses[e.Name] = nodeUses{own: find(e.Value, front, table), front: find(front), table: find(table)}
	}
	for _, f := range l.files {
		spans := scalarSpans(f.src, f.root.v)
		for i, s := range f.src.Swaps {
			at := document.Span{Start: s.TextStart, End: max(s.TextEnd, s.TextStart+1)}
			if l.answered.names[s.Param] && !seen[swapKey{f.src, i}] && overlaps(spans, at) {
				l.ErrorSpan(f.src, at.Start, s.TextEnd, "",
					"answer %s cannot be used here: it is known when somebody has decided",
					document.Quote(s.Param)).Hint = "the nodes behind its gate can use it"
			}
		}
	}
}

// collectUses notes the answers that v and what is below it refer to.
func (l *loader) collectUses(v *document.Value, but []*document.Value, u *answerUses, seen map[swapKey]bool,
	visited map[*document.Value]bool) {
	if v == nil || visited[v] || slices.Contains(but, v) {
		return
	}
	visited[v] = true
	if v.Scalar() && v.Src != nil {
		start, end := v.Span()
		i := sort.Search(len(v.Src.Swaps), func(i int) bool { return v.Src.Swaps[i].TextEnd >= start })
		for ; i < len(v.Src.Swaps) && v.Src.Swaps[i].TextStart <= end; i++ {
			s := v.Src.Swaps[i]
			if l.answered.names[s.Param] && s.TextStart < max(end, start+1) && s.TextEnd >= start {
				seen[swapKey{v.Src, i}] = true
				u.names[s.Param] = v
			}
		}
	}
	for _, e := range v.Entries {
		l.collectUses(e.Key, but, u, seen, visited)
		l.collectUses(e.Value, but, u, seen, visited)
	}
	for _, item := range v.Items {
		l.collectUses(item, but, u, seen, visited)
	}
}

// checkAnswerUses refuses references to answers of gates that the node, or the
// approval, is not behind.
func (l *loader) checkAnswerUses(drafts []*gateDraft) {
	asks := map[string]*gateDraft{}
	for _, g := range drafts {
		for _, a := range g.gate.Answers {
			asks[a.Name] = g
		}
	}
	behind := map[*gateDraft]map[*Node]bool{}
	after := func(g *gateDraft, n *Node) bool {
		if behind[g] == nil {
			behind[g] = l.script.behind(g.gate)
		}
		return behind[g][n]
	}
	for _, d := range l.nodes {
		for _, name := range slices.Sorted(maps.Keys(d.uses.own.names)) {
			g := asks[name]
			if g == nil || after(g, d.node) {
				continue
			}
			l.ErrorAt(d.uses.own.names[name], d.path,
				"node %s uses answer %s, but does not wait for gate %s, which asks for it",
				d.node.Name, document.Quote(name), document.Quote(g.gate.Name)).Hint =
				"only the nodes behind a gate know its answers: put the approval in front of this node, or let the " +
					"node read what is behind it"
		}
	}
	for _, d := range drafts {
		for _, name := range slices.Sorted(maps.Keys(d.uses.names)) {
			g := asks[name]
			if g != nil && g != d && slices.ContainsFunc(d.gate.Inputs(), func(n *Node) bool { return after(g, n) }) {
				continue
			}
			l.ErrorAt(d.uses.names[name], d.path, "the approval uses answer %s, which is not known when it asks",
				document.Quote(name))
		}
	}
}
