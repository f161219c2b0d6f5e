package document

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// ReadYAML parses one YAML document, keeping positions and the order of keys.
// Aliases are followed and merge keys (<<) are resolved.
func ReadYAML(src *Source) (v *Value, fail *SyntaxError) {
	// The parser is somebody else's: a defect of it on strange input is the
	// document's problem, not the process's.
	defer func() {
		if r := recover(); r != nil {
			v, fail = nil, &SyntaxError{Message: fmt.Sprintf("not valid YAML: %v", r)}
		}
	}()
	var doc yaml.Node
	if err := yaml.Load([]byte(src.Text), &doc); err != nil {
		return nil, yamlError(src, err)
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &SyntaxError{Message: "the document is empty"}
	}
	r := &yamlReader{src: src, done: map[*yaml.Node]*Value{}, open: map[*yaml.Node]bool{}}
	out := r.value(doc.Content[0], 0)
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

// yamlError turns the parser's error into ours.
func yamlError(src *Source, err error) *SyntaxError {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return &SyntaxError{Message: "not valid YAML: " + err.Error()}
	}
	out := &SyntaxError{Message: "not valid YAML: " + strings.TrimPrefix(le.Message, "yaml: ")}
	if le.Mark.Line == 0 && le.Stage == yaml.ConstructorStage { // nothing but the count of documents is checked there
		out.Message += "; a script is exactly one document"
	}
	if le.ContextMsg != "" {
		out.Message += " " + le.ContextMsg
		if le.ContextMark.Line > 0 && le.ContextMark.Line != le.Mark.Line {
			out.Message += fmt.Sprintf(" that starts in line %d",
				src.Pos(src.Origin(src.offset(le.ContextMark.Line, 1), false)).Line)
		}
	}
	if le.Mark.Line > 0 {
		out.off = min(src.offset(le.Mark.Line, le.Mark.Column), len(src.Text))
		out.end = min(out.off+1, len(src.Text))
		if out.off < len(src.Text) && src.Text[out.off] == '\t' {
			out.hint = "YAML is indented with blanks, not tabs"
		}
	}
	if at := out.off; out.hint == "" && at > 0 && strings.Contains(le.ContextMsg, "flow ") &&
		commaBefore(src.Text[strings.LastIndexByte(src.Text[:at], '\n')+1:at]) {
		out.hint = quoteComma
	}
	if out.hint == "" {
		out.hint = yamlHint(out.Message)
	}
	return out
}

// yamlHint is the usual reason for what the parser says.
func yamlHint(message string) string {
	switch {
	case strings.Contains(message, "no documents"):
		return "{{do infer file=FILE}} proposes a script for a file, {{do init}} begins a project"
	case strings.Contains(message, "mapping values are not allowed"):
		return "a text with a colon and a blank in it stands between quotes"
	case strings.Contains(message, "flow mapping"), strings.Contains(message, "flow sequence"),
		strings.Contains(message, "flow node"):
		return "see whether each { and [ is closed, and a comma is between its items"
	case strings.Contains(message, "quoted scalar"):
		return "a quote is not closed"
	}
	return "see whether the line is indented as those beside it, and whether texts with : # { [ * & ! % @ in them " +
		"stand between quotes"
}

type yamlReader struct {
	src  *Source
	done map[*yaml.Node]*Value // aliased nodes are shared, not copied
	open map[*yaml.Node]bool   // nodes being read: an alias to one of them is a cycle
	err  *SyntaxError
}

func (r *yamlReader) fail(n *yaml.Node, format string, args ...any) *Value {
	off := r.src.offset(n.Line, n.Column)
	if r.err == nil {
		r.err = &SyntaxError{off: off, end: min(off+1, len(r.src.Text)), Message: fmt.Sprintf(format, args...)}
	}
	return &Value{Src: r.src, Off: off, Weight: 1}
}

