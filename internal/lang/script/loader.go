package script

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// loader holds the state of one Load: what was found so far, and what is wrong.
type loader struct {
	*document.Report
	script    *Script
	src       Sources
	fetched   map[string]fetched // pulled-in files by URL
	files     []scriptFile       // the script and what it includes, in the order of their nodes
	nodes     []*nodeDraft
	drafts    map[*Node]*nodeDraft
	keyPlaces map[string][]string // where each key of the language belongs; nil: nobody asked
	partKeys  []string            // those of nodes, in order; nil: nobody asked
	describer Describer           // once a sql node needed one

	servingOnly bool // see LoadServing
	hooksOnly   bool // see LoadHooks

	tables       map[string]*Node           // by name in lower case
	indexKeys    map[*Index]*document.Value // where an index is defined
	byPolicy     map[string]*DependencyPolicy
	isIncluded   map[*document.Source]bool
	secretPlaces map[*document.Value]bool // where a secret's reference may be
	fileOrdinals map[string]int           // files in the order of their first mention

	answered  answered                             // what is known of the answers to gates
	standard  *DependencyPolicy                    // the default one
	templates map[*document.Source][]document.Span // where {batch_idx} and {run_id} have a meaning
}

// exprError reports err, usually an *expr.Error, with its place inside v.
func (l *loader) exprError(v *document.Value, path string, err error) *document.Diagnostic {
	e, ok := asExprError(err)
	if !ok {
		return l.ErrorAt(v, path, "%s", err.Error())
	}
	start, end := v.Part(e.Offset, e.Offset+max(e.Length, 1))
	if v.Src.IsPending(v.Span()) {
		return &document.Diagnostic{}
	}
	d := l.ErrorSpan(v.Src, start, end, path, "%s", e.Message)
	d.Hint = e.Hint
	return d
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
func (l *loader) compile(v *document.Value, path string, sc scope, mode expr.Mode) *expr.Compiled {
	if v.Secret {
		return nil // see misplacedSecrets
	}
	e, err := expr.Parse(v.Text)
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
	if note := e.Comment(); note != nil {
		d := l.exprError(v, path, note)
		if !mode.MeanFloat { // Capillaries' forms have comments
			d.Severity = document.Warning
		}
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
		l.exprError(v, path, note).Severity = document.Warning
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
	maps.Copy(out.types, s.types)
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
func (l *loader) foreignAlias(v *document.Value, path string, sc scope, refs []expr.Ref) bool {
	found := false
	for _, ref := range refs {
		if slices.Contains(sc.aliases, ref.Alias) ||
			!slices.Contains([]string{"r", "l", "p", "w", statusAlias, constantAlias}, ref.Alias) {
			continue
		}
		start, end := findRef(v.Text, ref)
		start, end = v.Part(start, end)
		d := l.ErrorSpan(v.Src, start, end, path, "%s.%s cannot be used in %s", ref.Alias, ref.Field, sc.place)
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
