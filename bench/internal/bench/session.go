package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/bench/generate"
	"thalweg/internal/fault"
)

// Config says what to measure and where things are. Paths may be relative.
type Config struct {
	Thalweg     string // the command under test
	Script      string // the portfolio script for Parquet input
	ArkScript   string // the same for CSV input; empty means Script
	NumpyScript string // the same work with numpy, for Parquet input
	NumpyPython string // interpreter that has numpy; empty: there is none, and the case is skipped
	Peer        string // the peer's program
	Python      string // interpreter for Thalweg's formulas
	PeerPython  string // interpreter that has the peer's engine
	PeerPlan    string // fused or staged; empty leaves it to the peer
	StepsDir    string // a directory for each case of one step: input.sql, script.yaml, peer.sql
	StepsPeer   string // program that runs the SQL files
	RealDataDir string // has portfolio/ with the real data; "" where there is none
	WorkDir     string // generated inputs and the files of runs
	Accounts    int    // of the generated portfolio
	Repeats     int    // runs of each side in a case, 0 means by size
	Logger      *slog.Logger
}

// The two sides.
const (
	sideThalweg = "thalweg"
	sidePeer    = "peer"
)

// minPythonMS is the shortest time of Python nodes over which the coarse CPU
// counters tell something.
const minPythonMS = 2000

// disturbedShare of all cores used by others makes a run disturbed.
const disturbedShare = 0.05

// session is what the cases of one invocation share.
type session struct {
	config   Config
	machine  Machine
	versions map[string]string
	runs     int // so far, numbers the directories
	// whole are the plain runs of Thalweg by accounts; the first one's
	// results are still there.
	whole map[int][]done
	// inputs are the generated inputs by accounts.
	inputs map[int]input
}

// done is a finished run and where its results are.
type done struct {
	run Run
	out string
}

// Measure runs the named cases, in the order of Cases whatever the order of
// names, and hands each report to emit as soon as it is there.
func Measure(ctx context.Context, c Config, names []string, emit func(Report) error) (err error) {
	s, err := newSession(ctx, c)
	if err != nil {
		return err
	}
	runs := filepath.Join(s.config.WorkDir, "runs")
	defer func() { err = errors.Join(err, os.RemoveAll(runs)) }()
	wanted := map[string]bool{}
	for _, n := range names {
		wanted[n] = true
	}
	for _, one := range Cases() {
		if !wanted[one.Name] {
			continue
		}
		r, err := one.run(ctx, s)
		if err != nil {
			return fmt.Errorf("case %s: %w", one.Name, err)
		}
		if err := emit(r); err != nil {
			return err
		}
	}
	return nil
}

func newSession(ctx context.Context, c Config) (*session, error) {
	if c.ArkScript == "" {
		c.ArkScript = c.Script
	}
	for _, path := range []*string{&c.Thalweg, &c.Script, &c.ArkScript, &c.NumpyScript, &c.Peer, &c.StepsDir, &c.StepsPeer, &c.WorkDir, &c.RealDataDir} {
		if *path == "" {
			continue // Abs would make it the current folder
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Environment, Message: "resolving " + *path, Err: err}
		}
		*path = absolute
	}
	for _, path := range []string{c.Thalweg, c.Script, c.ArkScript, c.Peer} {
		if _, err := os.Stat(path); err != nil {
			return nil, &fault.Error{Kind: fault.Environment, Message: "looking for what is to be measured", Err: err, Hint: "build the command first"}
		}
	}
	// Leftovers of an interrupted benchmark.
	if err := os.RemoveAll(filepath.Join(c.WorkDir, "runs")); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "removing old runs", Err: err}
	}
	return &session{
		config: c, machine: thisMachine(), versions: versions(ctx, c),
		whole: map[int][]done{}, inputs: map[int]input{},
	}, nil
}

// report starts a report.
func (s *session) report(name, what string, in input) Report {
	return Report{Case: name, What: what, Date: time.Now().UTC(), Machine: s.machine, Versions: s.versions, Input: in.about}
}

func (s *session) repeats(in input) int {
	switch {
	case s.config.Repeats > 0:
		return s.config.Repeats
	case in.summary.Accounts <= smallAccounts:
		return smallRepeats
	default:
		return bigRepeats
	}
}

