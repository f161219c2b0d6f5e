package peek

import (
	"encoding/json"
	"time"

	"thalweg/internal/app/inspect"
)

// settings are what a child is told at its start. A question that needs others gets another child.
type settings struct {
	Lent        bool     `json:"lent,omitempty"`  // state and parts
	Actor       string   `json:"actor,omitempty"` // whose SQL it executes; "": nobody's
	Read        []string `json:"read,omitempty"`  // files and directories that it may read
	MemoryBytes int64    `json:"memory_bytes"`
	SpillBytes  int64    `json:"spill_bytes"`

	Home *homeSettings `json:"home,omitempty"` // of one that is lent what it needs
}

// homeSettings are what a child needs that looks at an instance as its parent does.
type homeSettings struct {
	Dir          string          `json:"dir"`
	Beside       string          `json:"beside"`
	Parts        string          `json:"parts"`
	Program      string          `json:"program"`
	Interpreter  string          `json:"interpreter"`
	Keeper       string          `json:"keeper"`
	WorkingDir   string          `json:"working_dir"`
	RowTimeout   time.Duration   `json:"row_timeout"`
	GroupTimeout time.Duration   `json:"group_timeout"`
	Client       json.RawMessage `json:"client"`
}

// What children are asked.
const (
	askQuery    = "query"
	askDownload = "download"
	askDiff     = "diff"
	askTrace    = "trace"
	askCheck    = "check"
	askExplain  = "explain"
)

// queryArgs ask for rows, as a stream.
type queryArgs struct {
	inspect.Prepared
	// PageBytes ends the rows before their cells have more; there is one at least. 0: no limit.
	PageBytes int `json:"page_bytes"`
}

// queryAnswer says how the rows ended.
type queryAnswer struct {
	inspect.Executed
	Full bool `json:"full,omitempty"` // PageBytes were reached
}
