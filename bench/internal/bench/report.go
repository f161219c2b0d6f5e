package bench

import (
	"slices"
	"time"
)

// Status is a verdict.
type Status string

// The verdicts.
const (
	Pass      Status = "pass"
	Miss      Status = "MISS"
	NotJudged Status = "not judged" // measured at another size than the bar's, or not measurable
)

// Figure sums up a figure of a side's runs: their median, or the worst.
type Figure struct {
	Side  string  `json:"side"`
	Value float64 `json:"value"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
}

// Check is one figure beside its bar.
type Check struct {
	Name string  `json:"name"`
	Of   *Figure `json:"of,omitempty"`   // in Unit
	Over *Figure `json:"over,omitempty"` // in Unit
	Unit string  `json:"unit,omitempty"`
	// Value is the figure that is compared with the bar: a ratio of the two, the excess of one, or the figure
	// itself.
	Value  *float64 `json:"value,omitempty"`
	Ratio  bool     `json:"ratio,omitempty"`
	Bar    string   `json:"bar,omitempty"`
	Status Status   `json:"status"`
	Note   string   `json:"note,omitempty"`
}

// Run is one measured run of one side.
type Run struct {
	Side      string    `json:"side"`
	Command   []string  `json:"command"`
	Started   time.Time `json:"started"`
	WallMS    float64   `json:"wall_ms"`                   // start to exit of the process
	CPUMS     float64   `json:"cpu_ms"`                    // of the process tree
	Services  float64   `json:"services_cpu_ms,omitempty"` // of the services that it asked
	PeakRSS   int64     `json:"peak_rss_bytes"`
	PeakPSS   int64     `json:"peak_pss_bytes"`
	Procs     int       `json:"processes"`
	LoadAvg   string    `json:"load_average_before"`
	Foreign   float64   `json:"foreign_cpu_share"` // of all cores, used by other processes meanwhile
	Stolen    float64   `json:"stolen_cpu_share"`  // of all cores, taken by the host
	Disturbed bool      `json:"disturbed"`

	StepsMS map[string]float64 `json:"steps_ms"`
	// PythonCPUShare is the tree's processor time over all cores while Python
	// nodes were at work; nil when they took too short to tell.
	PythonCPUShare *float64    `json:"python_cpu_share,omitempty"`
	Result         *finished   `json:"result,omitempty"`
	Peer           *peerResult `json:"peer,omitempty"`
	Outputs        []Output    `json:"outputs"`
}

// Report is one case with everything that was measured.
type Report struct {
	Case     string            `json:"case"`
	What     string            `json:"what"`
	Date     time.Time         `json:"date"`
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Input    map[string]any    `json:"input,omitempty"`
	Checks   []Check           `json:"checks"`
	Runs     []Run             `json:"runs"`
	LeftOut  []string          `json:"left_out,omitempty"` // sides, and why
}

// Missed reports whether any check missed its bar.
func (r Report) Missed() bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == Miss })
}

// Disturbed reports whether other processes used the machine during any run.
func (r Report) Disturbed() bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Disturbed })
}

// median is the middle value, or the mean of the two middle ones. There must
// be at least one.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// times marks a ratio.
const times = "×"

// leaveOut notes, once, that a side was not measured.
func (r *Report) leaveOut(side, why string) {
	text := side + ": " + why
	if !slices.Contains(r.LeftOut, text) {
		r.LeftOut = append(r.LeftOut, text)
	}
}

// equality is a check of two sets of result files; it is judged at any size.
func equality(name, how string, same bool) Check {
	c := Check{Name: name, Bar: "equal", Status: Pass, Note: how}
	if !same {
		c.Status = Miss
	}
	return c
}
