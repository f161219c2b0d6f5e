package script

import (
	"maps"
	"slices"
	"strings"

	"thalweg/internal/base/document"
)

// pyFunction is a function that an expression may call.
type pyFunction struct {
	name     string
	pos      document.Pos
	min, max int             // positional arguments; max -1: any number
	params   map[string]bool // names that may be given as keywords
	needed   []string        // parameters without a default, positional first
	keywords bool            // has **kwargs
	unknown  bool            // its parameters cannot be told: imported, a class, decorated
}

// pyModule lists the names that Python files define at their top level.
type pyModule struct {
	functions map[string]*pyFunction
	star      bool // a "from x import *": any name may be there
}

func newPyModule() *pyModule { return &pyModule{functions: map[string]*pyFunction{}} }

// add collects what a file defines. Python is not executed and its syntax
// not checked: that is the interpreters' part.
func (m *pyModule) add(src *document.Source) {
	s := newPyScanner(src.Text)
	body := -1 // indentation of the def or class whose body is being passed over
	decorated := false
	for t := s.next(); t.kind != pyEnd; t = s.next() {
		if t.indent < 0 || t.kind == pyNewline {
			continue
		}
		if body >= 0 && t.indent > body {
			s.skipLine()
			continue
		}
		body = -1
		switch {
		case t.kind == pyOp && t.text == "@":
			decorated = true
			s.skipLine()
			continue
		case t.kind != pyName:
			s.skipLine()
		case t.text == "async":
			if t2 := s.next(); t2.text == "def" {
				m.define(s, src, decorated)
				body = t.indent
			}
		case t.text == "def":
			m.define(s, src, decorated)
			body = t.indent
		case t.text == "class":
			m.name(s.next().text)
			s.skipLine()
			body = t.indent
		case t.text == "import" || t.text == "from":
			m.imports(s, t.text == "from")
		default:
			m.assigned(s, t)
		}
		decorated = false
	}
}

// skipLine goes to the end of the logical line.
func (s *pyScanner) skipLine() {
	for t := s.next(); t.kind != pyEnd && t.kind != pyNewline; t = s.next() {
	}
}

// name records something callable of which no more is known.
func (m *pyModule) name(name string) {
	if name != "" && !isPyKeyword(name) {
		m.functions[name] = &pyFunction{name: name, unknown: true}
	}
}

// imports records the names that an import statement binds.
func (m *pyModule) imports(s *pyScanner, from bool) {
	active := !from // behind "import" in a from statement
	last := ""
	as := false
	for t := s.next(); t.kind != pyEnd && t.kind != pyNewline; t = s.next() {
		switch {
		case from && !active:
			active = t.text == "import"
		case t.text == "*":
			m.star = true
		case t.text == "as":
			as = true
		case t.kind == pyName && as:
			m.name(t.text)
			last, as = "", false
		case t.kind == pyName && last == "":
			last = t.text
		case t.text == ",":
			m.name(last)
			last = ""
		}
	}
	m.name(last)
}

// assigned records the names of a line such as "a, b = …", which may be functions.
func (m *pyModule) assigned(s *pyScanner, first pyToken) {
	names := []string{first.text}
	annotated := false
	for t := s.next(); t.kind != pyEnd && t.kind != pyNewline; t = s.next() {
		switch {
		case s.depth > 0:
		case t.text == "=":
			for _, name := range names {
				m.name(name)
			}
			names = nil
		case t.text == ":":
			annotated = true
		case t.kind == pyName && !annotated:
			names = append(names, t.text)
		}
	}
}

// define reads a function's head behind "def".
func (m *pyModule) define(s *pyScanner, src *document.Source, decorated bool) {
	t := s.next()
	if t.kind != pyName {
		s.skipLine()
		return
	}
	f := &pyFunction{name: t.text, pos: src.Pos(t.start), params: map[string]bool{}, unknown: decorated}
	m.functions[f.name] = f
	for t = s.next(); t.text != "(" && t.kind != pyEnd && t.kind != pyNewline; t = s.next() {
	}
	f.readParams(s)
	s.skipLine()
}

// readParams reads a parameter list up to its closing parenthesis.
func (f *pyFunction) readParams(s *pyScanner) {
	outer := s.depth // the opening parenthesis is counted
	onlyKeywords, star, double, hasDefault := false, false, false, false
	name := ""
	flush := func() {
		switch {
		case double:
			f.keywords = true
		case star && name != "":
			f.max, onlyKeywords = -1, true
		case star:
			onlyKeywords = true
		case name != "":
			f.params[name] = true
			if !onlyKeywords {
				f.max++
				if !hasDefault {
					f.min++
				}
			}
			if !hasDefault {
				f.needed = append(f.needed, name)
			}
		}
		star, double, hasDefault, name = false, false, false, ""
	}
	for t := s.next(); t.kind != pyEnd; t = s.next() {
		top := s.depth == outer
		switch {
		case t.text == ")" && s.depth < outer:
			flush()
			return
		case !top:
		case t.text == ",":
			flush()
		case t.text == "*" && name == "":
			star = true
		case t.text == "**" && name == "":
			double = true
		case t.text == "/":
			f.params = map[string]bool{} // those before are only positional
		case t.text == "=":
			hasDefault = true
		case t.kind == pyName && name == "" && !hasDefault:
			name = t.text
		}
	}
	f.unknown = true
}

// accepts says why a call does not fit, "" if it does.
func (f *pyFunction) accepts(c *pyCall) string {
	if f.unknown || c.spread {
		return ""
	}
	given := map[string]bool{}
	for _, k := range c.keywords {
		given[k] = true
		if !f.params[k] && !f.keywords {
			return "has no parameter " + document.Quote(k)
		}
	}
	if f.max >= 0 && c.positional > f.max {
		return "takes " + count(f.max, f.min) + ", but is given " + plural(c.positional)
	}
	for i, name := range f.needed {
		if i >= c.positional || i >= f.min {
			if !given[name] {
				return "takes " + count(f.max, f.min) + ", but is given " +
					plural(c.positional+len(c.keywords)) + ": " + document.Quote(name) + " is missing"
			}
		}
	}
	return ""
}

func count(most, least int) string {
	switch {
	case most < 0:
		return "at least " + plural(least)
	case most == least:
		return plural(least)
	}
	return indexText(least) + " to " + plural(most)
}

func plural(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return indexText(n) + " arguments"
}

// builtinFunction knows the arguments of the functions that scripts use most.
func builtinFunction(name string) *pyFunction {
	f := &pyFunction{name: name, unknown: true}
	limits := map[string][2]int{"str": {0, 3}, "int": {0, 2}, "float": {0, 1}, "round": {1, 2}, "len": {1, 1},
		"bool": {0, 1}, "abs": {1, 1}}
	if n, ok := limits[name]; ok {
		f.unknown, f.min, f.max, f.keywords = false, n[0], n[1], true
	}
	return f
}

// words lists the names that a message may suggest.
func (m *pyModule) words() []string {
	return append(slices.Sorted(maps.Keys(m.functions)), strings.Fields("str int float round len bool abs")...)
}
