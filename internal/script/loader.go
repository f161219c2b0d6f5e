package script

import (
	"fmt"
	"sort"
	"strings"

	"thalweg/internal/address"
	"thalweg/internal/expr"
)

// loader holds the state of one Load: what was found so far, and what is wrong.
type loader struct {
	script    *Script
	src       Sources
	fetched   map[string]fetched // pulled-in files by URL
	diags     []*Diagnostic
	files     []scriptFile // the script and what it includes, in the order of their nodes
	nodes     []*nodeDraft
	drafts    map[*Node]*nodeDraft
	keyPlaces map[string][]string // where each key of the language belongs; nil: nobody asked
	full      bool                // MaxDiagnosticsCount was reached: no need to look on
	describer Describer           // once a sql node needed one

	tables       map[string]*Node  // by name in lower case
	indexKeys    map[*Index]*value // where an index is defined
	byPolicy     map[string]*DependencyPolicy
	isIncluded   map[*source]bool
	secretPlaces map[*value]bool // where a secret's reference may be
	fileOrdinals map[string]int  // files in the order of their first mention

	standard  *DependencyPolicy     // the default one
	templates map[*source][]textRef // where {batch_idx} and {run_id} have a meaning
}

// errorSpan reports an error at src.text[start:end]. What it returns may be
// given a hint and related places.
func (l *loader) errorSpan(src *source, start, end int, path, format string, args ...any) *Diagnostic {
	return l.report(Error, src, start, end, path, fmt.Sprintf(format, args...))
}

// errorAt reports an error at a value: at all of a scalar, at the opening of a map or list.
func (l *loader) errorAt(v *value, path, format string, args ...any) *Diagnostic {
	return l.at(Error, v, path, fmt.Sprintf(format, args...))
}

// warnAt reports a warning at a value.
func (l *loader) warnAt(v *value, path, format string, args ...any) *Diagnostic {
	return l.at(Warning, v, path, fmt.Sprintf(format, args...))
}

func (l *loader) at(sev Severity, v *value, path, message string) *Diagnostic {
	if v == nil {
		return l.file(sev, "", path, message)
	}
	start, end := v.span()
	if v.src.isPending(start, end) {
		return &Diagnostic{} // the missing parameter is the problem
	}
	return l.report(sev, v.src, start, end, path, message)
}

// isPending reports whether the text contains a reference that has no value.
func (s *source) isPending(start, end int) bool {
	for _, p := range s.pending {
		if p.start < end && start < p.end {
			return true
		}
	}
	return false
}

func (l *loader) report(sev Severity, src *source, start, end int, path, message string) *Diagnostic {
	d := &Diagnostic{Severity: sev, Path: path, Message: message, Params: src.params(start, end)}
	from := src.origin(start, false)
	to := max(from, src.origin(end, true))
	d.Pos = src.pos(from)
	d.Source = src.line(d.Pos.Line)
	d.End = src.pos(to)
	return l.add(d)
}

// file reports a problem of a file as a whole.
func (l *loader) file(sev Severity, name, path, message string) *Diagnostic {
	return l.add(&Diagnostic{Severity: sev, Pos: Pos{File: name}, End: Pos{File: name}, Path: path, Message: message})
}

func (l *loader) add(d *Diagnostic) *Diagnostic {
	if len(l.diags) >= MaxDiagnosticsCount {
		l.full = true
		return &Diagnostic{}
	}
	l.diags = append(l.diags, d)
	return d
}

// exprError reports err, usually an *expr.Error, with its place inside v.
func (l *loader) exprError(v *value, path string, err error) *Diagnostic {
	e, ok := asExprError(err)
	if !ok {
		return l.errorAt(v, path, "%s", err.Error())
	}
	start, end := v.part(e.Offset, e.Offset+max(e.Length, 1))
	if v.src.isPending(v.span()) {
		return &Diagnostic{}
	}
	d := l.errorSpan(v.src, start, end, path, "%s", e.Message)
	d.Hint = e.Hint
	return d
}

// result sorts the diagnostics and drops repeated ones (an aliased value is
// checked once for each place where it is used).
func (l *loader) result() Diagnostics {
	sort.SliceStable(l.diags, func(i, j int) bool {
		a, b := l.diags[i], l.diags[j]
		if x, y := l.fileRank(a.Pos.File), l.fileRank(b.Pos.File); x != y {
			return x < y
		}
		if a.Pos.Line != b.Pos.Line {
			return a.Pos.Line < b.Pos.Line
		}
		return a.Pos.Col < b.Pos.Col
	})
	var out Diagnostics
	for i, d := range l.diags {
		if i > 0 && d.Pos == l.diags[i-1].Pos && d.Message == l.diags[i-1].Message && d.Pos.Line > 0 {
			continue
		}
		out = append(out, d.without(l.src.Known))
	}
	if l.full {
		out = append(out, Diagnostic{Severity: Error, Pos: Pos{File: l.script.Path}, End: Pos{File: l.script.Path},
			Message: fmt.Sprintf("there are more problems: only the first %d are shown", MaxDiagnosticsCount)})
	}
	return out
}

