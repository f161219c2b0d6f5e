package script

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/document"
)

// object reads the keys of one map of the document. All of its methods work
// on a nil object, which has no keys: what is wrong was reported already.
type object struct {
	l     *loader
	v     *document.Value
	path  string
	shape *shape // of its keys
	keys  map[string]*document.Entry
	at    *document.Value // where messages about the whole map point; nil: its first key
}

// object opens a map whose keys are those of a shape: of other keys it reports
// those that look like typing errors as errors, the rest as warnings. Keys match
// whatever their case; the last of equal keys counts, where they are allowed.
func (l *loader) object(v *document.Value, path string, s *shape) *object {
	if !v.Present() {
		return nil
	}
	if v.Kind != document.Map {
		l.ErrorAt(v, path, "expected a map here, found %s", v.Kind)
		return nil
	}
	o := &object{l: l, v: v, path: path, shape: s, keys: make(map[string]*document.Entry, len(v.Entries))}
	cut := false
	for i, e := range v.Entries {
		if cut = l.restOfValue(v.Entries, i, path, cut); cut {
			continue
		}
		at := s.index(e.Name)
		if at < 0 {
			l.unknownKey(e, path, s)
			continue
		}
		name := s.keys[at].name
		if first := o.keys[name]; first != nil {
			l.duplicate(e, first, path)
		}
		e.Name = name
		o.keys[name] = e
	}
	return o
}

// pos gives a value's place in the original text.
func (l *loader) pos(v *document.Value) document.Pos { return v.Src.Pos(v.Src.Origin(v.Off, false)) }

// uniqueEntries lists a map's entries under free names in the order of the
// document; of equal names the last one counts. A name without a value is an
// error: as nothing at all, a field or a column would be missing in silence.
func (l *loader) uniqueEntries(v *document.Value, path string) []*document.Entry {
	last := make(map[string]*document.Entry, len(v.Entries))
	for _, e := range v.Entries {
		if first := last[e.Name]; first != nil {
			l.duplicate(e, first, path)
		}
		last[e.Name] = e
	}
	out := make([]*document.Entry, 0, len(last))
	for _, e := range v.Entries {
		switch {
		case last[e.Name] != e:
		case e.Value.Kind == document.Null:
			l.valueless(e, path)
		default:
			out = append(out, e)
		}
	}
	return out
}

// valueless reports a name that nothing is said of.
func (l *loader) valueless(e *document.Entry, path string) {
	hint := "write a value behind its colon, or take it out"
	if e.Bare() {
		hint = "write " + e.Name +
			": … or take it out; if it belongs to the value in front of the comma, put that in quotes"
	}
	l.ErrorAt(e.Key, path, "%s has no value", document.Quote(e.Name)).Hint = hint
}

// get gives the value of a key; nil if it is absent or null.
func (o *object) get(key string) *document.Value {
	if o == nil || o.keys[key] == nil || !o.keys[key].Value.Present() {
		return nil
	}
	return o.keys[key].Value
}

// entry gives a key with its value, also if that is null; nil if it is absent.
func (o *object) entry(key string) *document.Entry {
	if o == nil {
		return nil
	}
	return o.keys[key]
}

// has reports whether a key is there and not null.
func (o *object) has(key string) bool { return o.get(key) != nil }

