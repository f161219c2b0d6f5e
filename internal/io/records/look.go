package records

import (
	"bytes"
	"fmt"
	"io"

	"thalweg/internal/lang/filespec"
)

// Found is a key of records that were looked at.
type Found struct {
	Key     string
	Value   Value
	Missing bool // some records are without it

	// Of sheets:
	Letters string           // of the column
	Row     int              // of a column without a header, whose Key is "": its first value's
	Errors  map[string]int64 // how many cells have a #DIV/0! and the like; nil: none
}

// Value is the common type of a key's values.
type Value string

// The kinds of values.
const (
	Nothing  Value = "" // null only
	Integer  Value = "int"
	Fraction Value = "float"
	Truth    Value = "bool"
	Moment   Value = "datetime"
	Any      Value = "string" // texts, nested values, and mixtures
)

// lookedRecordsMax are looked at to learn which keys records have.
const lookedRecordsMax = 1_000

// Look says which keys the first records of a JSON file have, in the order in which they
// come, by the beginning of its text. Of bad records it sees nothing.
func Look(text []byte) ([]Found, error) {
	w, err := NewWriter(io.Discard, filespec.Spec{Format: filespec.JSON})
	if err != nil {
		return nil, err
	}
	w.buf = append(bytes.Clone(text), '\n')
	if !w.begin(true) {
		return nil, fmt.Errorf("it has no records")
	}
	var out []Found
	at, seen, records := map[string]int{}, map[string]int{}, 0
	for records < lookedRecordsMax {
		w.pass(blanks(w.rest(), 0))
		rest := w.rest()
		if w.list && len(rest) > 0 && (rest[0] == ',' || rest[0] == ']') {
			w.pass(1)
			continue
		}
		end, err := value(rest, 0, 0)
		if err != nil {
			if i := nextObject(rest); !w.list && i < len(rest) {
				w.pass(i)
				continue
			}
			break
		}
		if rest[0] == '{' {
			records++
			eachMember(rest[:end], func(key string, raw []byte) {
				v := kindOf(raw)
				i, ok := at[key]
				if !ok {
					i = len(out)
					at[key] = i
					out = append(out, Found{Key: key, Value: v})
				}
				out[i].Value = together(out[i].Value, v)
				seen[key]++
			})
		}
		w.pass(end)
	}
	if records == 0 {
		return nil, fmt.Errorf("none of its first records is an object")
	}
	for i, f := range out {
		out[i].Missing = seen[f.Key] < records
	}
	return out, nil
}

// eachMember visits the members of a sound object.
func eachMember(text []byte, visit func(key string, raw []byte)) {
	at := blanks(text, 1)
	for text[at] != '}' {
		if text[at] == ',' {
			at = blanks(text, at+1)
		}
		end, _ := stringEnd(text, at)
		key, err := unquote(nil, text[at:end])
		at = blanks(text, blanks(text, end)+1)
		end, _ = value(text, at, 0)
		if err == nil {
			visit(string(key), text[at:end])
		}
		at = blanks(text, end)
	}
}

func kindOf(raw []byte) Value {
	switch c := raw[0]; {
	case c == 'n':
		return Nothing
	case c == 't', c == 'f':
		return Truth
	case c == '-' || c >= '0' && c <= '9':
		const wholeDigitsMax = 18
		switch {
		case bytes.ContainsAny(raw, ".eE"):
			return Fraction
		case len(raw) > wholeDigitsMax: // as texts they keep all digits
			return Any
		}
		return Integer
	}
	return Any
}

func together(a, b Value) Value {
	switch {
	case a == b, b == Nothing:
		return a
	case a == Nothing:
		return b
	case (a == Integer || a == Fraction) && (b == Integer || b == Fraction):
		return Fraction
	}
	return Any
}

// Together returns the type of a column with values of two types.
func Together(a, b Value) Value { return together(a, b) }

// LooksJSON reports whether a text begins as one with records does: with an object that has a
// member, or a list of some.
func LooksJSON(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	at := blanks(head, 0)
	if at < len(head) && head[at] == '[' {
		at = blanks(head, at+1)
	}
	if at == len(head) || head[at] != '{' {
		return false
	}
	at = blanks(head, at+1)
	if at == len(head) || head[at] != '"' {
		return at < len(head) && head[at] == '}'
	}
	end, err := stringEnd(head, at)
	if err != nil {
		return false
	}
	at = blanks(head, end)
	return at < len(head) && head[at] == ':'
}
