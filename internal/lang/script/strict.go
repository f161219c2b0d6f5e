package script

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"thalweg/internal/base/document"
	"thalweg/internal/base/similar"
)

// A key that nobody reads switches off what it was meant for: rows are not
// filtered, checks do not check. So a typing error in a key is an error, so are
// keys that occur twice, and so is a key of the language in a place where it means
// nothing, whether it is spelled right there or not. Keys that the language does not
// have and that are like none of it stay warnings (scripts for Capillaries, which
// ignores them, carry such), and so do those that have no effect anywhere.
// Sources.Lenient makes all of them warnings.

const lenientHint = "with {{set lenient}} it is ignored"

// unknownKey reports a key that the shape does not have.
func (l *loader) unknownKey(e *document.Entry, path string, s *shape) {
	lenient := l.src.Lenient || !e.Value.Present() // null switches nothing off
	if where := rowKeys()[strings.ToLower(e.Name)]; where != "" && !lenient && synonym(e, s.names()) == "" {
		l.ErrorAt(e.Key, path, "key %s chooses no rows here", document.Quote(e.Name)).Hint = where + "; " + lenientHint
		return
	}
	if how := wayOut(e, path); how != "" && !lenient && synonym(e, s.names()) == "" {
		l.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = how + "; " + lenientHint
		return
	}
	if where := l.belongs(strings.ToLower(e.Name), path); where != "" && !lenient && synonym(e, s.names()) == "" {
		hint := "it belongs to " + where
		for _, name := range s.names() {
			if strings.HasSuffix(name, "_"+strings.ToLower(e.Name)) { // col_default_value
				hint = "here it is called " + name
			}
		}
		l.ErrorAt(e.Key, path, "key %s means nothing here", document.Quote(e.Name)).Hint = hint + "; " + lenientHint
		l.Explains(strayKey(path, strings.ToLower(e.Name)))
		return
	}
	meant := meantBy(e, s.names())
	if meant == "" && !lenient && l.elsewhere(e, path) {
		return
	}
	if meant == "" && !lenient && l.ownPart(e, path, s) {
		l.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint =
			"there is no such key, and what it is meant for is not done; " + document.DidYouMean(e.Name,
				s.names()) + "; " +
				lenientHint
		return
	}
	if meant == "" || lenient {
		hint := document.DidYouMean(e.Name, s.names())
		if hint == "" && meant != "" {
			hint = "did you mean " + document.Quote(meant) + "?"
		}
		l.WarnAt(e.Key, path, "unknown key %s is ignored", document.Quote(e.Name)).Hint = hint
		return
	}
	l.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = "did you mean " + document.Quote(meant) +
		"? " + lenientHint
	l.Explains(misspelledKey(path, meant))
}

// ownPart reports whether an unknown key is in a part of a node (r, w, …) that is written in
// Thalweg's own forms, and is no note: no script for Capillaries has it there, so that
// somebody expects something of it.
func (l *loader) ownPart(e *document.Entry, path string, s *shape) bool {
	steps := strings.SplitN(path, ".", 4)
	word := strings.ToLower(e.Name)
	if len(steps) < 3 || steps[0] != "nodes" || isNote(word) || slices.Contains(capillariesKeys(), word) {
		return false
	}
	if slices.ContainsFunc(s.names(),
		func(key string) bool { return marked(word, key) && strings.Contains(word, key) }) {
		return false // put out of use on purpose
	}
	return l.ownNode(path)
}

// ownNode reports whether the node that a path is in reads or writes in Thalweg's own forms.
func (l *loader) ownNode(path string) bool {
	for _, d := range l.nodes {
		if strings.HasPrefix(path, d.path+".") {
			return inOwnForm(d.o)
		}
	}
	return false
}

// isNote reports whether a key is what people call remarks of their own.
func isNote(word string) bool {
	return strings.HasPrefix(word, "_") || strings.HasPrefix(word, "x-") || slices.Contains(ownWords(), word) ||
		slices.Contains([]string{"description", "comment", "comments", "remark", "doc", "docs", "label",
			"title", "unit", "owner", "source", "meta", "tags"}, word)
}

// inOwnForm reports whether a node reads or writes in a form that Capillaries does not have.
func inOwnForm(node *object) bool {
	if node == nil {
		return false
	}
	for _, part := range []string{"r", "w"} {
		v := node.get(part)
		if v == nil {
			continue
		}
		if v.Kind != document.Map || v.Made {
			return true
		}
		var lists []*document.Value
		for _, e := range v.Entries {
			switch strings.ToLower(e.Name) {
			case "types":
				return true
			case "columns", "fields":
				lists = append(lists, e.Value)
			case "table":
				lists = append(lists, nil) // of a reader: it has none
			}
		}
		if lists == nil || slices.ContainsFunc(lists, ownColumns) {
			return true
		}
	}
	return false
}

