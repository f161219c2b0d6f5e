package view

import (
	"time"

	"thalweg/internal/lang/matrix"
	"thalweg/internal/store/state"
)

// Cell is the JSON form of a cell of a matrix.
type Cell struct {
	Event     string            `json:"event,omitempty"`
	Matrix    string            `json:"matrix"`
	Cell      string            `json:"cell"`
	Params    map[string]string `json:"params"`
	Run       int64             `json:"run,omitempty"`
	Try       int               `json:"try,omitempty"`
	Status    state.Status      `json:"status"`
	Kept      bool              `json:"kept,omitempty"`
	ElapsedMS int64             `json:"elapsed_ms"`
	Failure   *state.Failure    `json:"failure,omitempty"`
}

// MatrixFinished is the last JSON event of run --matrix.
type MatrixFinished struct {
	Event  string         `json:"event"`
	Matrix string         `json:"matrix"`
	Cells  map[string]int `json:"cells"` // by status
}

// Matrix is the JSON form of a matrix.
type Matrix struct {
	Matrix string        `json:"matrix"`
	Script string        `json:"script"`
	Axes   []matrix.Axis `json:"axes"`
	Round  int           `json:"round"`
	Begun  time.Time     `json:"begun"`
}
