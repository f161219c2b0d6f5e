package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"thalweg/bench/generate"
	"thalweg/internal/fault"
)

// The bars. Each holds at the size named with it.
var (
	barLoadJoin   = bar{limit: 1.5}
	barWhole      = bar{limit: 1.10}
	barPythonBusy = bar{limit: 95, unit: "%", atLeast: true}
	barMemory     = bar{limit: 1.3, unit: "GB"}
	barScaling    = bar{limit: 10.5}
	barArkWhole   = bar{limit: 4, unit: "s"}
	barArkExtra   = bar{limit: 0.5, unit: "s"}
	barTagging    = bar{limit: 2}
	barValidate   = bar{limit: 0.3, unit: "s"}
)

// Sizes and repetitions.
const (
	barAccounts     = 1000 // the bars of the generated portfolio are set for this many
	scalingFactor   = 10
	memoryCaseLimit = "1GB"
	smallAccounts   = 200 // up to here a run is short, and repeated more
	smallRepeats    = 3
	bigRepeats      = 2
)

// Case is something to measure.
type Case struct {
	Name string // as in --case
	run  func(context.Context, *session) (Report, error)
}

// Cases lists all cases in the order in which they run: the later ones use
// what the first has measured.
func Cases() []Case {
	tagging := stepCase{name: "tagging", what: "1 M rows, 250 tags of one regular expression each", rows: 1_000_000, whole: &barTagging}
	lookup := stepCase{name: "lookup", what: "a lookup of 10 M rows in 10 M rows", rows: 10_000_000, memory: memoryCaseLimit}
	sorting := stepCase{name: "sorting", what: "20 M rows into one sorted CSV file", rows: 20_000_000, memory: memoryCaseLimit}
	return []Case{
		{"portfolio", portfolioCase},
		{"memory", memoryCase},
		{"scaling", scalingCase},
		{"ark", arkCase},
		{"numpy", numpyCase},
		{"tagging", tagging.measure},
		{"lookup", lookup.measure},
		{"sorting", sorting.measure},
		{"validate", validateCase},
	}
}

// portfolioCase is the generated portfolio on both sides.
func portfolioCase(ctx context.Context, s *session) (Report, error) {
	in, err := s.generated(ctx, s.config.Accounts)
	if err != nil {
		return Report{}, err
	}
	r := s.report(fmt.Sprintf("portfolio-%d", in.summary.Accounts), "generated portfolio, Thalweg and the peer in turn", in)
	for range s.repeats(in) {
		ours, err := s.thalweg(ctx, in, "", r.Case)
		if err != nil {
			return r, err
		}
		theirs, err := s.peer(ctx, in, r.Case)
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, ours.run, theirs.run)
		if err := s.compare(&r, ours, theirs); err != nil {
			return r, err
		}
		if s.whole[in.summary.Accounts], err = keep(s.whole[in.summary.Accounts], ours); err != nil {
			return r, err
		}
	}
	judged := in.summary.Accounts == barAccounts
	ours, theirs := sides(r.Runs)
	r.Checks = append(r.Checks,
		ratio("load and join", "s", seconds(ours, step("load_join")), seconds(theirs, step("load_join")), barLoadJoin, judged),
		ratio("whole", "s", seconds(ours, wall), seconds(theirs, wall), barWhole, judged),
		pythonBusy(ours, judged),
		Check{Name: "python", Unit: "s", Thalweg: ptr(seconds(ours, step("python"))), Peer: ptr(seconds(theirs, step("python"))), Status: NotJudged},
		Check{Name: "peak memory", Unit: "GB", Thalweg: ptr(peakGB(ours)), Peer: ptr(peakGB(theirs)), Status: NotJudged, Note: "no limit given to either side"},
	)
	return r, nil
}

