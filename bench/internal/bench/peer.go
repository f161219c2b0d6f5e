package bench

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"thalweg/internal/fault"
)

// peerResult is what the peer writes about a run; steps and total in seconds.
type peerResult struct {
	Steps     map[string]float64 `json:"steps"`
	Total     float64            `json:"total"`
	Plan      string             `json:"plan"`
	Processes int                `json:"processes"`
	Accounts  int64              `json:"accounts"`
	Rows      int64              `json:"rows"`
	DuckDB    string             `json:"duckdb"`
	Python    string             `json:"python"`
}

// steps are the figures of a run under the names that Thalweg's have.
func (p peerResult) steps() map[string]float64 {
	const ms = 1000
	return map[string]float64{
		"load":      ms * p.Steps["load"],
		"join":      ms * p.Steps["join"],
		"load_join": ms * (p.Steps["load"] + p.Steps["join"]),
		"python":    ms * (p.Steps["python1"] + p.Steps["tag_python2"]),
	}
}

func readPeerResult(path string) (peerResult, error) {
	var p peerResult
	text, err := os.ReadFile(path)
	if err != nil {
		return p, &fault.Error{Kind: fault.Environment, Message: "reading the peer's timings", Err: err}
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, &fault.Error{Kind: fault.Environment, Message: "reading the peer's timings in " + path, Err: err}
	}
	return p, nil
}

// peerDuckDB is the engine version that both sides have.
const peerDuckDB = "1.5.5"

// NumpyPython returns an interpreter that has numpy, in the way of PeerPython.
func NumpyPython(ctx context.Context, python, venv string) (string, error) {
	return pythonWith(ctx, python, venv, "numpy", func(python string) bool {
		_, err := output(ctx, "", python, "-c", "import numpy")
		return err == nil
	})
}

// PeerPython returns an interpreter that has the peer's engine: python itself
// if it has, else one in a virtual environment at venv, which is made when it
// is not there.
func PeerPython(ctx context.Context, python, venv string) (string, error) {
	return pythonWith(ctx, python, venv, "duckdb=="+peerDuckDB, func(python string) bool { return hasEngine(ctx, python) })
}

// pythonWith returns an interpreter that has a package: python itself, or one
// in a virtual environment, where the package is installed if it is not there.
func pythonWith(ctx context.Context, python, venv, packageName string, has func(python string) bool) (string, error) {
	if has(python) {
		return python, nil
	}
	inVenv := filepath.Join(venv, "bin", "python3")
	if has(inVenv) {
		return inVenv, nil
	}
	for _, args := range [][]string{
		{python, "-m", "venv", venv},
		{inVenv, "-m", "pip", "install", "--disable-pip-version-check", "--quiet", packageName},
	} {
		if _, err := output(ctx, "", args...); err != nil {
			f := &fault.Error{Kind: fault.Environment, Message: "getting " + packageName, Err: err}
			f.Hint = "install the Python package " + packageName + " yourself"
			return "", f
		}
	}
	return inVenv, nil
}

func hasEngine(ctx context.Context, python string) bool {
	version, err := output(ctx, "", python, "-c", "import duckdb; print(duckdb.__version__)")
	return err == nil && version == peerDuckDB
}
