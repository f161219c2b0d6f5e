package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"thalweg/internal/base/format"
	"thalweg/internal/ops/chart"
	"thalweg/internal/ops/price"
)

// Report is what is said of the runs of a study or a table.
type Report struct {
	Name    string          `json:"name"`
	Title   string          `json:"title"`
	Sources []string        `json:"sources,omitempty"`
	Runs    []ReportedRun   `json:"runs,omitempty"`
	Models  []ReportedModel `json:"models,omitempty"`
	// Foreseen has each deployment by the model to plan with, fitted to the others.
	Foreseen []Foreseen `json:"foreseen,omitempty"`
	Steps    []Step     `json:"doublings,omitempty"`
	Frontier []Choice   `json:"frontier,omitempty"`
	Planning *Planning  `json:"planning,omitempty"`
	Classes  []ClassFit `json:"classes,omitempty"`
	Lines    any        `json:"lines,omitempty"` // of a study that has no runs: a row of its table each
	Findings []string   `json:"findings,omitempty"`
	Doubts   []string   `json:"does_not_add_up,omitempty"`
	// Asked is what the note says and asks beside its tables, and which command says so of runs of one's own.
	Asked []string `json:"note_and_own_runs,omitempty"`

	tables []Table
	panels []chart.Panel
	fit    *Fit // of the model to plan with
}

// ReportedRun is a run beside what it would be if all cores were as good as those of the smallest deployment.
type ReportedRun struct {
	Run
	PerfectSeconds float64      `json:"perfect_seconds"`
	PerfectCost    *price.Money `json:"perfect_usd,omitempty"`
}

// ReportedModel is a model with its parts, and how far off it is for deployments left out.
type ReportedModel struct {
	Name    string             `json:"model"`
	Formula string             `json:"formula"`
	Parts   map[string]float64 `json:"parts,omitempty"`
	*Errors                    // nil: it was not fitted
	Why     string             `json:"not_fitted,omitempty"`
	fit     Fit
}

// ClassFit is the time of a class of nodes by Amdahl's law: what no core shortens, and what is divided by all.
type ClassFit struct {
	Name        string  `json:"class"`
	Share       float64 `json:"share"` // of the time of all classes, median of the runs
	Floor       float64 `json:"floor_seconds"`
	CoreSeconds float64 `json:"core_seconds"`
	Errors
}

// The plans that a report tries: so much is added to what is foreseen, for so many deadlines.
const (
	PlanMargin    = 0.15
	PlanDeadlines = 60
)

// Describe makes the report of runs, with the classes of nodes if they are asked for.
func Describe(name, title string, runs []Run, byClass bool) (Report, error) {
	r := Report{Name: name, Title: title, Steps: StepsOf(runs)}
	for _, run := range runs {
		perfect := PerfectOf(run, runs)
		if !byClass {
			run.Classes = nil
		}
		r.Runs = append(r.Runs, ReportedRun{run, perfect.Seconds, perfect.Cost})
	}
	r.addModels(runs)
	if allPriced(runs) {
		r.Frontier = Frontier(runs)
	}
	if r.fit != nil {
		foreseen, err := LeftOut(Floors, runs)
		if err != nil {
			return r, err
		}
		r.Foreseen = foreseen
		if r.Frontier != nil {
			p, err := TryPlanning(Floors, runs, PlanMargin, PlanDeadlines)
			if err != nil {
				return r, err
			}
			r.Planning = &p
		}
	}
	if byClass {
		r.addClasses(runs)
	}
	r.addFindings(runs)
	return r, nil
}

// addModels fits each model; one whose errors for deployments left out cannot be told is not used, and says why.
func (r *Report) addModels(runs []Run) {
	for _, m := range models {
		one := ReportedModel{Name: m.Name, Formula: m.Formula}
		foreseen, err := LeftOut(m, runs)
		fit, fitErr := FitRuns(m, runs)
		if err = cmp.Or(fitErr, err); err != nil {
			one.Why = err.Error()
		} else {
			errors := ErrorsOf(foreseen)
			one.fit, one.Errors, one.Parts = fit, &errors, map[string]float64{}
			for k, part := range m.Parts {
				one.Parts[part] = fit.Values[k]
			}
			if m.Name == Floors.Name {
				r.fit = &fit
			}
		}
		r.Models = append(r.Models, one)
	}
}