// ownColumns reports whether columns or fields are in short forms, all or some of them.
func ownColumns(v *document.Value) bool {
	if v == nil {
		return false
	}
	if v.Made {
		return true
	}
	items := slices.Clone(v.Items)
	for _, e := range v.Entries {
		items = append(items, e.Value)
	}
	return slices.ContainsFunc(items, func(item *document.Value) bool {
		return item.Made || item.Kind != document.Map || !slices.ContainsFunc(item.Entries,
			func(e *document.Entry) bool {
				return slices.Contains([]string{"col_type", "expression"}, strings.ToLower(e.Name))
			})
	})
}

// restOfValue reports entries[i] if it is what a comma cut off from the value in front of
// it, as b of {order: a, b}; false if it is a key. cut is whether the entry before it is
// such a rest: of several only the first is reported.
func (l *loader) restOfValue(entries []*document.Entry, i int, path string, cut bool) bool {
	switch {
	case i == 0 || l.src.Lenient || !entries[i].Bare():
		return false
	case cut:
		return true
	case !isText(entries[i-1].Value):
		return false
	}
	before, last := entries[i-1], i
	for last+1 < len(entries) && entries[last+1].Bare() {
		last++
	}
	hint := "put it in quotes"
	if text := document.InQuotes(before.Value, entries[last]); text != "" {
		hint = "write " + before.Name + ": " + text
	}
	l.ErrorAt(entries[i].Key, path, "%s is cut off from the value of %s by the comma", document.Quote(entries[i].Name),
		before.Name).Hint = hint + ": a comma ends a value in { } that is not in quotes"
	return true
}

// elsewhere reports a key that is like one of another place in a node; false if it is
// like none. Outside of nodes it is not looked for: what is there is often there to be
// referred to by aliases, under a name of somebody's own.
func (l *loader) elsewhere(e *document.Entry, path string) bool {
	if !strings.HasPrefix(path, "nodes.") || l.IsFull() {
		return false
	}
	word := strings.ToLower(e.Name)
	meant, where := l.typedElsewhere(word), ""
	if meant != "" {
		where = l.belongs(meant, path)
	}
	for _, ours := range synonyms()[word] {
		if meant == "" && !slices.Contains(capillariesKeys(), word) {
			if where = strings.Join(l.near(ours, path), " or "); where != "" {
				meant = ours
			}
		}
	}
	if meant == "" {
		return false
	}
	does := rowKeys()[meant]
	if does == "" {
		does = "it belongs to " + where
	}
	l.ErrorAt(e.Key, path, "unknown key %s", document.Quote(e.Name)).Hint = "did you mean " + document.Quote(meant) +
		"? " + does + "; " + lenientHint
	l.Explains(strayKey(path, meant))
	return true
}

// typedElsewhere is the key of any part of a node that a word is by a typing error, "" if
// there is none. It asks for more likeness than where the key would be right.
func (l *loader) typedElsewhere(word string) string {
	const fewest, certain = 4, 5 // letters: shorter words are like too many keys
	if len(word) < fewest || slices.Contains(ownWords(), word) {
		return ""
	}
	if l.partKeys == nil {
		for key, places := range l.places() {
			if len(key) >= fewest && !slices.Contains(idleKeys(), key) && slices.ContainsFunc(places, inNode) {
				l.partKeys = append(l.partKeys, key)
			}
		}
		slices.Sort(l.partKeys)
	}
	meant := typingError(word, l.partKeys)
	if meant == "" || !similar.Typed(word, meant) || len(word) < certain && rowKeys()[meant] == "" {
		return ""
	}
	return meant
}

// ownWords are notes that people make for themselves, and that are like keys.
func ownWords() []string {
	return []string{"note", "notes", "code", "codes", "model", "groups", "reference", "reader", "leader", "order_id",
		"full_name"}
}

// misspelledKey and strayKey are causes of a missing key: it is there under another name, or it is somewhere else in
// the node.
func misspelledKey(path, key string) string { return "misspelled " + join(path, key) }

func strayKey(path, key string) string {
	steps := strings.SplitN(path, ".", 3)
	return "stray " + key + " in " + strings.Join(steps[:min(len(steps), 2)], ".")
}

// nodeTwice is the cause if no node creates a table because another node has the same name.
func nodeTwice(table string) string { return "twice the node of table " + table }

// tableOf is the table that a node which is not read says that it writes, as far as
// that can be seen; "": none.
func tableOf(node *document.Value) string {
	for _, part := range node.Entries {
		if part.Name != "w" {
			continue
		}
		for _, e := range part.Value.Entries {
			if e.Name == "name" {
				return e.Value.Text
			}
		}
		return part.Value.Text
	}
	return ""
}

