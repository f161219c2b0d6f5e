package script

import (
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// paramValue is the value of a parameter.
type paramValue struct {
	kind string // string, number, bool, stringlist: as a reference names it
	text string // what a reference is replaced by
	at   *value
}

// builtins are the references that are replaced when a file is written, not when the script is loaded.
const (
	batchRef = "{batch_idx|string}"
	runRef   = "{run_id|string}"
)

func isBuiltin(name string) bool { return name == "batch_idx" || name == "run_id" }

// containsBatchIndex reports whether a file name has a place for the batch's number.
func containsBatchIndex(url string) bool { return strings.Contains(url, batchRef) }

// ExpandURL puts the batch index (five digits) and the run's number into a
// url_template.
func ExpandURL(template string, run, batch int) string {
	return strings.NewReplacer(batchRef, fmt.Sprintf("%05d", batch), runRef, strconv.Itoa(run)).Replace(template)
}

// reference finds {name} and {name|type}, and the same of {env.name}, blanks allowed.
var reference = regexp.MustCompile(`\{[ \t]*(env\.)?([A-Za-z0-9_]+)[ \t]*(?:\|[ \t]*([A-Za-z]+)[ \t]*)?\}`)

// parameters are the values that references can have.
type parameters struct {
	values map[string]paramValue
	given  bool            // whether there is a parameters file
	broken bool            // it could not be read: which values it has is not known
	used   map[string]bool // those of the command line that the script refers to
}

// anyKind is the kind of parameters of the command line: they are what the
// reference asks for.
const anyKind = ""

// override adds the parameters of the command line, which win.
func (p *parameters) override(values map[string]string) {
	for name, text := range values {
		p.values[name] = paramValue{kind: anyKind, text: text}
	}
}

// as gives the value as a type; ok is false if it is not one.
func (p paramValue) as(typ string) (paramValue, bool) {
	if p.kind != anyKind {
		return p, p.kind == typ
	}
	ok := true
	switch p.kind = typ; typ {
	case "string":
		p.text = oneLine(p.text)
	case "number":
		p.text, _, ok = numberText(strings.TrimSpace(p.text))
	case "bool":
		p.text = strings.ToLower(strings.TrimSpace(p.text))
		ok = p.text == "true" || p.text == "false"
	case "stringlist":
		items := strings.Split(p.text, ",")
		for i, item := range items {
			items[i] = `"` + oneLine(strings.TrimSpace(item)) + `"`
		}
		p.text = "[" + strings.Join(items, ", ") + "]"
	}
	return p, ok
}

// unused reports parameters of the command line to which nothing refers.
func (l *loader) unusedParams(p *parameters) {
	for _, name := range sortedKeys(l.src.Params) {
		if !p.used[name] {
			l.file(Error, l.script.Path, "", "the script has no reference to parameter "+quote(name)+" of the command line")
		}
	}
}

// oneLine writes line breaks as \n: a value stands inside of quotes.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", `\n`, "\n", `\n`).Replace(text)
}

// readParams reads the parameters file: a flat map of names to values.
// broken: there is none in it, and that is reported.
func (l *loader) readParams(src *source) (params map[string]paramValue, broken bool) {
	params = map[string]paramValue{}
	doc := l.parse(src)
	if doc == nil {
		return params, true
	}
	if doc.kind == nullKind {
		return params, false
	}
	if doc.kind != mapKind {
		l.errorAt(doc, "", "the parameters must be a map of names to values, not %s", doc.kind)
		return params, true
	}
	for _, e := range l.uniqueEntries(doc, "") {
		if p, ok := l.paramValue(e); ok {
			params[e.name] = p
		}
	}
	return params, false
}

func (l *loader) paramValue(e *entry) (paramValue, bool) {
	v := e.val
	p := paramValue{at: v, text: v.text}
	switch v.kind {
	case stringKind:
		p.kind = "string"
		p.text = oneLine(v.text)
	case boolKind:
		p.kind, p.text = "bool", strings.ToLower(v.text)
	case numberKind:
		p.kind = "number"
		text, exact, ok := numberText(v.text)
		if !ok {
			l.errorAt(v, e.name, "parameter %s is not a finite number", quote(e.name))
			return p, false
		}
		if p.text = text; !exact {
			l.warnAt(v, e.name, "parameter %s is cut to six decimals: %s", quote(e.name), text).Hint = "make it a string to keep all of its digits"
		}
	case listKind:
		return l.paramList(e, p)
	default:
		l.errorAt(e.key, e.name, "parameter %s is %s", quote(e.name), v.kind).Hint = "a parameter is text, a number, a boolean or a list of texts"
		return p, false
	}
	return p, true
}

