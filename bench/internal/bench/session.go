package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// Config holds the settings of a session. Paths may be relative.
type Config struct {
	Thalweg      string // the command under test
	Root         string // the repository: examples, bench/peers, bench/steps
	Python       string // interpreter for Thalweg's formulas
	Environments string // where the packages of peers are, or are installed
	RealDataDir  string // has portfolio/ with the real data; "" where there is none
	WorkDir      string // generated inputs and the files of runs
	Scale        float64
	Size         int64 // accounts or rows instead of a case's own, 0: its own by Scale
	Runs         int   // of each side in a case, 0: as the case says
	Logger       *slog.Logger
}

// minPythonMS is the shortest time of Python nodes over which the coarse CPU
// counters tell something.
const minPythonMS = 2000

// disturbedShare of all cores used by others makes a run disturbed.
const disturbedShare = 0.05

// session holds the state that the cases of one invocation share.
type session struct {
	config   Config
	machine  Machine
	versions map[string]string
	runs     int // so far, numbers the directories
	inputs   map[string]input
	// first are the first results of Thalweg for each input: all others must be like them.
	first map[string]done
}

// done is a finished run and where its results are.
type done struct {
	run Run
	out string
}

// Measure runs the cases and hands each report to emit as soon as it is there.
func Measure(ctx context.Context, c Config, cases []Case, emit func(Report) error) (err error) {
	s, err := newSession(ctx, c)
	if err != nil {
		return err
	}
	runs := filepath.Join(s.config.WorkDir, "runs")
	defer func() { err = errors.Join(err, os.RemoveAll(runs)) }()
	for _, one := range cases {
		r, err := s.measure(ctx, one)
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
	for _, path := range []*string{&c.Thalweg, &c.Root, &c.Environments, &c.WorkDir, &c.RealDataDir} {
		if *path == "" {
			continue // Abs would make it the current folder
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, &fault.Error{Kind: fault.Environment, Message: "resolving " + *path, Err: err}
		}
		*path = absolute
	}
	if _, err := os.Stat(c.Thalweg); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "looking for what is to be measured", Err: err,
			Hint: "build the command first"}
	}
	// Leftovers of an interrupted benchmark.
	if err := os.RemoveAll(filepath.Join(c.WorkDir, "runs")); err != nil {
		return nil, &fault.Error{Kind: fault.Environment, Message: "removing old runs", Err: err}
	}
	return &session{config: c, machine: thisMachine(), versions: versions(ctx, c), inputs: map[string]input{},
		first: map[string]done{}}, nil
}

// measure runs a case's sides in turn.
func (s *session) measure(ctx context.Context, c Case) (Report, error) {
	size := c.size
	switch {
	case c.size == 0:
	case s.config.Size > 0:
		size = s.config.Size
	default:
		size = max(1, int64(math.Round(float64(c.size)*s.config.Scale)))
	}
	r := Report{Case: c.Name, What: c.What, Date: time.Now().UTC(), Machine: s.machine}
	wrong := map[string]bool{} // sides with results that they should not have
	for range cmp.Or(s.config.Runs, c.runs, bigRuns) {
		for _, sd := range c.sides {
			in, why, err := s.input(ctx, c.input, max(1, size/max(1, sd.part)))
			if err != nil {
				return r, err
			}
			if why = cmp.Or(why, lacking(sd)); why != "" {
				r.leaveOut(sd.name, why)
				continue
			}
			r.Input = in.about
			one, err := s.run(ctx, c, sd, in)
			switch {
			case err != nil && ctx.Err() != nil:
				return r, err
			case err != nil: // the other sides and cases can be measured
				s.config.Logger.ErrorContext(ctx, "a side failed", "case", c.Name, "side", sd.name,
					"error", err, "detail", fault.Of(err).Detail)
				r.Checks = append(r.Checks, Check{Name: "run of " + sd.name, Bar: "completes", Status: Miss,
					Note: err.Error()})
				wrong[sd.name] = true
				continue
			}
			r.Runs = append(r.Runs, one.run)
			same, err := s.compare(&r, c, sd, in, one)
			if err != nil {
				return r, err
			}
			wrong[sd.name] = wrong[sd.name] || !same
		}
	}
	r.Versions = maps.Clone(s.versions)
	c.judge(&r, size == c.size, wrong)
	return r, nil
}