// noCreator reports a table that no node creates.
func (l *loader) noCreator(v *document.Value, path, table string) {
	l.ErrorAt(v, path, "no node creates table %s", document.Quote(table)).Because(nodeTwice(table)).Hint =
		document.SuggestKey(table, l.script.byTable)
}

// rowKeys are the keys that choose, check or put aside rows, each with where it does.
func rowKeys() map[string]string {
	const ofNode = " is a key of the node, beside r and w"
	return map[string]string{
		"having":   "w.having leaves rows out of what is written",
		"filter":   "l.filter chooses the rows of a lookup's second table; w.having leaves rows out of what is written",
		"top":      "w.top and w.order are for files",
		"order":    "w.order sorts files, and so does w.top.order",
		"where":    "w.having leaves rows out of what is written; checks have a where of their own",
		"limit":    "w.top.limit bounds the rows of a file",
		"checks":   "checks" + ofNode,
		"bad_rows": "bad_rows" + ofNode,
		"indexes":  "w.indexes of a table says what is unique",
	}
}

// idleKeys have no effect where they belong, or are notes where they do not (the
// name of a node or of a column): there, nothing is lost.
func idleKeys() []string {
	return []string{"desc", "name", "handler_exe_type", "max_batch_processing_time", "rerun_policy", "table_options",
		"rowset_size", "idx_read_batch_size", "right_lookup_read_batch_size"}
}

// choosingKeys choose rows or columns, or where they go, in the parts of nodes of
// some types. In those of others they choose nothing.
func choosingKeys() []string {
	return []string{"columns", "types", "fields", "indexes", "top", "order", "url_template", "query", "query_url"}
}

// misplaced is ignored for keys of nodes of another type: those that choose are
// errors, unless they are empty.
func (o *object) misplaced(reason string, keys ...string) {
	for _, key := range keys {
		v := o.get(key)
		if v == nil || v.Text == "" && len(v.Items)+len(v.Entries) == 0 && key != "types" || o.l.src.Lenient ||
			!slices.Contains(choosingKeys(), key) {
			o.ignored(reason, key)
			continue
		}
		o.l.ErrorAt(o.keys[key].Key, o.path, "%s has no effect: %s", key, reason).Hint =
			"leave it out, or give the node the type that has it; " + lenientHint
	}
}

// belongs says where a key of the language has a meaning, "" if nowhere: in the
// same part of a node, if there is such a place, else anywhere.
func (l *loader) belongs(key, path string) string {
	if slices.Contains(idleKeys(), key) {
		return ""
	}
	near := l.near(key, path)
	if near == nil {
		near = l.places()[key]
	}
	const shownMax = 4
	return strings.Join(near[:min(len(near), shownMax)], " or ")
}

// near lists where a key of the language has a meaning in the same part of a node, or
// beside the parts; for a key beside them, in any part.
func (l *loader) near(key, path string) (out []string) {
	steps := strings.SplitN(path, ".", 4)
	if len(steps) < 2 || steps[0] != "nodes" {
		return nil
	}
	for _, place := range l.places()[key] {
		switch {
		case !inNode(place):
		case len(steps) == 2, place == placeNode, place == steps[2], strings.HasPrefix(place, steps[2]+"."):
			out = append(out, place)
		}
	}
	return out
}

// inNode reports whether a place of keys is in nodes.
func inNode(place string) bool {
	first, _, _ := strings.Cut(place, ".")
	return place == placeNode || nodeShape.index(first) >= 0
}

// places lists the places of every key.
func (l *loader) places() map[string][]string {
	if l.keyPlaces == nil {
		l.keyPlaces = keyPlaces()
	}
	return l.keyPlaces
}

const (
	placeRoot = "the top of the script"
	placeNode = "the node, beside r and w"
)

// keyPlaces lists the places of every key of the language, by key in lower case.
func keyPlaces() map[string][]string {
	out := map[string][]string{}
	var walk func(path, below string, s *shape)
	var inside func(below string, f form)
	inside = func(below string, f form) {
		switch {
		case f.shape != nil:
			walk(below, below+".", f.shape)
		case f.of != nil && f.kind == namesForm:
			inside(below+".NAME", *f.of)
		case f.of != nil:
			inside(below, *f.of)
		}
		for _, one := range f.any {
			inside(below, one)
		}
	}
	walk = func(path, below string, s *shape) {
		for _, k := range s.keys {
			if name := strings.ToLower(k.name); !slices.Contains(out[name], path) {
				out[name] = append(out[name], path)
			}
			if k.form.shape != nodeShape {
				inside(below+k.name, k.form)
			}
		}
	}
	for _, k := range rootShape.keys {
		out[k.name] = append(out[k.name], placeRoot)
		if k.name != "nodes" { // whose parts are called by their names alone
			inside(k.name, k.form)
		}
	}
	walk(placeNode, "", nodeShape)
	return out
}