func (l *loader) paramList(e *entry, p paramValue) (paramValue, bool) {
	p.kind = "stringlist"
	quoted := make([]string, 0, len(e.val.items))
	for _, item := range e.val.items {
		if item.kind != stringKind {
			l.errorAt(item, e.name, "parameter %s has an item that is %s", quote(e.name), item.kind).Hint = "a list parameter holds texts only"
			return p, false
		}
		quoted = append(quoted, `"`+oneLine(item.text)+`"`)
	}
	p.text = "[" + strings.Join(quoted, ", ") + "]"
	return p, true
}

// numberText writes a number as it goes into the script: whole numbers
// without decimals, others with six.
func numberText(text string) (out string, exact, ok bool) {
	if n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64); err == nil {
		return strconv.FormatInt(n, 10), true, true
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false, false
	}
	if f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64), true, true
	}
	out = strconv.FormatFloat(f, 'f', 6, 64)
	back, err := strconv.ParseFloat(out, 64)
	return out, err == nil && back == f, true
}

// substitution is the work of putting parameters into one text.
type substitution struct {
	l      *loader
	src    *source
	params *parameters
	out    strings.Builder
	swaps  []swap
	copied int // how much of the original is in out
	issues []pendingIssue
}

// pendingIssue is a reference that cannot be replaced. It is reported once the
// document is parsed, and only if it is not in a comment.
type pendingIssue struct {
	ref           textRef
	message, hint string
}

// substitute puts the parameters into the raw text of a script, before it is
// parsed. There is one pass: values are not looked through again.
func (l *loader) substitute(src *source, params *parameters) []pendingIssue {
	s := &substitution{l: l, src: src, params: params}
	for name, p := range params.values {
		if isBuiltin(name) {
			l.warnAt(p.at, name, "parameter %s hides the built-in of that name", quote(name))
		}
	}
	matches := reference.FindAllStringSubmatchIndex(src.original, MaxReferencesCount+1)
	if len(matches) > MaxReferencesCount {
		l.errorSpan(src, 0, 0, "", "too many references to parameters: the limit is %d", MaxReferencesCount)
		return nil
	}
	for _, m := range matches {
		name, typ := src.original[m[4]:m[5]], ""
		if m[6] >= 0 {
			typ = src.original[m[6]:m[7]]
		}
		if m[2] >= 0 {
			s.swap(m[0], m[1], markEnvironment(name, typ), "")
			s.swaps[len(s.swaps)-1].env = true
		} else {
			s.reference(m[0], m[1], name, typ)
		}
		if size := len(src.original) - s.copied + s.out.Len(); size > MaxScriptBytes {
			l.errorSpan(src, m[0], m[1], "", "the script with its parameters is larger than %d MiB", MaxScriptBytes>>20)
			return nil
		}
	}
	s.out.WriteString(src.original[s.copied:])
	src.replaced(s.out.String(), s.swaps)
	return s.issues
}

// reference deals with one {name|typ} at original[start:end].
func (s *substitution) reference(start, end int, name, typ string) {
	p, known := s.params.values[name]
	switch typ {
	case "", "string", "number", "bool", "stringlist":
	default:
		if known { // else it is some other text in braces
			s.issue(start, end, fmt.Sprintf("parameter %s: there is no type %s", quote(name), quote(typ)),
				didYouMean(typ, []string{"string", "number", "bool", "stringlist"}))
		}
		return
	}
	if typ == "" && !known && strings.Trim(name, "0123456789") == "" {
		return // {4} repeats something in a regular expression
	}
	if typ == "" {
		typ = "string"
	}
	switch {
	case !known && isBuiltin(name) && typ == "string":
		s.swap(start, end, "{"+name+"|string}", "")
	case !known && isBuiltin(name):
		s.issue(start, end, fmt.Sprintf("the built-in %s is text, not a %s", quote(name), typ), "write {"+name+"}")
	case !known:
		s.unknown(start, end, name)
	case p.kind == anyKind:
		s.overridden(start, end, name, typ, p)
	case p.kind != typ:
		s.issue(start, end, fmt.Sprintf("parameter %s is a %s, but is used as a %s", quote(name), p.kind, typ), useAs(name, p.kind))
	case nestedIn(p) != "":
		s.issue(start, end, fmt.Sprintf("parameter %s holds the reference %s, and values are not looked through", quote(name), nestedIn(p)), "write out in it what the reference stands for")
	case typ == "string":
		s.swap(start, end, p.text, name)
	case !s.enclosed(start, end):
		s.issue(start, end, fmt.Sprintf("a %s parameter must stand alone between double quotes", typ), useAs(name, typ))
	default:
		s.swap(start-1, end+1, p.text, name)
	}
}

// nestedReference is a reference with its type: in a value it would be left
// over, and nobody means it as text.
var nestedReference = regexp.MustCompile(`\{([A-Za-z0-9_]+)\|(string|number|bool|stringlist)\}`)