// memoryCase is Thalweg alone under a small memory limit.
func memoryCase(ctx context.Context, s *session) (Report, error) {
	in, err := s.generated(ctx, s.config.Accounts)
	if err != nil {
		return Report{}, err
	}
	r := s.report(fmt.Sprintf("portfolio-%d-memory-%s", in.summary.Accounts, memoryCaseLimit),
		"generated portfolio under --memory "+memoryCaseLimit, in)
	ours, err := s.thalweg(ctx, in, memoryCaseLimit, r.Case)
	if err != nil {
		return r, err
	}
	r.Runs = append(r.Runs, ours.run)
	if earlier := s.whole[in.summary.Accounts]; len(earlier) > 0 {
		how, same, err := alike(earlier[0].out, ours.out)
		if err != nil {
			return r, err
		}
		r.Checks = append(r.Checks, equality("results with and without the limit", how, same && how == alikeBytes))
	}
	peak := figure("peak memory of the process tree", peakGB(r.Runs), barMemory, in.summary.Accounts == barAccounts)
	peak.Note = fmt.Sprintf("pages shared between processes counted in each; counted once %.2f GB", float64(ours.run.PeakPSS)/1e9)
	r.Checks = append(r.Checks, peak, Check{Name: "whole", Unit: "s", Thalweg: ptr(seconds(r.Runs, wall)), Status: NotJudged})
	return r, nil
}

// scalingCase is Thalweg alone with a tenth of the accounts and with all.
func scalingCase(ctx context.Context, s *session) (Report, error) {
	large := s.config.Accounts
	small := max(1, large/scalingFactor)
	r := s.report(fmt.Sprintf("scaling-%d-%d", small, large), "Thalweg with a tenth of the accounts and with all", input{})
	walls := map[int]float64{}
	for _, accounts := range []int{small, large} {
		in, err := s.generated(ctx, accounts)
		if err != nil {
			return r, err
		}
		runs := s.whole[accounts]
		for len(runs) < s.repeats(in) {
			ours, err := s.thalweg(ctx, in, "", r.Case)
			if err != nil {
				return r, err
			}
			runs = append(runs, ours)
		}
		for _, ours := range runs {
			ours.run.Label = fmt.Sprintf("%d accounts", accounts)
			r.Runs = append(r.Runs, ours.run)
		}
		s.whole[accounts] = runs
		walls[accounts] = seconds(r.Runs[len(r.Runs)-len(runs):], wall)
	}
	growth := walls[large] / walls[small]
	r.Checks = []Check{{
		Name: "time with all over time with a tenth", Value: &growth, Bar: barScaling.String(),
		Status: barScaling.judge(growth, large == barAccounts),
		Note:   fmt.Sprintf("%.2f s for %d accounts, %.2f s for %d", walls[small], small, walls[large], large),
	}}
	return r, nil
}

// arkCase is the real data set, where only the fixed costs are worth measuring.
func arkCase(ctx context.Context, s *session) (Report, error) {
	if s.config.RealDataDir == "" {
		r := s.report("ark", "six real funds, Thalweg and the peer in turn", input{})
		r.Skipped = "THALWEG_REAL_DATA is not set"
		return r, nil
	}
	folder := filepath.Join(s.config.RealDataDir, "portfolio")
	in, err := s.ark(folder)
	if err != nil {
		return Report{}, err
	}
	r := s.report("ark", "six real funds, Thalweg and the peer in turn", in)
	if in.params == nil {
		r.Skipped = folder + " is not there"
		return r, nil
	}
	for range s.repeats(in) {
		ours, err := s.thalweg(ctx, in, "", r.Case)
		if err != nil {
			return r, err
		}
		theirs, err := s.peer(ctx, in, r.Case)
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, ours.run, theirs.run)
		if err := s.compare(&r, ours, theirs); err != nil {
			return r, err
		}
		if len(r.Runs) == 2 {
			if err := published(&r, ours.out, filepath.Join(folder, "expected")); err != nil {
				return r, err
			}
		}
	}
	ours, theirs := sides(r.Runs)
	whole := figure("whole", seconds(ours, wall), barArkWhole, true)
	whole.Peer = ptr(seconds(theirs, wall))
	r.Checks = append(r.Checks, whole, figure("overhead, start and exit included", seconds(ours, overhead), barArkExtra, true))
	return r, nil
}

