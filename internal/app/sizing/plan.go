package sizing

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/planning"
	"thalweg/internal/ops/price"
	"thalweg/internal/ops/simulate"
)

// Choice is a deployment as a plan foresees it.
type Choice = planning.Choice

// Wanted is what a plan is made for.
type Wanted struct {
	Scale    float64 // its files are so many times as large
	Batches  float64 // its nodes have so many times as many batches
	Deadline time.Duration
	Budget   price.Money
	BringUp  *time.Duration     // nil: that of the cluster, or DefaultBringUp
	Machines []string           // types; none: the family of the run's own
	Prices   *Prices            // before those of the basis; nil: none
	Speeds   map[string]float64 // of cores of types that were measured, times one of the run's
}

// DefaultBringUp is how long machines are paid for before and after a run, if nobody says it.
const DefaultBringUp = time.Minute

// Planned is a plan with what it is about.
type Planned struct {
	Run      int64        `json:"run"`
	Scale    float64      `json:"scale"`
	Deadline float64      `json:"deadline_s,omitempty"`
	Budget   *price.Money `json:"budget_usd,omitempty"`
	BringUp  float64      `json:"bring_up_s" doc:"Paid for each machine and for services, and not in the times."`
	Beside   *price.Money `json:"services_usd_per_hour,omitempty" doc:"Paid beside the machines; none: there are none."`
	Measured Deployment   `json:"measured"`
	planning.Plan
	Notes    []string `json:"notes"`
	Warnings []string `json:"warnings,omitempty"`
}

// Deployment is what carried the run out.
type Deployment struct {
	Machine string  `json:"machine,omitempty"` // type; none: not known
	Workers int     `json:"workers"`
	Cores   int     `json:"cores"` // of each
	Slots   int     `json:"slots"` // of each
	Elapsed float64 `json:"elapsed_s"`
}

// timesMax bounds how many times as much a plan is made for.
const timesMax = 10_000

// ParseTimes reads how many times as many: 4x.
func ParseTimes(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "x")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 1.0/timesMax && v <= timesMax) {
		return 0, fault.New(fault.Script, "%q is not how many times as many, such as 4x or 0.5x", text)
	}
	return v, nil
}

// ParseBudget reads an amount in US dollars above 0.
func ParseBudget(text string) (price.Money, error) {
	m, err := price.Parse(text)
	if err != nil || m == 0 {
		return 0, fault.New(fault.Script, "%q is not an amount of US dollars, such as 1.5", text)
	}
	return m, nil
}

// ReadSpeeds adds the speed of a type of machine to others; errors name the file.
func ReadSpeeds(name string, text []byte, to map[string]float64) error {
	s, err := simulate.ReadSpeed(name, text)
	if err != nil {
		return err
	}
	_, twice := to[s.Machine]
	if s.Machine == "" || twice {
		f := fault.New(fault.Script, "the file does not say of which type of machine it is")
		if twice {
			f = fault.New(fault.Script, "there are two speeds of %s", s.Machine)
		}
		f.Place.File, f.Hint = name, `it has a field: "machine": "c8g.large"`
		return f
	}
	to[s.Machine] = s.CoreSpeed
	return nil
}

// WriteSVG draws time and cost of the deployments that were simulated.
func (p Planned) WriteSVG(w io.Writer) error {
	point := func(c Choice) chart.Point {
		return chart.Point{X: c.Middle, Y: c.Cost.USD(), Text: ChoiceText(c) + ": " + c.Cost.String()}
	}
	front := chart.Series{Name: "frontier"}
	for _, c := range p.Frontier {
		front.Points = append(front.Points, point(c))
	}
	series := []chart.Series{front}
	for _, c := range p.Simulated {
		i := slices.IndexFunc(series[1:], func(s chart.Series) bool { return s.Name == c.Machine }) + 1
		if i == 0 {
			series = append(series, chart.Series{Name: c.Machine, Dots: true})
			i = len(series) - 1
		}
		series[i].Points = append(series[i].Points, point(c))
	}
	return chart.Write(w, "run "+strconv.FormatInt(p.Run, 10)+" on other machines",
		[]chart.Panel{{Title: "cost of a run", X: "seconds", Y: "US dollars", Series: series}})
}

// ChoiceText names a deployment: 4 × c7g.large.
func ChoiceText(c Choice) string { return strconv.Itoa(c.Count) + " × " + c.Machine }