func (r *yamlReader) value(n *yaml.Node, depth int) *Value {
	switch {
	case r.err != nil:
		return &Value{Src: r.src, Weight: 1}
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
	if mark := r.strayMark(n); mark != "" {
		v := r.fail(n, "%s", mark)
		r.err.hint = "put the value in quotes"
		return v
	}
	if r.cutByComma(n) {
		return &Value{Src: r.src, Weight: 1}
	}
	r.open[n] = true
	v := &Value{Src: r.src, Off: r.contentStart(n), Weight: 1}
	switch n.Kind {
	case yaml.MappingNode:
		r.readMap(v, n, depth)
	case yaml.SequenceNode:
		v.Kind = List
		for _, c := range n.Content {
			item := r.value(c, depth+1)
			v.Items = append(v.Items, item)
			v.Weight += item.Weight
		}
	default:
		r.scalar(v, n)
	}
	if v.Weight > MaxValuesCount {
		return r.fail(n, "too many values once aliases are followed: the limit is %d", MaxValuesCount)
	}
	delete(r.open, n)
	r.done[n] = v
	return v
}

// strayMark says what of YAML somebody has written before a value who meant an expression:
// of !is_null(w.x) nothing would be left but NULL, of &&x nothing at all.
func (r *yamlReader) strayMark(n *yaml.Node) string {
	if n.Style&yaml.TaggedStyle != 0 && !strings.HasPrefix(n.Tag, "!!") {
		return fmt.Sprintf("%s is a tag of YAML, and no part of the value", n.Tag)
	}
	if strings.ContainsFunc(n.Anchor, func(c rune) bool {
		return c != '_' && c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		return fmt.Sprintf("&%s is an anchor of YAML, and no part of the value", n.Anchor)
	}
	return ""
}

// contentStart skips the anchor and tag in front of a value.
func (r *yamlReader) contentStart(n *yaml.Node) int {
	off := r.src.offset(n.Line, n.Column)
	text := r.src.Text
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

func (r *yamlReader) scalar(v *Value, n *yaml.Node) {
	v.Text = n.Value
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		v.Style = singleStyle
	case n.Style&yaml.DoubleQuotedStyle != 0:
		v.Style = doubleStyle
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		v.Style = BlockStyle
	}
	v.Kind = String
	if v.Style == plainStyle {
		switch n.ShortTag() {
		case "!!null":
			v.Kind = Null
		case "!!bool":
			v.Kind = Bool
		case "!!int", "!!float":
			v.Kind = Number
		}
		if strings.HasPrefix(r.src.Text[min(v.Off, len(r.src.Text)):], v.Text) {
			v.End = v.Off + len(v.Text)
		}
	}
}

func (r *yamlReader) readMap(v *Value, n *yaml.Node, depth int) {
	v.Kind = Map
	var merges []*Value
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
		if key.Kind != String {
			r.fail(k, "a key must be text, and %s is %s", key.Text, key.Kind)
			r.err.hint = fmt.Sprintf("put it in quotes: %q", key.Text)
			return
		}
		val := r.value(n.Content[i+1], depth+1)
		v.Entries = append(v.Entries, &Entry{Name: key.Text, Key: key, Value: val})
		v.Weight += val.Weight
	}
	r.merge(v, n, merges)
}

// merge adds the entries of << maps behind the map's own, which win.
func (r *yamlReader) merge(v *Value, n *yaml.Node, merges []*Value) {
	if len(merges) == 0 {
		return
	}
	have := map[string]bool{}
	for _, e := range v.Entries {
		have[e.Name] = true
	}
	for _, m := range merges {
		sources := []*Value{m}
		if m.Kind == List {
			sources = m.Items
		}
		for _, s := range sources {
			if s.Kind != Map {
				r.fail(n, "<< takes a map or a list of maps")
				return
			}
			for _, e := range s.Entries {
				if !have[e.Name] {
					have[e.Name] = true
					v.Entries = append(v.Entries, &Entry{Name: e.Name, Key: e.Key, Value: e.Value})
					v.Weight += e.Value.Weight
				}
			}
		}
	}
}
