package script

import (
	"context"
	"fmt"
	"strings"

	"thalweg/internal/address"
)

// scriptFile is the script, or a file that it includes.
type scriptFile struct {
	src  *source
	root *object
}

// document reads the script and what it includes, and gives them as one map,
// included files first; nil if there is nothing to go on with.
func (l *loader) document(ctx context.Context, script *source, params *parameters) *object {
	l.readScript(ctx, script, params, nil)
	if len(l.files) == 0 || l.files[len(l.files)-1].src != script {
		return nil // the script itself is not readable
	}
	main := l.files[len(l.files)-1].root
	l.name(main)
	if main.has("include") {
		main = l.merge(main)
	}
	l.environment(main)
	return main
}

// name reads what the script calls itself, and takes it out of the document: a
// script that gets a name does what it did. Those of included files mean nothing here.
func (l *loader) name(main *object) {
	if !main.has("name") {
		return
	}
	switch v := main.text("name"); {
	case v == nil: // an error
	case isScriptName(v.text):
		l.script.Name = v.text
	default:
		l.errorAt(v, "name", "%s cannot be the name of a script", quote(v.text)).Hint = fmt.Sprintf("use 1 to %d letters, digits, -, _ and ., beginning with a letter or digit", MaxScriptNameChars)
	}
	main.v = &value{src: main.v.src, kind: mapKind, off: main.v.off, end: main.v.end, entries: append([]*entry(nil), main.v.entries...), weight: main.v.weight}
	main.drop("name")
}

// isScriptName reports whether a text can be the name of a script: it is
// typed on command lines.
func isScriptName(text string) bool {
	if text == "" || len(text) > MaxScriptNameChars || strings.IndexByte("-_.", text[0]) >= 0 {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// including is a file that is being read, and the value that includes the next one.
type including struct {
	src *source
	at  *value
}

// readScript puts parameters into a file, parses it, and does the same with
// what it includes. chain holds the files that lead to it.
func (l *loader) readScript(ctx context.Context, src *source, params *parameters, chain []including) {
	issues := l.substitute(src, params)
	doc := l.parse(src)
	l.reportPending(src, doc, issues)
	if doc == nil {
		return
	}
	root := l.object(doc, "", rootShape)
	if root == nil {
		return
	}
	for _, v := range root.texts("include") {
		if ctx.Err() != nil {
			return
		}
		next := append(chain[:len(chain):len(chain)], including{src, v})
		if inc := l.included(ctx, v, next); inc != nil {
			l.readScript(ctx, inc, params, next)
		}
	}
	l.files = append(l.files, scriptFile{src: src, root: root})
}

// included fetches a file that a script includes; nil after an error, and if
// it has been read already.
func (l *loader) included(ctx context.Context, v *value, chain []including) *source {
	switch {
	case v.src.isPending(v.span()):
		return nil
	case strings.TrimSpace(v.text) == "":
		l.errorAt(v, "include", "the file's name is empty")
		return nil
	case hasEnvironment(v.text):
		l.errorAt(v, "include", "include takes no environment values").Hint = "use a parameter"
		return nil
	case len(chain) > MaxIncludeLevels:
		l.errorAt(v, "include", "files include each other too deeply: the limit is %d levels", MaxIncludeLevels)
		return nil
	}
	name := v.text
	if beside := address.Beside(v.src.url, name); beside != "" {
		name = beside
	}
	src := l.fetchExactly(ctx, name, v, "include", MaxScriptBytes)
	for i, c := range chain {
		if c.src == src {
			d := l.errorAt(v, "include", "files include each other in a cycle")
			for _, c := range chain[i : len(chain)-1] {
				d.Related = append(d.Related, l.pos(c.at))
			}
			return nil
		}
	}
	if src == nil || l.isIncluded[src] {
		return nil
	}
	l.isIncluded[src] = true
	return src
}

// merge puts the maps of all files together. What occurs in two of them is an error.
func (l *loader) merge(main *object) *object {
	merged := &value{src: main.v.src, kind: mapKind, off: main.v.off, end: main.v.end, weight: 1}
	for _, k := range rootShape.keys {
		if k.name == "include" {
			continue
		}
		if e := l.mergeKey(main, k.name); e != nil {
			merged.entries = append(merged.entries, e)
		}
	}
	o := l.object(merged, "", rootShape)
	o.at = main.where()
	return o
}

// mergeKey puts what the files have under one key together.
func (l *loader) mergeKey(main *object, key string) *entry {
	var out *entry
	first := map[string]*entry{}
	for _, f := range l.files {
		members := f.root.members(key)
		e := f.root.keys[key]
		switch {
		case !f.root.has(key) || e.val.kind != mapKind:
			continue
		case out == nil || f.root == main:
			v := &value{src: e.val.src, kind: mapKind, off: e.val.off, end: e.val.end, weight: 1}
			if out != nil {
				v.entries = out.val.entries
			}
			out = &entry{name: key, key: e.key, val: v}
		}
		for _, m := range members {
			if other := first[m.name]; other != nil {
				d := l.errorAt(m.key, join(key, m.name), "%s is defined in two files", quote(m.name))
				if d.Severity != "" {
					d.Related = append(d.Related, l.pos(other.key))
				}
				continue
			}
			first[m.name] = m
			out.val.entries = append(out.val.entries, m)
		}
	}
	return out
}
