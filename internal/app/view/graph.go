package view

import (
	"time"

	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Graph is the picture of a run as boxes and lines, in pixels from the upper left corner.
type Graph struct {
	Title    string   `json:"title"`
	Width    float64  `json:"width"`
	Height   float64  `json:"height"`
	Roots    []string `json:"roots"` // nodes that read no table
	Vertices []Vertex `json:"vertices"`
	Edges    []Edge   `json:"edges"`
}

// Vertex is a box: a node, a gate, or files.
type Vertex struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind"`           // step, manual, file, gate
	Node   string       `json:"node,omitempty"` // of the run; none: files, or no node of this run
	Title  string       `json:"title"`
	Lines  []string     `json:"lines"`          // below the title
	Note   string       `json:"note,omitempty"` // description, or address
	Tags   []string     `json:"tags,omitempty"` // of the node
	X      float64      `json:"x"`
	Y      float64      `json:"y"`
	Width  float64      `json:"width"`
	Height float64      `json:"height"`
	Root   int          `json:"root"` // number in Roots, from 1; 0: of none, or of several
	Status state.Status `json:"status,omitempty"`
}

// Edge goes from a vertex to another one, by their places in Vertices.
type Edge struct {
	From   int          `json:"from"`
	To     int          `json:"to"`
	Kind   string       `json:"kind"`   // rows, lookup, waits
	Points [][2]float64 `json:"points"` // in large pictures from where it leaves that of another edge
}

// RunMatrix shows what became of the nodes of several runs.
type RunMatrix struct {
	Nodes   []MatrixNode `json:"nodes"`
	Runs    []MatrixRun  `json:"runs"`
	LeftOut int          `json:"nodes_left_out"` // nodes beyond those that a matrix has
	Next    string       `json:"next,omitempty"` // cursor of the next page; none: this is the last one
}

// MatrixNode is a row of a matrix.
type MatrixNode struct {
	Node        string `json:"node"`
	Type        string `json:"type"`
	Description string `json:"description,omitempty"` // in the latest run's script
}

// MatrixRun is a column of a matrix.
type MatrixRun struct {
	history.Run
	Cells []MatrixCell `json:"cells"`
}

// MatrixCell is what became of a node in a run.
type MatrixCell struct {
	Node    int          `json:"node"` // place in Nodes
	Status  state.Status `json:"status"`
	Elapsed int64        `json:"elapsed_ms"` // from its first batch to its end
	Started *time.Time   `json:"started,omitempty"`
}