// typingError gives the key that was meant, "" if the word does not look like
// one of the keys mistyped: it is a word of Capillaries in the wrong place, or
// a key that somebody put out of use on purpose (having_tmp, _order, x-top). A
// digit is no such mark: it is typed by mistake as letters are (having2).
func typingError(word string, keys []string) string {
	if slices.Contains(capillariesKeys(), strings.ToLower(word)) {
		return ""
	}
	meant := similar.Mistyped(word, keys)
	if meant == "" || marked(strings.ToLower(word), meant) {
		return ""
	}
	return meant
}

// marked reports whether the word is the key with something else than letters
// and digits behind or in front of it.
func marked(word, key string) bool {
	if rest, ok := strings.CutPrefix(word, key); ok {
		r, _ := utf8.DecodeRuneInString(rest)
		return !ofWord(r)
	}
	rest, ok := strings.CutSuffix(word, key)
	r, _ := utf8.DecodeLastRuneInString(rest)
	return ok && !ofWord(r)
}

func ofWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// capillariesKeys are the keys that Capillaries knows. One of them where it has
// no meaning is ignored there, and is no typing error.
func capillariesKeys() []string {
	return []string{"nodes", "dependency_policies",
		"type", "desc", "start_policy", "rerun_policy", "custom_proc_type", "handler_exe_type",
		"max_batch_processing_time", "dependency_policy", "r", "l", "p", "w",
		"table", "expected_batches_total", "rowset_size",
		"urls", "csv", "hdr_line_idx", "first_data_line_idx", "separator", "columns", "col_type", "col_default_value",
		"col_idx", "col_hdr", "col_format", "parquet", "col_name",
		"name", "table_options", "having", "fields", "expression", "default_value", "indexes",
		"index_name", "join_on", "group", "filter", "join_type", "idx_read_batch_size", "right_lookup_read_batch_size",
		"url_template", "top", "order", "limit", "codec", "header", "format", "column_name",
		"python_code_urls", "calculated_fields", "tag_field_name", "tag_criteria", "tag_criteria_url",
		"is_default", "event_priority_order", "rules", "cmd"}
}

// zeroBytes reports keys and values with a zero byte, which neither names, files, SQL nor
// CSV can have; true if there are some.
func (l *loader) zeroBytes(v *document.Value, path string, seen map[*document.Value]bool) (found bool) {
	if seen[v] {
		return false
	}
	seen[v] = true
	report := func(v *document.Value, path string) {
		if strings.Contains(v.Text, "\x00") {
			l.ErrorAt(v, path, "a zero byte is not allowed").Hint = `take \0 or \u0000 out`
			found = true
		}
	}
	report(v, path)
	for _, item := range v.Items {
		found = l.zeroBytes(item, path, seen) || found
	}
	for _, e := range v.Entries {
		report(e.Key, path)
		found = l.zeroBytes(e.Value, join(path, e.Name), seen) || found
	}
	return found
}

// equalKeys reports keys that occur twice in one map, anywhere in a document.
func (l *loader) equalKeys(v *document.Value, path string, seen map[*document.Value]bool) {
	if seen[v] {
		return // an alias: it was looked at where it is
	}
	seen[v] = true
	for _, item := range v.Items {
		l.equalKeys(item, path, seen)
	}
	first := make(map[string]*document.Entry, len(v.Entries))
	for _, e := range v.Entries {
		if first[e.Name] != nil {
			l.duplicate(e, first[e.Name], path)
		}
		first[e.Name] = e
		l.equalKeys(e.Value, join(path, e.Name), seen)
	}
}

// duplicate reports a key that is there before.
func (l *loader) duplicate(e, first *document.Entry, path string) {
	var d *document.Diagnostic
	if l.src.Lenient {
		d = l.WarnAt(e.Key, path, "key %s occurs twice: this one counts", document.Quote(e.Name))
	} else {
		d = l.ErrorAt(e.Key, path, "key %s occurs twice", document.Quote(e.Name))
		d.Hint = "only one of them can count; with {{set lenient}} the last one does"
		if path == "nodes" {
			l.Explains(nodeTwice(tableOf(first.Value)))
			l.Explains(nodeTwice(tableOf(e.Value)))
		}
	}
	if d.Severity != "" {
		d.Related = append(d.Related, l.pos(first.Key))
	}
}
