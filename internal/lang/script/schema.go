package script

import (
	"bytes"
	"encoding/json"
	"math"
)

// SchemaID is the path, relative to the repository, of the JSON Schema that this binary prints.
const SchemaID = "schemas/script.schema.json"

// referencePattern matches a parameter or environment value in a place for anything but text.
const referencePattern = `\{[ \t]*(env\.)?[A-Za-z0-9_]+[ \t]*(\|[ \t]*[A-Za-z]+[ \t]*)?\}`

// JSONSchema is the JSON Schema (draft 2020-12) of scripts, written from the
// table of keys that the loader reads: every script that loads without a
// diagnostic is valid by it, before and after parameters are put in. It checks
// keys, kinds of values and words; names, types and expressions are checked by
// Load alone.
func JSONSchema() ([]byte, error) {
	s := &schemaWriter{defs: map[string]any{}, open: map[*shape]bool{}}
	root := s.shape(rootShape)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["$id"] = SchemaID
	root["title"] = "Thalweg script"
	s.defs["reference"] = anyMap{"type": "string", "pattern": referencePattern,
		"description": "A parameter or environment value."}
	root["$defs"] = s.defs
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type anyMap = map[string]any

// schemaWriter collects the definitions of shapes.
type schemaWriter struct {
	defs map[string]any
	open map[*shape]bool
}

// reference is a schema that refers to the shape's definition.
func (w *schemaWriter) reference(s *shape) anyMap {
	if !w.open[s] {
		w.open[s] = true
		def := w.shape(s)
		if s == nodeShape {
			def["allOf"] = w.nodeTypes()
		}
		w.defs[s.name] = def
	}
	return anyMap{"$ref": "#/$defs/" + s.name}
}

func (w *schemaWriter) shape(s *shape) anyMap {
	properties, required := anyMap{}, []string{}
	for _, k := range s.keys {
		f := w.form(k.form)
		if k.doc != "" {
			f["description"] = k.doc
		}
		properties[k.name] = f
		if k.need {
			required = append(required, k.name)
		}
	}
	out := anyMap{"type": "object", "properties": properties, "additionalProperties": false}
	if s.doc != "" {
		out["description"] = s.doc
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (w *schemaWriter) form(f form) anyMap {
	switch f.kind {
	case numberForm:
		n := anyMap{"type": "integer"}
		if f.low > math.MinInt {
			n["minimum"] = f.low
		}
		if f.high < math.MaxInt {
			n["maximum"] = f.high
		}
		return orReference(n)
	case realForm:
		return orReference(anyMap{"type": "number"})
	case boolForm:
		return orReference(anyMap{"type": "boolean"})
	case listForm:
		return orReference(anyMap{"type": "array", "items": w.form(*f.of)})
	case namesForm:
		return anyMap{"type": "object", "additionalProperties": w.form(*f.of)}
	case mapForm:
		return w.reference(f.shape)
	case eitherForm:
		var any []any
		for _, x := range f.any {
			any = append(any, w.form(x))
		}
		return anyMap{"anyOf": any}
	}
	if len(f.words) > 0 {
		words := anyMap{"enum": append(asAny(f.words), nil)}
		if f.pattern != "" {
			return anyMap{"anyOf": []any{words, anyMap{"type": "string", "pattern": f.pattern},
				anyMap{"$ref": "#/$defs/reference"}}}
		}
		return orReference(words)
	}
	// Without quotes YAML takes some texts for numbers, booleans or null.
	return anyMap{"type": []string{"string", "number", "boolean", "null"}}
}

func asAny(words []string) []any {
	out := make([]any, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func orReference(s anyMap) anyMap {
	return anyMap{"anyOf": []any{s, anyMap{"$ref": "#/$defs/reference"}}}
}

// nodeTypes says for each type what its parts are.
func (w *schemaWriter) nodeTypes() []any {
	var out []any
	for _, n := range nodeForms() {
		properties := anyMap{}
		for name, f := range n.parts {
			properties[name] = w.form(f)
		}
		out = append(out, anyMap{
			"if":   anyMap{"properties": anyMap{"type": anyMap{"const": n.of}}, "required": []string{"type"}},
			"then": anyMap{"properties": properties, "required": n.need},
		})
	}
	return out
}
