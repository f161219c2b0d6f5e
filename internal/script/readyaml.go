package script

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// readYAML parses one YAML document, keeping positions and the order of keys.
// Aliases are followed and merge keys (<<) are resolved.
func readYAML(src *source) (v *value, fail *syntaxError) {
	// The parser is somebody else's: a defect of it on strange input is the
	// document's problem, not the process's.
	defer func() {
		if r := recover(); r != nil {
			v, fail = nil, &syntaxError{message: fmt.Sprintf("not valid YAML: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Load([]byte(src.text), &doc); err != nil {
		return nil, yamlError(src, err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &syntaxError{message: "the document is empty"}
	}
	r := &yamlReader{src: src, done: map[*yaml.Node]*value{}, open: map[*yaml.Node]bool{}}
	out := r.value(doc.Content[0], 0)
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// yamlError turns the parser's error into ours.
func yamlError(src *source, err error) *syntaxError {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return &syntaxError{message: "not valid YAML: " + err.Error()}
	}
	out := &syntaxError{message: "not valid YAML: " + strings.TrimPrefix(le.Message, "yaml: ")}
	if le.Mark.Line == 0 && le.Stage == yaml.ConstructorStage { // nothing but the count of documents is checked there
		out.message += "; a script is exactly one document"
	}
	if le.ContextMsg != "" {
		out.message += " " + le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark.Line != le.Mark.Line {
			out.message += fmt.Sprintf(" that starts in line %d", src.pos(src.origin(src.offset(le.ContextMark.Line, 1), false)).Line)
		}
	}
	if le.Mark.Line > 0 {
		out.off = min(src.offset(le.Mark.Line, le.Mark.Column), len(src.text))
		out.end = min(out.off+1, len(src.text))
		if out.off < len(src.text) && src.text[out.off] == '\t' {
			out.hint = "YAML is indented with blanks, not tabs"
		}
	}
	return out
}

type yamlReader struct {
	src  *source
	done map[*yaml.Node]*value // aliased nodes are shared, not copied
	open map[*yaml.Node]bool   // nodes being read: an alias to one of them is a cycle
	err  *syntaxError
}

func (r *yamlReader) fail(n *yaml.Node, format string, args ...any) *value {
	off := r.src.offset(n.Line, n.Column)
	if r.err == nil {
		r.err = &syntaxError{off: off, end: min(off+1, len(r.src.text)), message: fmt.Sprintf(format, args...)}
	}
	return &value{src: r.src, off: off, weight: 1}
}

func (r *yamlReader) value(n *yaml.Node, depth int) *value {
	switch {
	case r.err != nil:
		return &value{src: r.src, weight: 1}
	case depth > MaxDepthLevels:
		return r.fail(n, "nested too deeply: the limit is %d levels", MaxDepthLevels)
	case n.Kind == yaml.AliasNode:
		if n.Alias == nil || r.open[n.Alias] {
			return r.fail(n, "alias *%s refers to itself", n.Value)
		}
		return r.value(n.Alias, depth+1)
	}
	if v := r.done[n]; v != nil {
		return v
	}
	r.open[n] = true
	v := &value{src: r.src, off: r.contentStart(n), weight: 1}
	switch n.Kind {
	case yaml.MappingNode:
		r.readMap(v, n, depth)
	case yaml.SequenceNode:
		v.kind = listKind
		for _, c := range n.Content {
			item := r.value(c, depth+1)
			v.items = append(v.items, item)
			v.weight += item.weight
		}
	default:
		r.scalar(v, n)
	}
	if v.weight > MaxValuesCount {
		return r.fail(n, "too many values once aliases are followed: the limit is %d", MaxValuesCount)
	}
	delete(r.open, n)
	r.done[n] = v
	return v
}

// contentStart skips the anchor and tag in front of a value.
func (r *yamlReader) contentStart(n *yaml.Node) int {
	off := r.src.offset(n.Line, n.Column)
	text := r.src.text
	for off < len(text) && (text[off] == '&' || text[off] == '!') {
		for off < len(text) && !isBlank(text[off]) {
			off++
		}
		for off < len(text) && isBlank(text[off]) {
			off++
		}
	}
	return off
}

func (r *yamlReader) scalar(v *value, n *yaml.Node) {
	v.text = n.Value
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		v.style = singleStyle
	case n.Style&yaml.DoubleQuotedStyle != 0:
		v.style = doubleStyle
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		v.style = blockStyle
	}
	v.kind = stringKind
	if v.style == plainStyle {
		switch n.ShortTag() {
		case "!!null":
			v.kind = nullKind
		case "!!bool":
			v.kind = boolKind
		case "!!int", "!!float":
			v.kind = numberKind
		}
		if strings.HasPrefix(r.src.text[min(v.off, len(r.src.text)):], v.text) {
			v.end = v.off + len(v.text)
		}
	}
}

func (r *yamlReader) readMap(v *value, n *yaml.Node, depth int) {
	v.kind = mapKind
	var merges []*value
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		for k.Kind == yaml.AliasNode && k.Alias != nil {
			k = k.Alias
		}
		if k.ShortTag() == "!!merge" && k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0 {
			merges = append(merges, r.value(n.Content[i+1], depth+1))
			continue
		}
		if k.Kind != yaml.ScalarNode {
			r.fail(k, "a key must be text")
			return
		}
		key := r.value(k, depth+1)
		if r.err != nil {
			return
		}
		if key.kind != stringKind {
			r.fail(k, "a key must be text, and %s is %s", key.text, key.kind)
			r.err.hint = fmt.Sprintf("put it in quotes: %q", key.text)
			return
		}
		val := r.value(n.Content[i+1], depth+1)
		v.entries = append(v.entries, &entry{name: key.text, key: key, val: val})
		v.weight += val.weight
	}
	r.merge(v, n, merges)
}

// merge adds the entries of << maps behind the map's own, which win.
func (r *yamlReader) merge(v *value, n *yaml.Node, merges []*value) {
	if len(merges) == 0 {
		return
	}
	have := map[string]bool{}
	for _, e := range v.entries {
		have[e.name] = true
	}
	for _, m := range merges {
		sources := []*value{m}
		if m.kind == listKind {
			sources = m.items
		}
		for _, s := range sources {
			if s.kind != mapKind {
				r.fail(n, "<< takes a map or a list of maps")
				return
			}
			for _, e := range s.entries {
				if !have[e.name] {
					have[e.name] = true
					v.entries = append(v.entries, &entry{name: e.name, key: e.key, val: e.val})
					v.weight += e.val.weight
				}
			}
		}
	}
}
