package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state/sqlite"
)

// Alone simulates over an empty store of its own, which is removed again.
func Alone(ctx context.Context, c Config) (r Result, err error) {
	dir, err := os.MkdirTemp("", "thalweg-simulate-")
	if err != nil {
		return Result{}, &fault.Error{Kind: fault.Environment,
			Message: "make a directory for the state of a simulation", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := sqlite.OpenScratch(ctx, filepath.Join(dir, "state.db"))
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return Run(ctx, store, c)
}

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
