package bench

import (
	"fmt"
	"slices"
	"strings"
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

// Check is one figure beside its bar.
type Check struct {
	Name    string   `json:"name"`
	Thalweg *float64 `json:"thalweg,omitempty"` // in Unit
	Peer    *float64 `json:"peer,omitempty"`    // in Unit
	Unit    string   `json:"unit,omitempty"`
	// Value is what the bar is held against: a ratio of the two sides, or
	// Thalweg's figure itself.
	Value  *float64 `json:"value,omitempty"`
	Bar    string   `json:"bar,omitempty"`
	Status Status   `json:"status"`
	Note   string   `json:"note,omitempty"`
}

// Run is one measured run of one side.
type Run struct {
	Side      string    `json:"side"`
	Label     string    `json:"label,omitempty"`
	Command   []string  `json:"command"`
	Started   time.Time `json:"started"`
	WallMS    float64   `json:"wall_ms"` // start to exit of the process
	CPUMS     float64   `json:"cpu_ms"`  // of the process tree
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
	Skipped  string            `json:"skipped,omitempty"` // why nothing was measured
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

// bar is a limit that a value is held to.
type bar struct {
	limit   float64
	atLeast bool
	unit    string // empty for a ratio
}

func (b bar) String() string {
	sign := "≤"
	if b.atLeast {
		sign = "≥"
	}
	if b.unit == "" {
		return fmt.Sprintf("%s %.2f%s", sign, b.limit, times)
	}
	return fmt.Sprintf("%s %g %s", sign, b.limit, b.unit)
}

// times marks a ratio.
const times = "×"

// isRatio tells a value that is a ratio from one in the check's unit.
func (c Check) isRatio() bool { return strings.HasSuffix(c.Bar, times) }

// judge holds value to the bar, if there is a verdict to be given.
func (b bar) judge(value float64, judged bool) Status {
	switch {
	case !judged:
		return NotJudged
	case b.atLeast && value >= b.limit, !b.atLeast && value <= b.limit:
		return Pass
	default:
		return Miss
	}
}

// ratio is a check of one side against the other.
func ratio(name, unit string, thalweg, peer float64, b bar, judged bool) Check {
	c := Check{Name: name, Unit: unit, Thalweg: &thalweg, Peer: &peer, Bar: b.String(), Status: NotJudged}
	if peer <= 0 {
		c.Note = "the peer's figure is zero"
		return c
	}
	value := thalweg / peer
	c.Value, c.Status = &value, b.judge(value, judged)
	return c
}

// figure is a check of Thalweg's own figure.
func figure(name string, value float64, b bar, judged bool) Check {
	return Check{Name: name, Unit: b.unit, Thalweg: &value, Value: &value, Bar: b.String(), Status: b.judge(value, judged)}
}

// equality is a check of two sets of result files; it is judged at any size.
func equality(name, how string, same bool) Check {
	c := Check{Name: name, Bar: "equal", Status: Pass, Note: how}
	if !same {
		c.Status = Miss
	}
	return c
}
