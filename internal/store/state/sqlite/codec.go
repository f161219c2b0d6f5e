package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"
)

// moment keeps a time as milliseconds since 1970; the zero time is NULL.
type moment struct{ time.Time }

// Value implements driver.Valuer.
func (m moment) Value() (driver.Value, error) {
	if m.IsZero() {
		return nil, nil
	}
	return m.UnixMilli(), nil
}

// Scan implements sql.Scanner.
func (m *moment) Scan(src any) error {
	var n sql.NullInt64
	if err := n.Scan(src); err != nil {
		return fmt.Errorf("read time: %w", err)
	}
	m.Time = time.Time{}
	if n.Valid {
		m.Time = time.UnixMilli(n.Int64).UTC()
	}
	return nil
}

// stored gives the time as the store keeps it: UTC, whole milliseconds.
func stored(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// document keeps a value as JSON text; a NULL leaves the zero value.
type document[T any] struct{ v *T }

// asDocument refers to the value that is written or read.
func asDocument[T any](v *T) document[T] { return document[T]{v} }

// Value implements driver.Valuer.
func (d document[T]) Value() (driver.Value, error) {
	if d.v == nil {
		return nil, nil
	}
	text, err := json.Marshal(d.v)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return string(text), nil
}

// Scan implements sql.Scanner.
func (d document[T]) Scan(src any) error {
	var text sql.NullString
	if err := text.Scan(src); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	var v T
	if text.Valid {
		if err := json.Unmarshal([]byte(text.String), &v); err != nil {
			return fmt.Errorf("read JSON: %w", err)
		}
	}
	*d.v = v
	return nil
}