func (r *Report) addClasses(runs []Run) {
	var names []string
	for _, run := range runs {
		for _, c := range run.Classes {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}
	for _, name := range names {
		var of []Run
		var shares []float64
		for _, run := range runs {
			all := 0.0
			for _, c := range run.Classes {
				all += c.Seconds
			}
			for _, c := range run.Classes {
				if c.Name == name && c.Seconds > 0 {
					of = append(of, Run{Shape: run.Shape, Seconds: c.Seconds})
					shares = append(shares, c.Seconds/all)
				}
			}
		}
		foreseen, err := LeftOut(Amdahl, of)
		if err != nil {
			continue // too few runs have the class: its times are in the table
		}
		fit, err := FitRuns(Amdahl, of)
		if err != nil {
			continue
		}
		r.Classes = append(r.Classes, ClassFit{Name: name, Share: median(shares), Floor: fit.Values[0],
			CoreSeconds: fit.Values[1], Errors: ErrorsOf(foreseen)})
	}
}

// floorLeast is the shortest floor of a class, in seconds, that is called one.
const floorLeast = 1

// addFindings says in words what the fit and the tables show.
func (r *Report) addFindings(runs []Run) {
	say := func(text string, args ...any) { r.Findings = append(r.Findings, fmt.Sprintf(text, args...)) }
	if r.fit != nil {
		s, sLow, sHigh := r.fit.Part("s")
		p, _, _ := r.fit.Part("p")
		q, qLow, qHigh := r.fit.Part("q")
		say("A run takes %.0f s [%.0f–%.0f] that nothing shortens, %s core-seconds that all cores share, and %.0f "+
			"[%.0f–%.0f] that only the cores of one node share: more nodes do not shorten those (80 %% intervals).", s, sLow,
			sHigh,
			format.Count(int64(math.Round(p))), q, qLow, qHigh)
	}
	r.addEqualCores(runs, say)
	r.addDoublings(say)
	if n := len(r.Frontier); n > 1 && *r.Frontier[n-1].Cost > 0 {
		first, last := r.Frontier[0], r.Frontier[n-1]
		say("A shorter deadline costs more: the fastest, %s, takes %.2f of the time of the cheapest, %s, and costs %.2f "+
			"times as much.",
			first.Shape, first.Seconds/last.Seconds, last.Shape, first.Cost.USD()/last.Cost.USD())
	}
	if p := r.Planning; p != nil && p.Planned > 0 {
		say("Planned with %.0f %% margin, each deployment foreseen from the others: of %d deadlines %d were refused, %d "+
			"of %d kept, "+
			"at a median of %.0f %% above the best possible cost.", 100*p.Margin, p.Deadlines, p.Refused, p.Kept, p.Planned,
			100*p.Over)
	}
	for _, c := range r.Classes {
		coreSeconds := format.Count(int64(min(math.Round(c.CoreSeconds), math.MaxInt64/2)))
		if c.Floor < floorLeast {
			say("%s has no floor: %s core-seconds divided by the cores.", c.Name, coreSeconds)
		} else {
			say("%s has a floor of %.0f s beside %s core-seconds divided by the cores.", c.Name, c.Floor, coreSeconds)
		}
	}
	r.addBeyond(runs, say)
}

// addEqualCores compares shapes of the same number of cores: the best one with that of the most nodes.
func (r *Report) addEqualCores(runs []Run, say func(string, ...any)) {
	by := map[int][]Run{}
	for _, run := range deployments(runs) {
		by[run.Total()] = append(by[run.Total()], run)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, same := range by {
		if len(same) < 2 {
			continue
		}
		most := slices.MaxFunc(same, func(a, b Run) int { return cmp.Compare(a.Nodes, b.Nodes) })
		best := slices.MinFunc(same, func(a, b Run) int { return cmp.Compare(a.Seconds, b.Seconds) })
		less := 1 - best.Seconds/most.Seconds
		low, high = min(low, less), max(high, less)
	}
	if low <= high {
		say("At equal cores the best shape took %.0f–%.0f %% less time than the one with the most nodes.", 100*low, 100*high)
	}
}

// worthwhile is by how much twice the cores may raise the cost of a run: more is called expensive.
const worthwhile = 1.1

// addDoublings says where going up and out is worth it.
func (r *Report) addDoublings(say func(string, ...any)) {
	for _, up := range []bool{true, false} {
		var fine []string
		of := 0
		for _, s := range r.Steps {
			if s.Up != up || s.Cost == 0 {
				continue
			}
			of++
			if s.Cost <= worthwhile {
				fine = append(fine, fmt.Sprintf("%s to %s", s.From, s.To))
			}
		}
		way := map[bool]string{true: "up", false: "out"}[up]
		switch {
		case of > 0 && len(fine) == 0:
			say("Scaling %s raises the cost of a run by more than a tenth in all %d doublings.", way, of)
		case of > 0:
			say("Scaling %s raises the cost of a run by a tenth at most in %d of %d doublings: %s.", way, len(fine), of,
				listed(fine))
		}
	}
}

func listed(texts []string) string {
	out := texts[0]
	for i, t := range texts[1:] {
		if i == len(texts)-2 {
			out += " and " + t
		} else {
			out += ", " + t
		}
	}
	return out
}

// smallTimes is how many times as large as the smallest deployment those are that addBeyond fits to.
const smallTimes = 4

// addBeyond says how far off the model is for deployments larger than all that it is fitted to.
func (r *Report) addBeyond(runs []Run, say func(string, ...any)) {
	if r.fit == nil {
		return
	}
	limit := smallTimes * deploymentOfLeastCores(runs).Total()
	var small, large []Run
	for _, run := range runs {
		if run.Total() <= limit {
			small = append(small, run)
		} else {
			large = append(large, run)
		}
	}
	fit, err := FitRuns(Floors, small)
	if err != nil || len(large) == 0 {
		return
	}
	var misses []float64
	for _, run := range large {
		misses = append(misses, math.Abs(fit.At(run.Shape)/run.Seconds-1))
	}
	say("Foreseen from deployments of at most %d cores, larger ones are missed by a median of %.0f %%.", limit,
		100*median(misses))
}