// fileRank orders files: parameters, script, then the rest by first mention.
func (l *loader) fileRank(name string) int {
	switch name {
	case address.Redact(l.src.ParamsPath):
		return -1
	case l.script.Path:
		return 0
	}
	if n, ok := l.fileOrdinals[name]; ok {
		return n
	}
	return len(l.fileOrdinals) + 1
}

// compile parses and types an expression. It gives nil after an error, and
// also, silently, when the types of what it refers to are unknown because of
// another error.
func (l *loader) compile(v *value, path string, sc scope, mode expr.Mode) *expr.Compiled {
	if v.secret {
		return nil // see misplacedSecrets
	}
	e, err := expr.Parse(v.text)
	if err != nil {
		l.exprError(v, path, err)
		return nil
	}
	for _, ref := range e.Refs() {
		if sc.unknown[ref.Alias] || sc.broken[ref] {
			return nil
		}
	}
	if l.foreignAlias(v, path, sc, e.Refs()) {
		return nil
	}
	mode.Nullable = func(r expr.Ref) bool { return sc.nulls[r] }
	mode.Zoned = func(r expr.Ref) string { return sc.zones[r] }
	mode.Unstored = func(r expr.Ref) bool { return sc.unstored[r] }
	mode.Values = sc.values
	c, err := e.Check(sc.types, mode)
	if err != nil {
		l.exprError(v, path, err)
		return nil
	}
	for _, note := range c.Notes() {
		l.exprError(v, path, note).Severity = Warning
	}
	return c
}

// scope says what an expression may refer to.
type scope struct {
	types    expr.Scope
	unknown  map[string]bool               // aliases whose fields are not known
	broken   map[expr.Ref]bool             // fields whose type is not known
	nulls    map[expr.Ref]bool             // fields that may be NULL
	values   func(expr.Ref) *expr.Compiled // what fields are computed by, in having
	zones    map[expr.Ref]string           // layouts of datetimes with zones of their own
	unstored map[expr.Ref]bool             // fields that are as a file has them
	place    string                        // what the expression is, for messages
	aliases  []string                      // aliases that are allowed here, in the order of messages
}

func newScope(place string) scope {
	return scope{types: expr.Scope{}, unknown: map[string]bool{}, broken: map[expr.Ref]bool{}, place: place}
}

// with adds an alias with its fields; known is false if the fields could not be determined.
func (s scope) with(alias string, fields map[string]expr.Type, known bool) scope {
	out := newScope(s.place)
	out.nulls, out.zones, out.unstored, out.values = s.nulls, s.zones, s.unstored, s.values
	out.aliases = append(append(out.aliases, s.aliases...), alias)
	for a, f := range s.types {
		out.types[a] = f
	}
	for a := range s.unknown {
		out.unknown[a] = true
	}
	for r := range s.broken {
		out.broken[r] = true
	}
	if !known {
		out.unknown[alias] = true
		return out
	}
	out.types[alias] = fields
	for name, t := range fields {
		if t == expr.Invalid {
			out.broken[expr.Ref{Alias: alias, Field: name}] = true
		}
	}
	return out
}

// foreignAlias reports references to aliases that exist elsewhere but not here.
func (l *loader) foreignAlias(v *value, path string, sc scope, refs []expr.Ref) bool {
	found := false
	for _, ref := range refs {
		if contains(sc.aliases, ref.Alias) || !contains([]string{"r", "l", "p", "w", statusAlias, constantAlias}, ref.Alias) {
			continue
		}
		start, end := findRef(v.text, ref)
		start, end = v.part(start, end)
		d := l.errorSpan(v.src, start, end, path, "%s.%s cannot be used in %s", ref.Alias, ref.Field, sc.place)
		d.Hint = "allowed here: " + strings.Join(starred(sc.aliases), ", ")
		if ref.Alias == "l" {
			d.Hint += "; l.* needs a node of type table_lookup_table"
		}
		found = true
	}
	return found
}

func starred(aliases []string) []string {
	out := make([]string, 0, len(aliases))
	for _, a := range aliases {
		if a != constantAlias && a != oldStatusAlias {
			out = append(out, a+".*")
		}
	}
	return out
}

// findRef finds where text refers to a field; the start of text if it does not find it.
func findRef(text string, ref expr.Ref) (start, end int) {
	want := ref.Alias + "." + ref.Field
	for at := 0; ; {
		i := strings.Index(text[at:], want)
		if i < 0 {
			return 0, len(text)
		}
		start, end = at+i, at+i+len(want)
		if (start == 0 || !isWordByte(text[start-1])) && (end == len(text) || !isWordByte(text[end])) {
			return start, end
		}
		at = end
	}
}

func isWordByte(c byte) bool {
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c >= 0x80
}
