package script

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/base/document"
)

// scriptFile is the script, or a file that it includes.
type scriptFile struct {
	src  *document.Source
	root *object
}

// document reads the script and what it includes, and gives them as one map,
// included files first; nil if there is nothing to go on with.
func (l *loader) document(ctx context.Context, script *document.Source, params *parameters) *object {
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
	case isScriptName(v.Text):
		l.script.Name = v.Text
	default:
		l.ErrorAt(v, "name", "%s cannot be the name of a script", document.Quote(v.Text)).Hint =
			fmt.Sprintf("use 1 to %d letters, digits, -, _ and ., beginning with a letter or digit", MaxScriptNameChars)
	}
	main.v = &document.Value{Src: main.v.Src, Kind: document.Map, Off: main.v.Off, End: main.v.End,
		Entries: append([]*document.Entry(nil), main.v.Entries...), Weight: main.v.Weight}
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
	src *document.Source
	at  *document.Value
}

// readScript puts parameters into a file, parses it, and does the same with
// what it includes. chain holds the files that lead to it.
func (l *loader) readScript(ctx context.Context, src *document.Source, params *parameters, chain []including) {
	issues, holes := l.substitute(src, params)
	doc := l.parse(src)
	l.reportPending(src, doc, issues)
	if doc == nil || len(holes) > 0 && !l.keepsShape(src, doc, holes) {
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
func (l *loader) included(ctx context.Context, v *document.Value, chain []including) *document.Source {
	switch {
	case v.Src.IsPending(v.Span()):
		return nil
	case strings.TrimSpace(v.Text) == "":
		l.ErrorAt(v, "include", "the file's name is empty")
		return nil
	case hasEnvironment(v.Text):
		l.ErrorAt(v, "include", "include takes no environment values").Hint = "use a parameter"
		return nil
	case len(chain) > MaxIncludeLevels:
		l.ErrorAt(v, "include", "files include each other too deeply: the limit is %d levels", MaxIncludeLevels)
		return nil
	}
	name := v.Text
	if beside := address.Beside(v.Src.URL, name); beside != "" {
		name = beside
	}
	src := l.fetchExactly(ctx, name, v, "include", document.MaxBytes)
	for i, c := range chain {
		if c.src == src {
			d := l.ErrorAt(v, "include", "files include each other in a cycle")
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
	merged := &document.Value{Src: main.v.Src, Kind: document.Map, Off: main.v.Off, End: main.v.End, Weight: 1}
	for _, k := range rootShape.keys {
		if k.name == "include" {
			continue
		}
		if slices.Contains(append(servingKeys(), "python"), k.name) { // the main file's only
			l.includedServing(main, k.name)
			if e := main.keys[k.name]; e != nil {
				merged.Entries = append(merged.Entries, e)
			}
			continue
		}
		if e := l.mergeKey(main, k.name); e != nil {
			merged.Entries = append(merged.Entries, e)
		}
	}
	o := l.object(merged, "", rootShape)
	o.at = main.where()
	return o
}

// mergeKey puts what the files have under one key together.
func (l *loader) mergeKey(main *object, key string) *document.Entry {
	var out *document.Entry
	first := map[string]*document.Entry{}
	for _, f := range l.files {
		members := f.root.members(key)
		e := f.root.keys[key]
		switch {
		case !f.root.has(key) || e.Value.Kind != document.Map:
			continue
		case out == nil || f.root == main:
			v := &document.Value{Src: e.Value.Src, Kind: document.Map, Off: e.Value.Off, End: e.Value.End, Weight: 1}
			if out != nil {
				v.Entries = out.Value.Entries
			}
			out = &document.Entry{Name: key, Key: e.Key, Value: v}
		}
		for _, m := range members {
			if other := first[m.Name]; other != nil {
				d := l.ErrorAt(m.Key, join(key, m.Name), "%s is defined in two files", document.Quote(m.Name))
				if d.Severity != "" {
					d.Related = append(d.Related, l.pos(other.Key))
				}
				continue
			}
			first[m.Name] = m
			out.Value.Entries = append(out.Value.Entries, m)
		}
	}
	return out
}
