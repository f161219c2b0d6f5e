package bench

import "thalweg/internal/ops/sweep"

// peerResult is a peer's record of a run; steps and total in seconds.
type peerResult struct {
	Steps    map[string]float64 `json:"steps"`
	Counts   map[string]float64 `json:"counts,omitempty"`
	Total    float64            `json:"total"`
	Plan     string             `json:"plan"`
	Accounts int64              `json:"accounts"`
	Rows     int64              `json:"rows"`

	Forecasts []Forecast    `json:"forecasts,omitempty"`
	Classes   []sweep.Class `json:"classes,omitempty"` // of `bench pipeline --json`
	Loads     []peerLoad    `json:"loads,omitempty"`   // of `bench store --json`
}

// peerLoad is what is kept of a load.
type peerLoad struct {
	Rows []struct {
		Ops    int64   `json:"ops"`
		Failed int64   `json:"failed"`
		Mean   float64 `json:"mean_us"`
	} `json:"rows"`
}

// steps are the figures of a run under the names that Thalweg's have.
func (p peerResult) steps() map[string]float64 {
	const ms = 1000
	return map[string]float64{
		"load_join": ms * (p.Steps["load"] + p.Steps["join"]),
		"python":    ms * (p.Steps["python1"] + p.Steps["tag_python2"]),
	}
}