// nestedIn gives the reference in a value, "" if there is none. Built-ins are
// none: they are replaced later.
func nestedIn(p paramValue) string {
	for _, m := range nestedReference.FindAllStringSubmatch(p.text, -1) {
		if !isBuiltin(m[1]) {
			return m[0]
		}
	}
	return ""
}

// overridden puts a parameter of the command line in.
func (s *substitution) overridden(start, end int, name, typ string, p paramValue) {
	s.params.used[name] = true
	v, ok := p.as(typ)
	switch {
	case !ok:
		s.issue(start, end, fmt.Sprintf("parameter %s of the command line is not a %s: %s", quote(name), typ, quote(p.text)), "")
	case typ == "string":
		s.swap(start, end, v.text, name)
	case !s.enclosed(start, end):
		s.issue(start, end, fmt.Sprintf("a %s parameter must stand alone between double quotes", typ), useAs(name, typ))
	default:
		s.swap(start-1, end+1, v.text, name)
	}
}

func useAs(name, kind string) string {
	if kind == "string" {
		return "write {" + name + "}"
	}
	return `write "{` + name + "|" + kind + `}", quotes included`
}

func (s *substitution) unknown(start, end int, name string) {
	hint := didYouMean(name, append(sortedKeys(s.params.values), "batch_idx", "run_id"))
	if !s.params.given {
		hint = "no parameters file was given: give one with --params FILE, or the value with --param " + name + "=VALUE"
	}
	message := "parameter " + quote(name) + " has no value"
	if s.params.broken {
		message = "" // what keeps the file from being read is reported
	}
	s.issue(start, end, message, hint)
}

func (s *substitution) enclosed(start, end int) bool {
	t := s.src.original
	return start-1 >= s.copied && t[start-1] == '"' && end < len(t) && t[end] == '"' && (start < 2 || t[start-2] != '\\')
}

func (s *substitution) swap(start, end int, text, param string) {
	s.out.WriteString(s.src.original[s.copied:start])
	from := s.out.Len()
	s.out.WriteString(text)
	s.swaps = append(s.swaps, swap{textStart: from, textEnd: s.out.Len(), origStart: start, origEnd: end, param: param})
	s.copied = end
}

// issue leaves the reference in the text and remembers what is wrong with it.
func (s *substitution) issue(start, end int, message, hint string) {
	from := s.out.Len() + start - s.copied
	s.issues = append(s.issues, pendingIssue{ref: textRef{from, from + end - start}, message: message, hint: hint})
}

// reportPending reports the references without a value; inside of a comment
// they do not matter. doc is nil when the text could not be parsed.
func (l *loader) reportPending(src *source, doc *value, issues []pendingIssue) {
	if len(issues) == 0 {
		return
	}
	scalars := scalarSpans(src, doc)
	for _, p := range issues {
		if doc == nil || overlaps(scalars, p.ref) {
			if p.message != "" {
				l.errorSpan(src, p.ref.start, p.ref.end, "", "%s", p.message).Hint = p.hint
			}
			src.pending = append(src.pending, p.ref)
		}
	}
}

// misplacedBuiltins warns of {batch_idx} and {run_id} where they stay as they are.
func (l *loader) misplacedBuiltins(src *source, doc *value) {
	var scalars []textRef
	templates := l.templates[src]
	sort.Slice(templates, func(i, j int) bool { return templates[i].start < templates[j].start })
	for _, s := range src.swaps {
		at := textRef{s.textStart, s.textEnd}
		if s.param != "" || s.env || overlaps(templates, at) {
			continue
		}
		if scalars == nil {
			scalars = scalarSpans(src, doc)
		}
		if overlaps(scalars, at) {
			l.report(Warning, src, at.start, at.end, "", "this is replaced in url_template only: here it stays as it is")
		}
	}
}

// overlaps reports whether one of the spans, which are in order, shares text with ref.
func overlaps(spans []textRef, ref textRef) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].start >= ref.end }) - 1
	return i >= 0 && spans[i].end > ref.start
}

// scalarSpans lists where the document's scalars and keys lie, in order.
func scalarSpans(src *source, doc *value) []textRef {
	var spans []textRef
	collectScalars(src, doc, map[*value]bool{}, &spans)
	sort.Slice(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	return spans
}

// collectScalars lists where the document's scalars and keys lie.
func collectScalars(src *source, v *value, seen map[*value]bool, out *[]textRef) {
	if v == nil || seen[v] {
		return
	}
	seen[v] = true
	if v.scalar() && v.src == src && !v.made {
		start, end := v.span()
		*out = append(*out, textRef{start, end})
	}
	for _, e := range v.entries {
		collectScalars(src, e.key, seen, out)
		collectScalars(src, e.val, seen, out)
	}
	for _, item := range v.items {
		collectScalars(src, item, seen, out)
	}
}
