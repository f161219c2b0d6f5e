package view

import (
	"thalweg/internal/ops/compare"
)

// Diff is the JSON form of a comparison.
type Diff struct {
	Table         string                     `json:"table"`
	RunA          int64                      `json:"run_a"`
	RunB          int64                      `json:"run_b"`
	Equal         bool                       `json:"equal"`
	Key           []string                   `json:"key"` // none: rows as they are
	KeyOf         string                     `json:"key_of,omitempty"`
	Columns       []string                   `json:"columns"`
	Schema        []compare.SchemaDifference `json:"schema"`
	RowsA         int64                      `json:"rows_a"`
	RowsB         int64                      `json:"rows_b"`
	Removed       int64                      `json:"removed"`
	Added         int64                      `json:"added"`
	Changed       int64                      `json:"changed"`
	ChangedIn     []compare.ColumnCount      `json:"changed_in"`
	RepeatedA     int64                      `json:"repeated_keys_a"`
	RepeatedB     int64                      `json:"repeated_keys_b"`
	SampleRemoved []DiffRow                  `json:"sample_removed"`
	SampleAdded   []DiffRow                  `json:"sample_added"`
	SampleChanged []DiffRow                  `json:"sample_changed"`
}

// DiffRow is a row of the sample: its values, or those of the key and of what has changed.
type DiffRow struct {
	Row   *Object `json:"row,omitempty"`
	Times int64   `json:"times,omitempty"`
	Key   *Object `json:"key,omitempty"`
	A     *Object `json:"a,omitempty"`
	B     *Object `json:"b,omitempty"`
}
