package view

import (
	"thalweg/internal/base/budget"
	"thalweg/internal/base/document"
	"thalweg/internal/ops/doctor"
	"thalweg/internal/ops/infer"
	"thalweg/internal/run/plan"
)

// Explained is the JSON form.
type Explained struct {
	Budget budget.Budget   `json:"budget"`
	Nodes  []ExplainedNode `json:"nodes"`
	// Forecast is what a run of all nodes is expected to take; none: one node is explained, or no runs are known.
	Forecast *Forecast `json:"forecast,omitempty"`
}

type ExplainedNode struct {
	Node      string        `json:"node"`
	Type      string        `json:"type"`
	Manual    bool          `json:"manual,omitempty"`
	Sources   []string      `json:"sources"` // files, or tables
	Table     string        `json:"table,omitempty"`
	File      string        `json:"file,omitempty"`
	Fields    []plan.Column `json:"fields,omitempty"`
	OrderCols int           `json:"order_columns"`
	Buckets   int           `json:"buckets,omitempty"`
	BucketKey string        `json:"bucket_key,omitempty"`
	Join      string        `json:"join,omitempty"`
	Cut       string        `json:"cut,omitempty"` // of a query
	Batches   int           `json:"batches"`
	Checks    int           `json:"checks,omitempty"`       // of Batches
	Shares    int           `json:"check_shares,omitempty"` // of Checks: each looks at a share
	RowsIn    int64         `json:"rows_in"`                // -1: not known
	BytesIn   int64         `json:"bytes_in"`
	RowsOut   int64         `json:"rows_out_max,omitempty"`
	Estimated bool          `json:"estimated"`
	Memory    int64         `json:"memory_bytes"`
	OneThread bool          `json:"one_thread,omitempty"`
	Setup     []string      `json:"setup,omitempty"`
	Python    string        `json:"python_source,omitempty"`
	SQL       string        `json:"sql,omitempty"`
	Problem   string        `json:"problem,omitempty"`
	Waits     []string      `json:"waits_for,omitempty"` // gates that have to be passed before

	ComputedIn string `json:"computed_in,omitempty"` // of an ephemeral table
	Stored     string `json:"stored,omitempty"`      // why its table is stored beside --ephemeral

	ReusedFrom *ReusedFrom `json:"reused_from,omitempty"` // the node whose rows a run would take over
	Computed   string      `json:"computed,omitempty"`    // why a run would compute it
}

// RunTexts is the JSON form of what a run was begun with.
type RunTexts struct {
	Script string    `json:"script"` // name of its file
	Files  []RunText `json:"files"`
}

// RunText is the JSON form of a script, or of a file that one includes or uses, as it was when a run began.
type RunText struct {
	File  string         `json:"file"`
	Text  string         `json:"text"`
	Nodes map[string]int `json:"nodes,omitempty"` // lines in which nodes begin
}

// InferredColumn is the JSON form of a column.
type InferredColumn struct {
	Name     string   `json:"name"`
	Source   string   `json:"source,omitempty"`
	Index    int      `json:"index"`
	Type     string   `json:"type,omitempty"` // absent: cannot be read
	Format   string   `json:"format,omitempty"`
	Nullable bool     `json:"nullable,omitempty"`
	NullText []string `json:"null_text,omitempty"`
	Optional bool     `json:"optional,omitempty"`
	Evidence string   `json:"evidence"`
}

// Tested is the JSON form of a result.
type Tested struct {
	Test        string   `json:"test"`
	File        string   `json:"file"`
	Line        int      `json:"line"`
	Nodes       []string `json:"nodes"`
	OK          bool     `json:"ok"`
	ElapsedMS   float64  `json:"elapsed_ms"`
	Differences []string `json:"differences"`
}

// Validated is the JSON form of the result.
type Validated struct {
	OK          bool                 `json:"ok"`
	Nodes       int                  `json:"nodes"`
	Diagnostics document.Diagnostics `json:"diagnostics"`
	Connections []doctor.Finding     `json:"connections,omitempty"`
}

// Inferred holds what was found out about files.
type Inferred struct {
	File      string           `json:"file"`
	Files     []string         `json:"files,omitempty"` // if there are several
	Rows      int64            `json:"rows"`
	BadRows   int64            `json:"bad_rows,omitempty"`
	Format    string           `json:"format,omitempty"` // json, excel
	Range     string           `json:"range,omitempty"`  // of a sheet
	Encoding  string           `json:"encoding,omitempty"`
	Separator string           `json:"separator,omitempty"`
	Decimal   string           `json:"decimal,omitempty"`
	Thousands string           `json:"thousands,omitempty"`
	Columns   []InferredColumn `json:"columns"`
	Notes     []string         `json:"notes,omitempty"`

	Doubts []infer.Doubt `json:"doubts,omitempty"` // what is left out, put aside or guessed
}
