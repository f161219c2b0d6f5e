package lineage

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"thalweg/internal/base/sqltext"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
)

// Value is a column of a row.
type Value struct {
	Name string
	Text *string // nil: NULL
	Bare bool    // a number or a truth value
}

// Values are a row's columns in their order.
type Values []Value

// MarshalJSON writes an object in the order of the columns.
func (v Values) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, value := range v {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(value.Name)
		if err != nil {
			return nil, err
		}
		b.Write(append(name, ':'))
		var out any = value.Text
		if value.Text != nil && value.Bare && json.Valid([]byte(*value.Text)) {
			out = json.RawMessage(*value.Text)
		}
		text, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON has written.
func (v *Values) UnmarshalJSON(text []byte) error {
	*v = Values{}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		one := Value{Name: fmt.Sprint(name)}
		switch {
		case bytes.HasPrefix(raw, []byte(`"`)):
			err = json.Unmarshal(raw, &one.Text)
		case string(raw) != "null":
			said := string(raw)
			one.Text, one.Bare = &said, true
		}
		if err != nil {
			return err
		}
		*v = append(*v, one)
	}
	return nil
}

// textsOf are columns as text.
func textsOf(alias string, names []string) string {
	cols := make([]string, len(names))
	for i, name := range names {
		cols[i] = "CAST(" + alias + "." + sqltext.Ident(name) + " AS VARCHAR)"
	}
	return strings.Join(cols, ", ")
}

// values gives rows of a node their values: a query of n and the columns as text.
func (t *tracer) values(ctx context.Context, n *traced, query string, names []string, types []expr.Type) error {
	rows, err := t.in.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("read rows of %s: %w", n.key.Node, err)
	}
	found, err := readTexts(rows, len(names))
	if err != nil {
		return err
	}
	for at, texts := range found {
		id, ok := n.ids[at]
		if !ok {
			continue
		}
		r := t.tree.Rows[id]
		r.Values = make(Values, len(names))
		for i, name := range names {
			r.Values[i] = Value{Name: name, Text: texts[i], Bare: types[i].IsNumber() || types[i] == expr.Bool}
		}
	}
	return nil
}

// tableColumns are a table's columns with their types.
func tableColumns(t *plan.Table) (names []string, types []expr.Type) {
	for _, c := range t.Layout.Columns {
		typ, _ := expr.ParseType(c.Type)
		names, types = append(names, c.Name), append(types, typ)
	}
	return names, types
}

func fileTypes(w *script.FileWriter) (types []expr.Type) {
	for _, c := range w.Columns {
		types = append(types, c.Type)
	}
	return types
}

// readTexts reads rows of n and columns as text.
func readTexts(rows *sql.Rows, columns int) (out map[int64][]*string, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	out = map[int64][]*string{}
	for rows.Next() {
		var at int64
		texts := make([]*string, columns)
		into := []any{&at}
		for i := range texts {
			into = append(into, &texts[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		out[at] = texts
	}
	return out, rows.Err()
}

// sameText compares values as text; a zero has no sign.
func sameText(a, b *string, typ expr.Type) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b || typ == expr.Float && strings.TrimPrefix(*a, "-") == "0.0" && strings.TrimPrefix(*b, "-") == "0.0"
}