// generated returns the generated portfolio, making it if it is not there.
func (s *session) generated(ctx context.Context, accounts int) (input, error) {
	if in, ok := s.inputs[accounts]; ok {
		return in, nil
	}
	o := generate.Options{Accounts: accounts, Dir: filepath.Join(s.config.WorkDir, fmt.Sprintf("portfolio-%d", accounts)), Seed: 1}
	sum, ok, err := generate.Existing(o)
	if err == nil && !ok {
		s.config.Logger.InfoContext(ctx, "generating", "accounts", accounts, "dir", o.Dir)
		sum, err = generate.Portfolio(ctx, o)
	}
	if err != nil {
		return input{}, err
	}
	var p generate.Params
	if err := readJSON(sum.Params, &p); err != nil {
		return input{}, err
	}
	in := input{params: &p, summary: sum, about: map[string]any{
		"accounts": sum.Accounts, "txns": sum.Txns, "txns_in_period": sum.TxnsInPeriod, "holdings": sum.Holdings,
		"prices": sum.Prices, "files": sum.Files, "bytes": sum.Bytes, "format": generate.FormatParquet, "seed": o.Seed,
	}}
	s.inputs[accounts] = in
	return in, warm(in.files())
}

// ark returns the real data set; its params are nil when it is not there.
func (s *session) ark(folder string) (input, error) {
	at := func(name string) string { return filepath.Join(folder, "in", name) }
	if _, err := os.Stat(at("txns.csv")); errors.Is(err, fs.ErrNotExist) {
		return input{}, nil
	}
	in := input{
		params: &generate.Params{
			AccountsURLs: []string{at("accounts.csv")}, TxnsURLs: []string{at("txns.csv")}, HoldingsURLs: []string{at("holdings.csv")},
			PricesFile: at("prices.csv"), CompaniesFile: at("companies.csv"),
			PeriodStart: generate.PeriodStart, PeriodEnd: generate.PeriodEnd,
		},
		summary: generate.Summary{Accounts: 6},
		about:   map[string]any{"accounts": 6, "format": generate.FormatCSV},
	}
	return in, warm(in.files())
}

// runDir makes the directory of the next run with its parameter file.
func (s *session) runDir(in input, name string) (dir, params, out string, err error) {
	return s.runDirWith(name, func(out string) any {
		p := *in.params
		p.DirOut = out
		return p
	})
}

// runDirWith is runDir for parameters that are known when the directory of
// the results is.
func (s *session) runDirWith(name string, of func(out string) any) (dir, params, out string, err error) {
	s.runs++
	dir = filepath.Join(s.config.WorkDir, "runs", fmt.Sprintf("%03d-%s", s.runs, name))
	params, out = filepath.Join(dir, "params.json"), filepath.Join(dir, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", "", "", &fault.Error{Kind: fault.Environment, Message: "making the directory of a run", Err: err}
	}
	text, err := json.MarshalIndent(of(out), "", "  ")
	if err != nil {
		return "", "", "", fmt.Errorf("encoding parameters: %w", err)
	}
	if err := os.WriteFile(params, text, 0o644); err != nil {
		return "", "", "", &fault.Error{Kind: fault.Environment, Message: "writing parameters", Err: err}
	}
	return dir, params, out, nil
}

// thalweg measures one run of the command under test.
func (s *session) thalweg(ctx context.Context, in input, memory, name string) (done, error) {
	script := s.config.Script
	if filepath.Ext(in.params.TxnsURLs[0]) == ".csv" {
		script = s.config.ArkScript
	}
	return s.thalwegWith(ctx, in, script, s.config.Python, memory, name)
}

// thalwegWith measures one run of a script with an interpreter.
func (s *session) thalwegWith(ctx context.Context, in input, script, python, memory, name string) (done, error) {
	dir, params, out, err := s.runDir(in, name)
	if err != nil {
		return done{}, err
	}
	return s.runThalweg(ctx, name, dir, out, []string{script, "--params", params, "--python", python}, memory)
}

