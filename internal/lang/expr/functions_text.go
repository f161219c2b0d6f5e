package expr

import (
	"regexp/syntax"
	"strings"
	"time"

	"thalweg/internal/base/sqltext"
)

func textFunctions() []*function {
	pair := []param{text("s"), text("part")}
	simple := func(name, sqlName, doc string) *function {
		return &function{name: name, group: "Text", params: pair, result: Bool, doc: doc + " Beyond Capillaries.",
			sql: func(r *renderer, n *node) string {
				return sqlName + "(" + r.sql(n.args[0]) + ", " + r.sql(n.args[1]) + ")"
			}}
	}
	return []*function{
		{name: "len", group: "Text", params: []param{text("s")}, result: GoInt,
			doc: "Length in bytes. It can be compared and computed with; as the value of an int field write " +
				"int(len(s)).", check: func(_ *checker, n *node) *Error {
				if s, ok := n.args[0].val.(string); ok {
					n.constant(int64(len(s)))
				}
				return nil
			},
			sql: func(r *renderer, n *node) string { return "strlen(" + r.sql(n.args[0]) + ")" }},
		{name: "fmt.Sprintf", group: "Text", params: []param{text("format"), {"a", printable()}}, variadic: true,
			result: String,
			doc: "Go's formatting, with all its verbs and flags; a decimal2 and a datetime are printed as their " +
				"text. A verb that does not fit its argument, a missing and an extra argument give Go's marks, " +
				"such as %!d(string=x), and a warning at load time. " +
				"Usual verbs with a literal format are fast (%d %x %X %o %b for int, %f %e %g for float, " +
				"%s %x for string, %t for bool, %s for decimal2 and datetime, " +
				"%v for any; flags - + 0 and blank, width, precision); everything else costs a microsecond or two. " +
				"Widths end at 1,000 characters. The result has [a limit](#how-long-texts-can-be).",
			check: checkSprintf, sql: sqlSprintf},
		{name: "strings.ReplaceAll", group: "Text", params: []param{text("s"), text("old"), text("new")},
			result: String,
			doc:    "Every old in s becomes new. The result has [a limit](#how-long-texts-can-be).",
			check:  checkReplace, sql: sqlReplace},
		simple("strings.Contains", "contains", "Whether part is in s."),
		simple("strings.HasPrefix", "starts_with", "Whether s starts with part."),
		simple("strings.HasSuffix", "suffix", "Whether s ends with part."),
		{name: "re.MatchString", group: "Text", params: []param{text("pattern"), text("s")}, result: Bool,
			doc: "Whether the regular expression (RE2, as Go's) matches somewhere in s. A wrong pattern is an error: " +
				"at load time if it is a literal.",
			check: checkMatch, sql: sqlMatch},
	}
}

// formatOf finds the literal format of n and splits it.
func formatOf(f *node) ([]piece, *Error) {
	format, ok := f.val.(string)
	if !ok {
		return nil, f.at.errorf("the format must be a literal")
	}
	pieces, bad := parseFormat(format)
	if bad != nil {
		return nil, inLiteral(f, format, bad.offset, bad.length).errorf("%s", bad.message).hint("%s", bad.hint)
	}
	return pieces, nil
}

// inLiteral finds a range of a string constant in the source; the whole
// literal when it was put together.
func inLiteral(n *node, value string, offset, length int) span {
	start := strings.Index(n.raw, value)
	if n.raw == "" || start < 0 {
		return n.at
	}
	return span{n.at.off + start + offset, length}
}

func checkSprintf(_ *checker, n *node) *Error {
	pieces, problem := nativePieces(n)
	if problem == nil {
		n.aux = pieces
		return nil
	}
	n.plain = false // Go prints it, row by row: see printedByGo
	format, literal := n.args[0].val.(string)
	if !literal {
		return nil
	}
	if tooWide(format) {
		return problem
	}
	if mark := marked(format, n.args[1:]); mark != "" {
		problem.Message += ": it prints " + mark
		n.note = problem
	}
	return nil
}

// nativePieces splits the format if DuckDB can print all of it; else the
// error says what it cannot.
func nativePieces(n *node) ([]piece, *Error) {
	format := n.args[0]
	pieces, err := formatOf(format)
	if err != nil {
		return nil, err
	}
	args := n.args[1:]
	used := 0
	n.plain = true
	for _, p := range pieces {
		if p.verb == nil {
			n.plain = n.plain && !strings.Contains(p.literal, `"`)
			continue
		}
		at := inLiteral(format, format.val.(string), p.offset, len(p.verb.text))
		if used == len(args) {
			return nil, at.errorf("%s has no argument", p.verb.text).
				hint("the format has more verbs than arguments follow")
		}
		a := args[used]
		used++
		if problem, hint := p.verb.fits(a.typ); problem != "" {
			return nil, at.errorf("%s (`%s`)", problem, shorten(a.text)).hint("%s", hint)
		}
		n.plain = n.plain && (a.typ != String || a.plain)
	}
	if used < len(args) {
		return nil, args[used].at.errorf("the format has no verb for this argument").
			hint("one verb for each argument: %%d, %%s, …")
	}
	return pieces, nil
}

func sqlSprintf(r *renderer, n *node) string {
	pieces, native := n.aux.([]piece)
	if !native {
		return r.printedByGo(shorten(n.text), r.sql(n.args[0]), n.args[1:])
	}
	var parts []textPart
	var texts []string
	used := 1
	for _, p := range pieces {
		part := textPart{sql: sqltext.String(p.literal)}
		if p.verb != nil {
			a := n.args[used]
			part = textPart{sql: r.formatted(a, p.verb), from: a, bare: a.typ == String && p.verb.bare()}
			used++
		}
		parts, texts = append(parts, part), append(texts, part.sql)
	}
	if len(parts) == 0 {
		return "''"
	}
	join := func(texts []string) string { return r.concat(n.args[1:], texts) }
	if r.guard == guardOn && n.grows() {
		return r.checkedSum(n, parts, leastBytes(pieces), join)
	}
	return join(texts)
}

