package view

import "thalweg/internal/store/state"

// GateSince says what of the tables that a gate shows has changed since it was last approved in a run of the script.
type GateSince struct {
	Workspace string       `json:"workspace"`
	Run       int64        `json:"run"`
	Gate      string       `json:"gate"`
	Approved  *GateBefore  `json:"approved,omitempty"` // none: it was not, as far as was looked
	Tables    []SinceTable `json:"tables"`
}

// GateBefore is an approval of a gate in an earlier run.
type GateBefore struct {
	Run    int64      `json:"run"`
	By     state.Mark `json:"by"`
	Role   string     `json:"role,omitempty"`
	Digest string     `json:"digest"`
}

// SinceTable is a table that a gate shows, beside what it showed then.
type SinceTable struct {
	Table   string        `json:"table"`
	Rows    int64         `json:"rows"`
	Before  *int64        `json:"rows_before,omitempty"` // none: the gate did not show it
	RunNow  int64         `json:"run"`                   // that has written it
	RunThen int64         `json:"run_before,omitempty"`
	Same    bool          `json:"same"`          // its parts are those of then
	Columns []SinceColumn `json:"columns"`       // those of now, then those that are gone
	Why     string        `json:"why,omitempty"` // why the columns of then are not known
}

// SinceColumn is a column of such a table.
type SinceColumn struct {
	Name   string         `json:"name"`
	Change string         `json:"change,omitempty"` // added, removed, retyped; none: only its values may differ
	Now    *ColumnFigures `json:"now,omitempty"`
	Then   *ColumnFigures `json:"then,omitempty"`
}

// ColumnFigures are what is known of the values of a column. What is not known is not there.
type ColumnFigures struct {
	Type  string  `json:"type"`
	Nulls *int64  `json:"nulls,omitempty"`
	Min   *string `json:"min,omitempty"`
	Max   *string `json:"max,omitempty"`
	Sum   string  `json:"sum,omitempty"` // of numbers
}