// runThalweg measures the command's run with args in dir.
func (s *session) runThalweg(ctx context.Context, name, dir, out string, args []string, memory string) (done, error) {
	args = append([]string{s.config.Thalweg, "run", "--workspace", "bench", "--json"}, args...)
	if memory != "" {
		args = append(args, "--memory", memory)
	}
	s.config.Logger.InfoContext(ctx, "running", "side", sideThalweg, "case", name, "number", s.runs)
	lines := &events{}
	load := firstLine("/proc/loadavg")
	m, err := measure(ctx, command{args: args, dir: dir, stdout: lines})
	if err != nil {
		return done{}, err
	}
	if err := lines.close(m); err != nil {
		return done{}, err
	}
	// Tables and state are large, and looked into by nobody.
	if err := os.RemoveAll(filepath.Join(dir, ".thalweg")); err != nil {
		return done{}, &fault.Error{Kind: fault.Environment, Message: "removing the state of a run", Err: err}
	}
	run := newRun(sideThalweg, m, load)
	run.Result, run.StepsMS = lines.finished, lines.finished.steps()
	run.PythonCPUShare = pythonCPUShare(lines.finished, m.usage, s.machine.Cores)
	run.Outputs, err = outputs(out)
	return done{run, out}, err
}

// peer measures one run of the peer.
func (s *session) peer(ctx context.Context, in input, name string) (done, error) {
	dir, params, out, err := s.runDir(in, name+"-peer")
	if err != nil {
		return done{}, err
	}
	timings := filepath.Join(dir, "timings.json")
	args := []string{
		s.config.PeerPython, s.config.Peer, "--params", params, "--out", out,
		"--python", fmt.Sprint(s.machine.Cores), "--json", timings,
	}
	if s.config.PeerPlan != "" {
		args = append(args, "--plan", s.config.PeerPlan)
	}
	return s.runPeer(ctx, name, dir, out, timings, args)
}

// runPeer measures a peer that leaves its timings in a file.
func (s *session) runPeer(ctx context.Context, name, dir, out, timings string, args []string) (done, error) {
	s.config.Logger.InfoContext(ctx, "running", "side", sidePeer, "case", name, "number", s.runs)
	load := firstLine("/proc/loadavg")
	m, err := measure(ctx, command{args: args, dir: dir})
	if err != nil {
		return done{}, err
	}
	result, err := readPeerResult(timings)
	if err != nil {
		return done{}, err
	}
	run := newRun(sidePeer, m, load)
	run.Peer, run.StepsMS = &result, result.steps()
	run.Outputs, err = outputs(out)
	return done{run, out}, err
}

// compare holds a pair of runs against each other, and against the first pair
// of the case. Only the first comparison with the peer and the last between
// runs of Thalweg stay in the report unless something differs.
func (s *session) compare(r *Report, ours, theirs done) error {
	how, same, err := alike(ours.out, theirs.out)
	if err != nil {
		return err
	}
	first := r.Runs[0]
	if len(r.Runs) == 2 || !same {
		r.Checks = append(r.Checks, equality("results of both sides", how, same))
	}
	if len(r.Runs) > 2 {
		equal := slices.Equal(first.Outputs, ours.run.Outputs)
		note := alikeBytes
		if !equal {
			note = "the hashes of two runs differ"
		}
		r.Checks = append(r.Checks, equality(fmt.Sprintf("results of run 1 and run %d", len(r.Runs)/2), note, equal))
	}
	if err := os.RemoveAll(theirs.out); err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "removing results", Err: err}
	}
	return nil
}

func newRun(side string, m measured, load string) Run {
	return Run{
		Side: side, Command: mapped(m.command, portable), Started: m.started.UTC(),
		WallMS: ms(m.wall), CPUMS: ms(m.cpu), PeakRSS: m.usage.peakRSS, PeakPSS: m.usage.peakPSS, Procs: m.usage.processes,
		LoadAvg: load, Foreign: m.foreign, Stolen: m.stolen, Disturbed: m.foreign+m.stolen > disturbedShare,
	}
}

// portable shortens a path below or beside the working directory, so that
// reports of two checkouts can be compared.
func portable(argument string) string {
	const up = "../" // no further than the directory beside
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(argument) {
		return argument
	}
	relative, err := filepath.Rel(here, argument)
	if err != nil || strings.HasPrefix(relative, up+up) {
		return argument
	}
	return relative
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// pythonCPUShare is the share of all cores that the tree used while Python
// nodes were at work.
func pythonCPUShare(f *finished, u usage, cores int) *float64 {
	spans := f.spans(usesPython)
	total := length(spans)
	if total < minPythonMS {
		return nil
	}
	var cpu time.Duration
	for _, s := range spans {
		cpu += u.cpuAt(time.UnixMilli(s.to)) - u.cpuAt(time.UnixMilli(s.from))
	}
	share := ms(cpu) / total / float64(cores)
	return &share
}

func readJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return &fault.Error{Kind: fault.Environment, Message: "reading " + path, Err: err}
	}
	return nil
}