func checkReplace(_ *checker, n *node) *Error {
	n.plain = n.args[0].plain && n.args[2].plain
	s, a := n.args[0].val.(string)
	from, b := n.args[1].val.(string)
	to, c := n.args[2].val.(string)
	if a && b && c {
		return n.constantText(len(s)+strings.Count(s, from)*(len(to)-len(from)),
			func() string { return strings.ReplaceAll(s, from, to) })
	}
	return nil
}

func sqlReplace(r *renderer, n *node) string {
	s, from, to := n.args[0], n.args[1], n.args[2]
	checked := r.guard == guardOn && n.grows()
	if v, ok := from.val.(string); ok && v != "" && !checked {
		return "replace(" + r.sql(s) + ", " + r.sql(from) + ", " + r.sql(to) + ")"
	}
	// Go puts new around every character when old is empty; DuckDB does nothing.
	return r.let(s, func(text string) string {
		return r.let(from, func(old string) string {
			return r.let(to, func(new string) string {
				around := "coalesce(array_to_string(list_transform(regexp_extract_all(" + text +
					", '(?s).'), lambda c: c || " + new + "), ''), '')"
				made := "CASE WHEN " + text + " IS NULL THEN NULL WHEN " + old + " = '' THEN " + new + " || " + around +
					" ELSE replace(" + text + ", " + old + ", " + new + ") END"
				if !checked {
					return made
				}
				return r.checked(n, "thalweg_replaced_bytes("+text+", "+old+", "+new+")", made)
			})
		})
	})
}

func checkMatch(_ *checker, n *node) *Error {
	pattern := n.args[0]
	p, ok := pattern.val.(string)
	if !ok {
		n.raises = true
		return nil
	}
	if _, err := syntax.Parse(p, syntax.Perl); err != nil {
		return pattern.at.errorf("the pattern is wrong: %v", err)
	}
	return nil
}

func sqlMatch(r *renderer, n *node) string {
	pattern := r.sql(n.args[0])
	if p, ok := n.args[0].val.(string); ok {
		// Go knows a second way to write a named group that DuckDB's RE2 does not.
		pattern = sqltext.String(renameGroups(p))
	}
	return "regexp_matches(" + r.sql(n.args[1]) + ", " + pattern + ")"
}

// renameGroups rewrites (?<name>…) as (?P<name>…), not inside \Q…\E or a class.
func renameGroups(p string) string {
	if !strings.Contains(p, "(?<") {
		return p
	}
	var b strings.Builder
	class, quoted := false, false
	for i := 0; i < len(p); i++ {
		switch {
		case quoted:
			quoted = !strings.HasPrefix(p[i:], `\E`)
		case p[i] == '\\' && i+1 < len(p):
			quoted = p[i+1] == 'Q'
			b.WriteByte(p[i])
			i++
		case class:
			class = p[i] != ']'
		case p[i] == '[':
			class = true
			if i+1 < len(p) && p[i+1] == '^' {
				b.WriteByte('[')
				i++
			}
			if i+1 < len(p) && p[i+1] == ']' {
				b.WriteByte(p[i])
				i++
			}
		case strings.HasPrefix(p[i:], "(?<"):
			b.WriteString("(?P")
			i += len("(?") - 1
			continue
		}
		b.WriteByte(p[i])
	}
	return b.String()
}

func numberFunctions() []*function {
	x := []param{{"x", numeric()}}
	toFloat := func(c *checker, n *node) *Error {
		n.args[0] = c.convert(n.args[0], Float)
		n.raises = n.args[0].raises
		return nil
	}
	return []*function{
		{name: "math.Sqrt", group: "Numbers", params: x, result: Float, doc: "Square root; NaN for a negative number.",
			check: toFloat, sql: func(r *renderer, n *node) string {
				return r.let(n.args[0], func(v string) string {
					return "CASE WHEN " + v + " < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt(" + v + ") END"
				})
			}},
		{name: "math.Round", group: "Numbers", params: x, result: Float,
			doc:   "Nearest whole number as a float, half away from zero.",
			check: toFloat, sql: func(r *renderer, n *node) string { return "round(" + r.sql(n.args[0]) + ")" }},
	}
}

// checkMicroseconds refuses an instant that a TIMESTAMP cannot hold.
func checkMicroseconds(n *node, t time.Time) *Error {
	if t.Nanosecond()%1000 != 0 {
		return n.at.errorf("%s has digits below a microsecond", t.Format(time.RFC3339Nano))
	}
	if y := t.Year(); y < minYear || y > maxYear {
		return n.at.errorf("year %d is outside %d … %d", y, minYear, maxYear)
	}
	n.constant(t)
	return nil
}

// The years that DuckDB's TIMESTAMP surely covers.
const (
	minYear = -290000
	maxYear = 290000
)

// layoutOf returns the literal layout of n.
func layoutOf(n *node) (string, *Error) {
	layout, ok := n.val.(string)
	if !ok {
		return "", n.at.errorf("the layout must be a literal").hint("a Go layout, such as \"2006-01-02 15:04:05\"")
	}
	for _, e := range parseLayout(layout) {
		if e.kind != literalText {
			return layout, nil
		}
	}
	return "", n.at.errorf("the layout %q names no part of a time", layout).
		hint("Go layouts are written with 2006-01-02 15:04:05: %s", goLayout(layout))
}
