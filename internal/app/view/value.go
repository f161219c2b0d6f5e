package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// CellJSON returns a cell of a result as JSON can carry it: floats without a number there are texts.
func CellJSON(cell any) any {
	if f, ok := cell.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return FloatText(f)
	}
	return cell
}

// FloatText returns the text that stands in JSON for a float that it has no number for.
func FloatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case f < 0:
		return "-Infinity"
	}
	return "Infinity"
}

// JSON writes v as it is printed everywhere: in one line, < and > as they are.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Object is a JSON object whose keys keep their order.
type Object struct {
	Names []string
	Cells []any
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i, name := range o.Names {
		key, err := JSON(name)
		if err != nil {
			return nil, err
		}
		cell, err := JSON(CellJSON(o.Cells[i]))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), cell...)
	}
	return append(b, '}'), nil
}

// UnmarshalJSON implements json.Unmarshaler. Whole numbers become int64, lists and objects json.RawMessage.
func (o *Object) UnmarshalJSON(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return fmt.Errorf("read an object: %w", err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return fmt.Errorf("read the name of a cell: %w", err)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return fmt.Errorf("read a cell: %w", err)
		}
		said, _ := name.(string)
		o.Names, o.Cells = append(o.Names, said), append(o.Cells, cellOf(raw))
	}
	return nil
}

func cellOf(raw json.RawMessage) any {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n
	}
	var cell any
	if err := json.Unmarshal(raw, &cell); err != nil {
		return raw
	}
	switch cell.(type) {
	case map[string]any, []any:
		return raw
	}
	return cell
}
