package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"thalweg/internal/base/fault"
)

// Alone simulates over an empty state of its own, in memory.
func Alone(ctx context.Context, c Config) (Result, error) { return Run(ctx, newMemory(), c) }

// Measured holds the times of real runs.
type Measured struct {
	Runs []MeasuredRun `json:"runs"`
}

// MeasuredRun is one of them.
type MeasuredRun struct {
	Workers int     `json:"workers"`
	Elapsed float64 `json:"elapsed_s"`
}

// ReadMeasured reads them from JSON.
func ReadMeasured(name string, text []byte) (Measured, error) {
	var m Measured
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	err := d.Decode(&m)
	if err == nil && len(m.Runs) == 0 {
		err = errors.New("it has no runs")
	}
	if err != nil {
		f := fault.New(fault.Script, "what was measured cannot be read: %v", err)
		f.Place.File, f.Hint = name, `it is JSON: {"runs": [{"workers": 1, "elapsed_s": 60.5}]}`
		return m, f
	}
	return m, nil
}

// Of finds the run with so many workers.
func (m Measured) Of(workers int) (MeasuredRun, bool) {
	for _, r := range m.Runs {
		if r.Workers == workers {
			return r, true
		}
	}
	return MeasuredRun{}, false
}
