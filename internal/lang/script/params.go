package script

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"thalweg/internal/base/action"

	"thalweg/internal/base/document"
	"thalweg/internal/base/similar"
)

// paramValue is the value of a parameter.
type paramValue struct {
	kind string // string, number, bool, stringlist: as a reference names it
	text string // what a reference is replaced by
	at   *document.Value

	exact bool // a number that is put in with all of its digits

	literal bool // see hole
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

// parameters are the values that references can have.
type parameters struct {
	values map[string]paramValue
	given  bool            // whether there is a parameters file
	broken bool            // it could not be read: which values it has is not known
	used   map[string]bool // those of the command line that the script refers to
	guess  bool            // what has no value is put in as if it had one: to find the answers alone
}

// anyKind is the kind of parameters of the command line: they are what the
// reference asks for.
const anyKind = ""

// SpareParam begins the name of a parameter of the command line that a script need not
// refer to, and that gives way to one without it: those of an environment.
const SpareParam = "?"

// override adds the parameters of the command line, which win.
func (p *parameters) override(values map[string]string, literal bool) {
	for name, text := range values {
		spare := false
		if name, spare = strings.CutPrefix(name, SpareParam); spare {
			if _, given := values[name]; given {
				continue
			}
		}
		p.values[name] = paramValue{kind: anyKind, text: text, literal: literal}
	}
}

// offer adds parameters that count where nobody gives others.
func (p *parameters) offer(values map[string]string) {
	for name, text := range values {
		if _, given := p.values[name]; !given {
			p.values[name] = paramValue{kind: anyKind, text: text, literal: name == ParamWatchedFile} // anybody's
		}
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
		text, _, number := numberText(strings.TrimSpace(p.text))
		if ok = number; !p.exact {
			p.text = text
		}
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

// unusedParams reports parameters of the command line to which nothing refers.
func (l *loader) unusedParams(p *parameters, text string) {
	for _, name := range slices.Sorted(maps.Keys(l.src.Params)) {
		if !p.used[name] && !strings.HasPrefix(name, SpareParam) {
			d := l.AddFile(document.Error, l.script.Path, "", "the script has no reference to parameter "+
				document.Quote(name)+" of the command line")
			d.Hint = knownParams(name, Parameters(text))
		}
	}
}

// Parameter is one that a script refers to.
type Parameter struct{ Name, Type string }

// Parameters lists what a script's text refers to as parameters, in their first order.
func Parameters(text string) (out []Parameter) {
	for _, m := range document.Reference.FindAllStringSubmatch(text, MaxReferencesCount) {
		one := Parameter{Name: m[2], Type: m[3]}
		if one.Type == "" {
			one.Type = "string"
		}
		known := slices.ContainsFunc(out, func(p Parameter) bool { return p.Name == one.Name })
		if m[1] == "" && !known && !isBuiltin(one.Name) && strings.Trim(one.Name, "0123456789") != "" &&
			paramTypes[one.Type] {
			out = append(out, one)
		}
	}
	return out
}

var paramTypes = map[string]bool{"string": true, "number": true, "bool": true, "stringlist": true}

// knownParams says which parameters there are instead of one that there is not.
func knownParams(name string, known []Parameter) string {
	if len(known) == 0 {
		return "the script has no parameters: {" + name + "} in it would make one"
	}
	var names, list []string
	for _, p := range known {
		names, list = append(names, p.Name), append(list, p.Name+" ("+p.Type+")")
	}
	hint := "its parameters are " + strings.Join(list, ", ")
	if near := similar.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return hint
}

// oneLine writes line breaks as \n: a value stands inside of quotes.
func oneLine(text string) string {
	return strings.NewReplacer("\r\n", `\n`, "\n", `\n`).Replace(text)
}

// readParams reads the parameters file: a flat map of names to values.
// broken: there is none in it, and that is reported.
func (l *loader) readParams(src *document.Source) (params map[string]paramValue, broken bool) {
	params = map[string]paramValue{}
	doc := l.parse(src)
	if doc == nil {
		return params, true
	}
	if doc.Kind == document.Null {
		return params, false
	}
	if doc.Kind != document.Map {
		l.ErrorAt(doc, "", "the parameters must be a map of names to values, not %s", doc.Kind)
		return params, true
	}
	for _, e := range l.uniqueEntries(doc, "") {
		if p, ok := l.paramValue(e); ok {
			params[e.Name] = p
		}
	}
	return params, false
}

func (l *loader) paramValue(e *document.Entry) (paramValue, bool) {
	v := e.Value
	p := paramValue{at: v, text: v.Text}
	switch v.Kind {
	case document.String:
		p.kind = "string"
		p.text = oneLine(v.Text)
	case document.Bool:
		p.kind, p.text = "bool", strings.ToLower(v.Text)
	case document.Number:
		p.kind = "number"
		text, exact, ok := numberText(v.Text)
		if !ok {
			l.ErrorAt(v, e.Name, "parameter %s is not a finite number", document.Quote(e.Name))
			return p, false
		}
		if p.text = text; !exact {
			l.WarnAt(v, e.Name, "parameter %s is cut to six decimals: %s", document.Quote(e.Name),
				text).Hint = "make it a string to keep all of its digits"
		}
	case document.List:
		return l.paramList(e, p)
	default:
		l.ErrorAt(e.Key, e.Name, "parameter %s is %s", document.Quote(e.Name),
			v.Kind).Hint = "a parameter is text, a number, a boolean or a list of texts"
		return p, false
	}
	return p, true
}

func (l *loader) paramList(e *document.Entry, p paramValue) (paramValue, bool) {
	p.kind = "stringlist"
	quoted := make([]string, 0, len(e.Value.Items))
	for _, item := range e.Value.Items {
		if item.Kind != document.String {
			l.ErrorAt(item, e.Name, "parameter %s has an item that is %s", document.Quote(e.Name),
				item.Kind).Hint = "a list parameter holds texts only"
			return p, false
		}
		quoted = append(quoted, `"`+oneLine(item.Text)+`"`)
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
	src    *document.Source
	params *parameters
	out    strings.Builder
	swaps  []document.Swap
	copied int // how much of the original is in out
	issues []pendingIssue
	holes  []hole
}

// pendingIssue is a reference that cannot be replaced. It is reported once the
// document is parsed, and only if it is not in a comment.
type pendingIssue struct {
	ref           document.Span
	message, hint string
}

// substitute puts the parameters into the raw text of a script, before it is
// parsed. There is one pass: values are not looked through again.
func (l *loader) substitute(src *document.Source, params *parameters) ([]pendingIssue, []hole) {
	s := &substitution{src: src, params: params}
	for name, p := range params.values {
		if isBuiltin(name) {
			l.WarnAt(p.at, name, "parameter %s hides the built-in of that name", document.Quote(name))
		}
	}
	matches := document.Reference.FindAllStringSubmatchIndex(src.Original, MaxReferencesCount+1)
	if len(matches) > MaxReferencesCount {
		l.ErrorSpan(src, 0, 0, "", "too many references to parameters: the limit is %d", MaxReferencesCount)
		return nil, nil
	}
	for _, m := range matches {
		name, typ := src.Original[m[4]:m[5]], ""
		if m[6] >= 0 {
			typ = src.Original[m[6]:m[7]]
		}
		if m[2] >= 0 {
			s.swap(m[0], m[1], markEnvironment(name, typ), "")
			s.swaps[len(s.swaps)-1].Env = true
		} else {
			s.reference(m[0], m[1], name, typ)
		}
		if size := len(src.Original) - s.copied + s.out.Len(); size > document.MaxBytes {
			l.ErrorSpan(src, m[0], m[1], "", "the script with its parameters is larger than %d MiB",
				document.MaxBytes>>20)
			return nil, nil
		}
	}
	s.out.WriteString(src.Original[s.copied:])
	src.Replace(s.out.String(), s.swaps)
	return s.issues, s.holes
}

// reference deals with one {name|typ} at original[start:end].
func (s *substitution) reference(start, end int, name, typ string) {
	p, known := s.params.values[name]
	switch typ {
	case "", "string", "number", "bool", "stringlist":
	case "literal": // braces that are meant as they stand
		s.swap(start, end, "{"+name+"}", "")
		s.swaps[len(s.swaps)-1].Literal = true
		return
	default:
		if known { // else it is some other text in braces
			s.issue(start, end, fmt.Sprintf("parameter %s: there is no type %s", document.Quote(name),
				document.Quote(typ)),
				document.DidYouMean(typ, []string{"string", "number", "bool", "stringlist"}))
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
		s.issue(start, end, fmt.Sprintf("the built-in %s is text, not a %s", document.Quote(name), typ),
			"write {"+name+"}")
	case !known && s.params.guess:
		s.swap(start, end, "0", "")
	case !known:
		s.unknown(start, end, name)
	case p.kind == anyKind:
		s.overridden(start, end, name, typ, p)
	case p.kind != typ:
		s.issue(start, end, fmt.Sprintf("parameter %s is a %s, but is used as a %s", document.Quote(name), p.kind, typ),
			useAs(name, p.kind))
	case nestedIn(p) != "":
		s.issue(start, end, fmt.Sprintf("parameter %s holds the reference %s, and values are not looked through",
			document.Quote(name), nestedIn(p)), "write out in it what the reference stands for")
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
		s.issue(start, end, fmt.Sprintf("parameter %s of the command line is not a %s: %s", document.Quote(name), typ,
			document.Quote(p.text)), wantedOf(typ))
	case typ == "string":
		s.hole(start, end, name, typ, v)
	case !s.enclosed(start, end):
		s.issue(start, end, fmt.Sprintf("a %s parameter must stand alone between double quotes", typ), useAs(name, typ))
	default:
		s.hole(start-1, end+1, name, typ, v)
	}
}

func (s *substitution) hole(start, end int, name, typ string, v paramValue) {
	s.swap(start, end, v.text, name)
	s.holes = append(s.holes, hole{swap: len(s.swaps) - 1, name: name, typ: typ, text: v.text, literal: v.literal})
}

// wantedOf shows what a parameter of a type looks like.
func wantedOf(typ string) string {
	if typ == "bool" {
		return "write true or false"
	}
	return "write a number, such as 12 or 0.5"
}

func useAs(name, kind string) string {
	if kind == "string" {
		return "write {" + name + "}"
	}
	return `write "{` + name + "|" + kind + `}", quotes included`
}

func (s *substitution) unknown(start, end int, name string) {
	hint := document.DidYouMean(name, append(slices.Sorted(maps.Keys(s.params.values)), "batch_idx", "run_id"))
	if !s.params.given {
		hint = "no parameters file was given: give one with {{set params=FILE}}, or the value with " +
			action.Setting("param", name+"=VALUE")
	}
	if givenBy(name) != "" {
		hint = byHand(name)
	}
	if s.withinFileName(start) {
		hint = "if it stands for a part of the files' names, write <" + name + ">, which becomes a column; " + hint
	}
	message := "parameter " + document.Quote(name) + " has no value"
	if s.params.broken {
		message = "" // what keeps the file from being read is reported
	}
	s.issue(start, end, message, hint)
}

// withinFileName reports whether a reference stands behind the beginning of a name of input files.
func (s *substitution) withinFileName(start int) bool {
	line := s.src.Original[strings.LastIndexByte(s.src.Original[:start], '\n')+1 : start]
	return strings.Contains(line, "urls") && strings.HasSuffix(line, "/")
}

func (s *substitution) enclosed(start, end int) bool {
	t := s.src.Original
	return start-1 >= s.copied && t[start-1] == '"' && end < len(t) && t[end] == '"' &&
		(start < 2 || t[start-2] != '\\')
}

func (s *substitution) swap(start, end int, text, param string) {
	s.out.WriteString(s.src.Original[s.copied:start])
	from := s.out.Len()
	s.out.WriteString(text)
	s.swaps = append(s.swaps, document.Swap{TextStart: from, TextEnd: s.out.Len(), OrigStart: start, OrigEnd: end,
		Param: param})
	s.copied = end
}

// issue leaves the reference in the text and remembers what is wrong with it.
func (s *substitution) issue(start, end int, message, hint string) {
	from := s.out.Len() + start - s.copied
	s.issues = append(s.issues, pendingIssue{ref: document.Span{Start: from, End: from + end - start}, message: message,
		hint: hint})
}

// reportPending reports the references without a value; inside of a comment
// they do not matter. doc is nil when the text could not be parsed.
func (l *loader) reportPending(src *document.Source, doc *document.Value, issues []pendingIssue) {
	if len(issues) == 0 {
		return
	}
	scalars, own := scalarSpans(src, doc), ownBraces(src, doc)
	for _, p := range issues {
		if overlaps(own, p.ref) {
			continue
		}
		if doc == nil || overlaps(scalars, p.ref) {
			if p.message != "" {
				l.ErrorSpan(src, p.ref.Start, p.ref.End, "", "%s", p.message).Hint = p.hint
			}
			src.Pending = append(src.Pending, p.ref)
		}
	}
}

// misplacedBuiltins warns of {batch_idx} and {run_id} where they stay as they are.
func (l *loader) misplacedBuiltins(src *document.Source, doc *document.Value) {
	var scalars []document.Span
	templates := l.templates[src]
	sort.Slice(templates, func(i, j int) bool { return templates[i].Start < templates[j].Start })
	for _, s := range src.Swaps {
		at := document.Span{Start: s.TextStart, End: s.TextEnd}
		if s.Param != "" || s.Env || s.Literal || overlaps(templates, at) {
			continue
		}
		if scalars == nil {
			scalars = scalarSpans(src, doc)
		}
		if overlaps(scalars, at) {
			l.AddSpan(document.Warning, src, at.Start, at.End, "",
				"this is replaced in url_template only: here it stays as it is")
		}
	}
}

// overlaps reports whether one of the spans, which are in order, shares text with ref.
func overlaps(spans []document.Span, ref document.Span) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].Start >= ref.End }) - 1
	return i >= 0 && spans[i].End > ref.Start
}

// scalarSpans lists where the document's scalars and keys lie, in order.
func scalarSpans(src *document.Source, doc *document.Value) []document.Span {
	var spans []document.Span
	collectScalars(src, doc, map[*document.Value]bool{}, &spans)
	sort.Slice(spans, func(i, j int) bool { return spans[i].Start < spans[j].Start })
	return spans
}

// collectScalars lists where the document's scalars and keys lie.
func collectScalars(src *document.Source, v *document.Value, seen map[*document.Value]bool, out *[]document.Span) {
	if v == nil || seen[v] {
		return
	}
	seen[v] = true
	if v.Scalar() && v.Src == src && !v.Made {
		start, end := v.Span()
		*out = append(*out, document.Span{Start: start, End: end})
	}
	for _, e := range v.Entries {
		collectScalars(src, e.Key, seen, out)
		collectScalars(src, e.Value, seen, out)
	}
	for _, item := range v.Items {
		collectScalars(src, item, seen, out)
	}
}
