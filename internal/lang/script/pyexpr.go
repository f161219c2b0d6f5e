package script

import (
	"strings"

	"thalweg/internal/base/document"
	"thalweg/internal/lang/expr"
)

// pyRef is a reference to a field in Python text.
type pyRef struct {
	expr.Ref
	start, end int
}

// pyCall is a call of a named function.
type pyCall struct {
	name       string
	start, end int // of the name
	positional int
	keywords   []string
	spread     bool // *args or **kwargs: the count is not known
}

// pyExpression lists the fields, calls and names of a Python expression, for the checks.
type pyExpression struct {
	refs  []pyRef
	alien []pyRef // l.x and w.x: fields that Python does not see, unless l and w are names of its own
	calls []*pyCall
	bound map[string]bool // names that the expression itself binds: lambda, for, :=
	// A problem of the text itself: message, and where.
	problem    string
	start, end int
}

// parsePyExpression finds references and calls in Python text.
func parsePyExpression(text string) *pyExpression {
	e := &pyExpression{bound: map[string]bool{}}
	e.scan(text, 0, 0)
	if e.problem == "" && strings.TrimSpace(text) == "" {
		e.fail("the expression is empty", 0, len(text))
	}
	return e
}

func (e *pyExpression) fail(message string, start, end int) {
	if e.problem == "" {
		e.problem, e.start, e.end = message, start, end
	}
}

// pyFrame is an open bracket.
type pyFrame struct {
	call   *pyCall // nil: not the parentheses of a call
	open   pyToken
	tokens int  // in the current argument
	lambda bool // between lambda and its colon, where commas separate parameters
	first  pyToken
	second pyToken
}

// maxFormatDepth bounds f-strings within f-strings.
const maxFormatDepth = 4

// pyExprScan is the walk over one expression.
type pyExprScan struct {
	e      *pyExpression
	base   int // offset of the text in the whole expression
	depth  int // of f-strings
	frames []*pyFrame
	prev   [3]pyToken // the tokens before, last first
	broken pyToken    // a line break outside of brackets: wrong unless nothing follows
	binds  bool       // between for and in, or lambda and its colon: names are bound
}

func (e *pyExpression) scan(text string, base, depth int) {
	w := &pyExprScan{e: e, base: base, depth: depth, frames: []*pyFrame{{}}}
	s := newPyScanner(text)
	for t := s.next(); t.kind != pyEnd && e.problem == ""; t = s.next() {
		w.token(t, text)
		if t.kind != pyNewline {
			w.prev = [3]pyToken{t, w.prev[0], w.prev[1]}
		}
	}
	if open := w.top(); len(w.frames) > 1 {
		e.fail("the bracket "+document.Quote(open.open.text)+" is not closed", base+open.open.start, base+open.open.end)
	}
	if last := w.prev[0]; last.kind == pyOp && depth == 0 && !strings.Contains(")]}", last.text) && last.text != "..." {
		e.fail("the expression ends in "+document.Quote(last.text), base+last.start, base+last.end)
	}
}

func (w *pyExprScan) top() *pyFrame { return w.frames[len(w.frames)-1] }

func (w *pyExprScan) token(t pyToken, text string) {
	f := w.top()
	if t.kind != pyNewline && !(t.kind == pyOp && (t.text == "," || strings.Contains(")]}", t.text))) {
		switch f.tokens {
		case 0:
			f.first = t
		case 1:
			f.second = t
		}
		f.tokens++
	}
	if w.broken.kind == pyNewline && t.kind != pyNewline {
		w.e.fail("the expression goes on in a new line, which Python allows only inside of brackets", w.base+t.start,
			w.base+t.end)
	}
	switch t.kind {
	case pyBad:
		w.e.fail(badToken(t), w.base+t.start, w.base+t.end)
	case pyNewline:
		w.broken = t
	case pyString:
		w.format(t)
	case pyName:
		w.word(t, text)
	case pyOp:
		w.operator(t)
	}
}

func badToken(t pyToken) string {
	if strings.ContainsAny(t.text, "'\"") {
		return "the string has no closing quote"
	}
	return "Python has no " + document.Quote(t.text)
}