// keyPath gives the path of a key.
func (o *object) keyPath(key string) string {
	if o == nil {
		return key
	}
	return join(o.path, key)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// ignored warns about keys that have no effect where they are.
func (o *object) ignored(reason string, keys ...string) {
	for _, key := range keys {
		if o.has(key) {
			o.l.WarnAt(o.keys[key].Key, o.path, "%s has no effect: %s", key, reason)
		}
	}
}

// missing reports that a key has to be there, unless it is misspelled or in a wrong place;
// so may be others that would do instead.
func (o *object) missing(key, hint string, instead ...string) {
	if o == nil {
		return
	}
	d := o.l.ErrorAt(o.where(), o.path, "%s is missing", key)
	d.Hint = hint
	for _, name := range append(instead, key) {
		d.Because(misspelledKey(o.path, name), strayKey(o.path, name))
	}
}

// where gives the value that stands for the map in messages: its first key,
// which a reader recognises, else the map itself.
func (o *object) where() *document.Value {
	if o.at != nil {
		return o.at
	}
	if len(o.v.Entries) > 0 {
		return o.v.Entries[0].Key
	}
	return o.v
}

// text gives the value of a text key; nil if it is absent or not text.
// YAML without quotes is text as written; JSON numbers and booleans are not text.
func (o *object) text(key string) *document.Value {
	v := o.get(key)
	if v == nil || isText(v) {
		return v
	}
	hint := "put it in double quotes"
	if v.Kind == document.List {
		hint = joinedHint(v)
	}
	o.l.ErrorAt(v, o.keyPath(key), "%s must be text, found %s", key, v.Kind).Hint = hint
	return nil
}

// joinedHint says how a list is written as a text.
func joinedHint(list *document.Value) string {
	var texts []string
	for _, item := range list.Items {
		if !isText(item) {
			return ""
		}
		texts = append(texts, item.Text)
	}
	if text := strings.Join(texts, ", "); text != "" && len(text) <= document.MaxShownTextChars {
		return `write "` + text + `"`
	}
	return "write it as one text, with commas"
}

// str gives the text of a key, "" if it is absent or not text.
func (o *object) str(key string) string {
	if v := o.text(key); v != nil {
		return v.Text
	}
	return ""
}

// expression is text, except that it must not be blank to count.
func (o *object) expression(key string) *document.Value {
	v := o.text(key)
	if v == nil || strings.TrimSpace(v.Text) == "" {
		return nil
	}
	return v
}

// boolean gives the value of a boolean key, false if it is absent.
func (o *object) boolean(key string) bool {
	v := o.get(key)
	if v == nil {
		return false
	}
	if v.Kind != document.Bool {
		d := o.l.ErrorAt(v, o.keyPath(key), "%s must be true or false, found %s", key, v.Kind)
		d.Hint = o.typedHint(v, "bool", "write true or false without quotes")
		return false
	}
	return strings.EqualFold(v.Text, "true")
}

// typedHint says how to use a parameter if the value comes from one.
func (o *object) typedHint(v *document.Value, kind, otherwise string) string {
	start, end := v.Span()
	if names := v.Src.Params(start, end); len(names) == 1 {
		return useAs(names[0], kind)
	}
	return otherwise
}

// form gives what a key that is there may be: its form, or the one of a kind where it has several.
func (o *object) form(key string, kind formKind) form {
	f := o.shape.keys[o.shape.index(key)].form
	for _, one := range f.any {
		if one.kind == kind {
			return one
		}
	}
	return f
}

// integer gives the value of a whole number in the range of its form, def if it
// is absent or wrong.
func (o *object) integer(key string, def int) int {
	if !o.has(key) {
		return def
	}
	f := o.form(key, numberForm)
	return o.integerWithin(key, def, f.low, f.high)
}

// integerWithin is integer for a key whose range depends on other keys.
func (o *object) integerWithin(key string, def, low, high int) int {
	v := o.get(key)
	if v == nil {
		return def
	}
	n, ok := wholeNumber(v.Text)
	if v.Kind != document.Number || !ok {
		d := o.l.ErrorAt(v, o.keyPath(key), "%s must be a whole number, found %s", key, describe(v))
		hint := ""
		if ok {
			hint = "write it without quotes"
		} else {
			hint = rangeHint(low, high)
		}
		d.Hint = o.typedHint(v, "number", hint)
		return def
	}
	if n < int64(low) || n > int64(high) {
		o.l.ErrorAt(v, o.keyPath(key), "%s is %d, which is out of range", key, n).Hint = rangeHint(low, high)
		return def
	}
	return int(n)
}

func rangeHint(low, high int) string {
	switch {
	case low == math.MinInt && high == math.MaxInt:
		return ""
	case high == math.MaxInt:
		return "it is at least " + strconv.Itoa(low)
	case low == math.MinInt:
		return "it is at most " + strconv.Itoa(high)
	}
	return "it is between " + strconv.Itoa(low) + " and " + strconv.Itoa(high)
}

func describe(v *document.Value) string {
	if v.Scalar() {
		return v.Kind.String() + " " + document.Quote(v.Text)
	}
	return v.Kind.String()
}

func wholeNumber(text string) (int64, bool) {
	text = strings.ReplaceAll(text, "_", "")
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// list gives the items of a list key; nil if it is absent or not a list.
func (o *object) list(key string) []*document.Value {
	v := o.get(key)
	if v == nil {
		return nil
	}
	if v.Kind != document.List {
		d := o.l.ErrorAt(v, o.keyPath(key), "%s must be a list, found %s", key, v.Kind)
		if v.Kind == document.String {
			d.Hint = o.typedHint(v, "stringlist", "write ["+document.Quote(v.Text)+"]")
		}
		return nil
	}
	return v.Items
}

// texts gives the items of a list of texts.
func (o *object) texts(key string) []*document.Value {
	var out []*document.Value
	for _, item := range o.list(key) {
		if isText(item) {
			out = append(out, item)
		} else {
			o.l.ErrorAt(item, o.keyPath(key), "%s must hold texts, found %s", key, item.Kind)
		}
	}
	return out
}

// namedAt is a name and the value that it stands in.
type namedAt struct {
	name string
	at   *document.Value
}

// names gives the names of a list of texts, or of one text with commas.
func (o *object) names(key string) (out []namedAt) {
	if v := o.get(key); v != nil && v.Kind != document.List {
		if o.text(key) == nil {
			return nil
		}
		for name := range strings.SplitSeq(v.Text, ",") {
			out = append(out, namedAt{strings.TrimSpace(name), v})
		}
		return out
	}
	for _, item := range o.texts(key) {
		out = append(out, namedAt{item.Text, item})
	}
	return out
}

// members gives the entries of a map key with free names; nil if it is absent.
func (o *object) members(key string) []*document.Entry {
	v := o.get(key)
	if v == nil {
		return nil
	}
	if v.Kind != document.Map {
		d := o.l.ErrorAt(v, o.keyPath(key), "%s must be a map of names, found %s", key, v.Kind)
		if v.Kind == document.List {
			d.Hint = namedHint(v)
		}
		return nil
	}
	return o.l.uniqueEntries(v, o.keyPath(key))
}

// namedHint says how a list is written as a map of names.
func namedHint(list *document.Value) string {
	const shownMax = 3
	var names []string
	for i, item := range list.Items {
		if i == shownMax {
			names = append(names, "…")
			break
		}
		name, value := listedName(item)
		if !isWord(name) || len(name)+len(value) > document.MaxShownTextChars {
			return "write a name with a colon in front of each, without a dash: NAME: …"
		}
		names = append(names, name+": "+value)
	}
	if len(names) == 0 {
		return ""
	}
	return "write {" + strings.Join(names, ", ") + "}"
}

// listedName is the name that an item of a list stands for, and what it says of it: it
// is the name, has it as its only key, or under a key "name".
func listedName(item *document.Value) (name, value string) {
	const open = "…"
	switch {
	case isText(item):
		return item.Text, open
	case item.Kind != document.Map:
		return "", ""
	case len(item.Entries) == 1:
		name, value = item.Entries[0].Name, open
		if v := item.Entries[0].Value; isText(v) && v.Text != "" {
			value = v.Text
		}
		return name, value
	}
	value = open
	for _, e := range item.Entries {
		switch {
		case strings.EqualFold(e.Name, "name") && isText(e.Value):
			name = e.Value.Text
		case strings.EqualFold(e.Name, "type") && isText(e.Value):
			value = e.Value.Text
		}
	}
	return name, value
}

// choice gives the text of a key that is one of the words of its form; def if absent or wrong.
func (o *object) choice(key, def string) string {
	v := o.text(key)
	if v == nil || v.Text == "" {
		return def
	}
	words := o.form(key, textForm).words
	if slices.Contains(words, v.Text) {
		return v.Text
	}
	o.l.ErrorAt(v, o.keyPath(key), "%s cannot be %s", key, document.Quote(v.Text)).Hint = document.DidYouMean(v.Text,
		words)
	return def
}

// one gives the text of a key that must be there; nil if it is not.
func (o *object) one(key, hint string) *document.Value {
	v := o.text(key)
	if v == nil {
		if !o.has(key) {
			o.missing(key, hint)
		}
		return nil
	}
	if strings.TrimSpace(v.Text) == "" {
		o.l.ErrorAt(v, o.keyPath(key), "%s is empty", key).Hint = hint
		return nil
	}
	return v
}