// numpyCase is the generated portfolio in two scripts of Thalweg: a JSON text for
// each account and row-wise Python, and whole accounts as arrays.
func numpyCase(ctx context.Context, s *session) (Report, error) {
	in, err := s.generated(ctx, s.config.Accounts)
	if err != nil {
		return Report{}, err
	}
	r := s.report(fmt.Sprintf("portfolio-%d-numpy", in.summary.Accounts), "generated portfolio, Thalweg with row-wise Python and with numpy in turn", in)
	if s.config.NumpyPython == "" {
		r.Skipped = "no interpreter has numpy"
		return r, nil
	}
	walls := map[string][]float64{}
	for range s.repeats(in) {
		var first done
		for _, side := range []struct{ label, script, python string }{
			{"rows", s.config.Script, s.config.Python}, {"numpy", s.config.NumpyScript, s.config.NumpyPython},
		} {
			ours, err := s.thalwegWith(ctx, in, side.script, side.python, "", r.Case+"-"+side.label)
			if err != nil {
				return r, err
			}
			ours.run.Label = side.label
			r.Runs = append(r.Runs, ours.run)
			walls[side.label] = append(walls[side.label], ours.run.WallMS/1000)
			if side.label == "rows" {
				first = ours
				continue
			}
			how, same, err := alike(first.out, ours.out)
			if err != nil {
				return r, err
			}
			if len(r.Runs) == 2 || !same {
				r.Checks = append(r.Checks, equality("results of both scripts", how, same && how == alikeBytes))
			}
			if err := errors.Join(os.RemoveAll(first.out), os.RemoveAll(ours.out)); err != nil {
				return r, &fault.Error{Kind: fault.Environment, Message: "removing results", Err: err}
			}
		}
	}
	share := median(walls["numpy"]) / median(walls["rows"])
	r.Checks = append(r.Checks, Check{Name: "time with numpy over time with row-wise Python", Value: &share, Status: NotJudged,
		Note: fmt.Sprintf("%.2f s and %.2f s", median(walls["numpy"]), median(walls["rows"]))})
	return r, nil
}

// published compares results with the baselines that came with the real data.
func published(r *Report, out, expected string) error {
	baselines, err := filepath.Glob(filepath.Join(expected, "*_baseline.csv"))
	if err != nil {
		return fmt.Errorf("looking for baselines: %w", err)
	}
	for _, path := range baselines {
		name := filepath.Base(path)
		ours := name[:len(name)-len("_baseline.csv")] + ".csv"
		how, err := firstDifference(filepath.Join(out, ours), path)
		if err != nil {
			return err
		}
		note := how
		if how == "" {
			note = alikeBlanks
		}
		r.Checks = append(r.Checks, equality(ours+" as published", note, how == ""))
	}
	return nil
}

// input is what a case reads.
type input struct {
	params  *generate.Params
	summary generate.Summary
	about   map[string]any
}

func (in input) files() []string {
	p := in.params
	return slices.Concat(p.AccountsURLs, p.TxnsURLs, p.HoldingsURLs, []string{p.PricesFile, p.CompaniesFile})
}

// pythonBusy is how much of the cores was used while Python nodes worked.
func pythonBusy(ours []Run, judged bool) Check {
	var shares []float64
	for _, run := range ours {
		if run.PythonCPUShare != nil {
			shares = append(shares, 100**run.PythonCPUShare)
		}
	}
	if len(shares) == 0 {
		return Check{Name: "cores busy during Python nodes", Bar: barPythonBusy.String(), Status: NotJudged, Note: "too short to tell"}
	}
	return figure("cores busy during Python nodes", median(shares), barPythonBusy, judged)
}

// What is taken from a run, in milliseconds.
func wall(r Run) float64 { return r.WallMS }

func step(name string) func(Run) float64 { return func(r Run) float64 { return r.StepsMS[name] } }

// overhead is what the product says it spent outside the engine and Python,
// and the time of the process outside the run.
func overhead(r Run) float64 { return r.Result.OverheadMS + r.WallMS - r.Result.ElapsedMS }

// seconds is the median of a figure over runs.
func seconds(runs []Run, of func(Run) float64) float64 { return median(mapped(runs, of)) / 1000 }

// peakGB is the largest peak of all runs: memory is judged by the worst.
func peakGB(runs []Run) float64 {
	return slices.Max(mapped(runs, func(r Run) float64 { return float64(r.PeakRSS) / 1e9 }))
}

func ptr(v float64) *float64 { return &v }

// sides splits runs.
func sides(runs []Run) (ours, theirs []Run) {
	for _, r := range runs {
		if r.Side == sideThalweg {
			ours = append(ours, r)
		} else {
			theirs = append(theirs, r)
		}
	}
	return ours, theirs
}

// keep adds a run to those whose results stay for later comparison: the first
// one's do, others are compared at once and removed.
func keep(runs []done, one done) ([]done, error) {
	if len(runs) > 0 {
		if err := os.RemoveAll(one.out); err != nil {
			return runs, &fault.Error{Kind: fault.Environment, Message: "removing results", Err: err}
		}
	}
	return append(runs, one), nil
}