// word looks at a name: a field, a function, a bound variable, or of no interest.
func (w *pyExprScan) word(t pyToken, text string) {
	afterDot := isDot(w.prev[0])
	owner := w.prev[1]
	rest := strings.TrimLeft(text[t.end:], " \t\r\n")
	switch {
	case afterDot && owner.kind == pyName && (owner.text == "r" || owner.text == "p") && !isDot(w.prev[2]):
		w.e.refs = append(w.e.refs, pyRef{Ref: expr.Ref{Alias: owner.text, Field: t.text}, start: w.base + owner.start,
			end: w.base + t.end})
	case afterDot && owner.kind == pyName && (owner.text == "l" || owner.text == "w") && !isDot(w.prev[2]):
		w.e.alien = append(w.e.alien, pyRef{Ref: expr.Ref{Alias: owner.text, Field: t.text},
			start: w.base + owner.start, end: w.base + t.end})
	case afterDot:
	case t.text == "for":
		w.binds = true
	case t.text == "lambda":
		w.binds, w.top().lambda = true, true
	case t.text == "in":
		w.binds = false
	case isPyKeyword(t.text):
	case w.binds || strings.HasPrefix(rest, ":="):
		w.e.bound[t.text] = true
	case (t.text == "r" || t.text == "p") && !strings.HasPrefix(rest, ".") && !w.keyword(rest):
		w.e.fail(t.text+" alone is not a value", w.base+t.start, w.base+t.end)
	}
}

// keyword reports whether the name just read is the name of a keyword argument.
func (w *pyExprScan) keyword(rest string) bool {
	return w.top().call != nil && w.top().tokens == 1 && strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==")
}

func isDot(t pyToken) bool { return t.kind == pyOp && t.text == "." }

func (w *pyExprScan) operator(t pyToken) {
	switch t.text {
	case "(", "[", "{":
		f := &pyFrame{open: t}
		if name := w.prev[0]; t.text == "(" && name.kind == pyName && !isPyKeyword(name.text) && !isDot(w.prev[1]) {
			f.call = &pyCall{name: name.text, start: w.base + name.start, end: w.base + name.end}
		}
		w.frames = append(w.frames, f)
	case ")", "]", "}":
		w.close(t)
	case ",":
		if f := w.top(); !f.lambda {
			w.argument(f)
		}
	case ":":
		w.binds, w.top().lambda = false, false
	case "=":
		if f := w.top(); f.call == nil || f.tokens != 2 {
			if !f.lambda {
				w.e.fail("an assignment is not an expression", w.base+t.start, w.base+t.end)
			}
		}
	case ";", "@=", "+=", "-=", "*=", "/=", "%=", "->":
		w.e.fail(document.Quote(t.text)+" cannot be part of an expression", w.base+t.start, w.base+t.end)
	}
}

func (w *pyExprScan) close(t pyToken) {
	f := w.top()
	pairs := map[string]string{"(": ")", "[": "]", "{": "}"}
	if len(w.frames) == 1 || pairs[f.open.text] != t.text {
		w.e.fail("the bracket "+document.Quote(t.text)+" closes nothing", w.base+t.start, w.base+t.end)
		return
	}
	w.argument(f)
	w.frames = w.frames[:len(w.frames)-1]
	if f.call != nil {
		w.e.calls = append(w.e.calls, f.call)
	}
}

// argument ends an argument of a call.
func (w *pyExprScan) argument(f *pyFrame) {
	if f.call != nil && f.tokens > 0 {
		switch {
		case f.first.text == "*" || f.first.text == "**":
			f.call.spread = true
		case f.tokens > 1 && f.first.kind == pyName && f.second.text == "=":
			f.call.keywords = append(f.call.keywords, f.first.text)
		default:
			f.call.positional++
		}
	}
	f.tokens, f.first, f.second = 0, pyToken{}, pyToken{}
}

// format looks into the replacement fields of an f-string.
func (w *pyExprScan) format(t pyToken) {
	i := strings.IndexAny(t.text, `'"`)
	if strings.ContainsAny(strings.ToLower(t.text[:i]), "ft") {
		w.fields(t.text, i, w.base+t.start)
	}
}

// fields scans the replacement fields in text behind from.
func (w *pyExprScan) fields(text string, from, base int) {
	depth, start := 0, 0
	for at := from; at < len(text) && w.depth < maxFormatDepth; at++ {
		switch text[at] {
		case '{':
			if depth == 0 && strings.HasPrefix(text[at:], "{{") {
				at++
				continue
			}
			if depth == 0 {
				start = at + 1
			}
			depth++
		case '}':
			if depth == 1 {
				w.replacement(text[start:at], base+start)
			}
			depth = max(depth-1, 0)
		}
	}
}

// replacement scans the expression of a replacement field, then the fields in
// its format.
func (w *pyExprScan) replacement(text string, base int) {
	depth, end := 0, len(text)
	for i := 0; i < end; i++ {
		switch c := text[i]; {
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && (c == ':' || (c == '!' && !strings.HasPrefix(text[i:], "!="))):
			end = i
		}
	}
	w.e.scan(strings.TrimSuffix(strings.TrimRight(text[:end], " "), "="), base, w.depth+1)
	if end < len(text) {
		inner := &pyExprScan{e: w.e, depth: w.depth + 1}
		inner.fields(text, end, base)
	}
}