// run measures one run of a side.
func (s *session) run(ctx context.Context, c Case, sd side, in input) (done, error) {
	p := programs[sd.program]
	s.runs++
	dir := filepath.Join(s.config.WorkDir, "runs", fmt.Sprintf("%03d-%s", s.runs,
		strings.ReplaceAll(sd.name, " ", "-")))
	out, params, timings := filepath.Join(dir, "out"), filepath.Join(dir, "params.json"),
		filepath.Join(dir, "timings.json")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return done{}, &fault.Error{Kind: fault.Environment, Message: "making the directory of a run", Err: err}
	}
	text, err := json.MarshalIndent(in.with(sd.params, out), "", "  ")
	if err != nil {
		return done{}, fmt.Errorf("encoding parameters: %w", err)
	}
	if err := os.WriteFile(params, text, 0o644); err != nil {
		return done{}, &fault.Error{Kind: fault.Environment, Message: "writing parameters", Err: err}
	}
	values := map[string]string{
		"file": filepath.Join(s.config.Root, sd.file), "params": params, "in": in.dir, "out": out, "dir": dir,
		"timings": timings, "work": s.config.WorkDir,
		"memory": sd.memory, "rows": fmt.Sprint(in.about["rows"]), "cores": fmt.Sprint(s.machine.Cores),
	}
	args, err := s.command(ctx, sd, values)
	if err != nil {
		return done{}, err
	}
	where := dir
	if p.dir != "" {
		where = filepath.Join(s.config.Root, p.dir)
	}
	s.config.Logger.InfoContext(ctx, "running", "case", c.Name, "side", sd.name, "number", s.runs)
	for _, first := range p.before {
		if first, err = s.fill(ctx, first, values); err == nil {
			_, err = output(ctx, dir, first...)
		}
		if err != nil {
			return done{}, &fault.Error{Kind: fault.Environment, Message: "preparing what is measured", Err: err}
		}
	}
	lines, load := &events{}, firstLine("/proc/loadavg")
	m, err := measure(ctx, command{args: args, dir: where, stdout: lines, asks: servicesOf(programs[sd.program])})
	if err != nil {
		return done{}, err
	}
	one := done{newRun(sd.name, m, load), out}
	one.run.Command = s.portable(m.command)
	if err := s.results(&one.run, p, m, lines, timings); err != nil {
		return done{}, err
	}
	// Tables and state are large, and looked into by nobody.
	if err := os.RemoveAll(filepath.Join(dir, ".thalweg")); err != nil {
		return done{}, &fault.Error{Kind: fault.Environment, Message: "removing the state of a run", Err: err}
	}
	if !p.silent {
		one.run.Outputs, err = outputs(out)
	}
	return one, err
}

// results adds what a program says of its run.
func (s *session) results(run *Run, p program, m measured, lines *events, timings string) error {
	if p.ours {
		if err := lines.close(m); err != nil {
			return err
		}
		run.Result, run.StepsMS = lines.finished, lines.finished.steps()
		run.PythonCPUShare = pythonCPUShare(lines.finished, m.usage, s.machine.Cores)
	}
	if !slices.ContainsFunc(p.args, func(arg string) bool { return arg == "{timings}" }) {
		return nil
	}
	run.Peer = &peerResult{}
	if err := readJSON(timings, run.Peer); err != nil {
		return err
	}
	if !p.ours {
		run.StepsMS = run.Peer.steps()
	}
	return nil
}

// compare holds a run's results against the first ones of Thalweg for the
// input, and removes them if they are not those. The first comparison of a
// side stays in the report, and each that finds a difference.
func (s *session) compare(r *Report, c Case, sd side, in input, one done) (same bool, err error) {
	p := programs[sd.program]
	if p.silent || sd.unlike {
		return true, os.RemoveAll(one.out)
	}
	key := c.Name
	if c.input == inputPortfolio {
		key = in.dir // several cases do the same work
	}
	first, ok := s.first[key]
	if !ok && p.ours {
		s.first[key] = one
		return true, nil
	}
	how := "the hashes differ"
	switch {
	case !ok:
		how = "there are no results of Thalweg"
	case p.ours:
		if same = slices.Equal(first.run.Outputs, one.run.Outputs); same {
			how = alikeBytes
		}
	case c.anyOrder:
		how, same, err = alikeLines(first.out, one.out)
	default:
		how, same, err = alike(first.out, one.out)
	}
	if err != nil {
		return false, err
	}
	name := "results of " + sd.name
	if !same || !slices.ContainsFunc(r.Checks, func(k Check) bool { return k.Name == name }) {
		r.Checks = append(r.Checks, equality(name, how, same))
	}
	if err := os.RemoveAll(one.out); err != nil {
		return same, &fault.Error{Kind: fault.Environment, Message: "removing results", Err: err}
	}
	return same, nil
}

func newRun(side string, m measured, load string) Run {
	return Run{
		Side: side, Started: m.started.UTC(),
		WallMS: ms(m.wall), CPUMS: ms(m.cpu), Services: ms(m.services), PeakRSS: m.usage.peakRSS,
		PeakPSS: m.usage.peakPSS, Procs: m.usage.processes,
		LoadAvg: load, Foreign: m.foreign, Stolen: m.stolen, Disturbed: m.foreign+m.stolen > disturbedShare,
	}
}

// portable takes the places of this machine out of a command line, so that
// reports of two of them can be compared.
func (s *session) portable(args []string) []string {
	c := s.config
	places := strings.NewReplacer(c.WorkDir, "{work}", c.Environments, "{environments}", c.Thalweg, "{thalweg}",
		c.Root, "{root}")
	return mapped(args, places.Replace)
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
