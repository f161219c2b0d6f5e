package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"thalweg/internal/app/registry"
	"thalweg/internal/app/runner"
	"thalweg/internal/app/view"
	"thalweg/internal/base/budget"
	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/forecast"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

// Next is a run that has not begun.
type Next struct {
	Workspace string
	Script    string           // identity
	Files     map[string]int64 // bytes of the files of nodes, as far as they are known
	Computed  map[string]bool  // its nodes, and whether they have work
	Budget    budget.Budget    // by which workers cut their batches
	Code      Code
}

// Code is what the nodes of a run do.
type Code struct {
	Nodes map[string]string // fingerprints of code and parameters
	Files []string          // digests of the script's files without its parameters, sorted
}

// CodeOf returns the code of a script.
func CodeOf(s *script.Script) Code {
	c := Code{Nodes: map[string]string{}}
	for _, n := range s.Nodes {
		c.Nodes[n.Name] = n.Fingerprint
	}
	for _, name := range s.Code() {
		text, _ := s.Text(name)
		c.Files = append(c.Files, state.NewBlob([]byte(text)).Digest)
	}
	slices.Sort(c.Files)
	return c
}

// other marks the nodes of a record that other code has computed. That is the same where its fingerprint is, and where
// only parameters differ.
func (s *Service) other(ctx context.Context, c Code, run state.Run, record *forecast.Record) error {
	pinned := false // the files are known
	var files []string
	for i, n := range record.Nodes {
		if n.Code == c.Nodes[n.Name] && n.Code != "" {
			continue
		}
		if !pinned {
			whole, err := s.Home.State.Run(ctx, run.RunKey)
			if err != nil {
				return fmt.Errorf("read what run %d was made from: %w", run.Run, err)
			}
			pinned, files = true, digests(whole.Pins)
		}
		record.Nodes[i].Other = len(files) == 0 || !slices.Equal(files, c.Files)
	}
	return nil
}

// digests returns those of a run's files that are code.
func digests(pins []state.Pin) (out []string) {
	for _, p := range pins {
		switch p.Kind {
		case state.PinScript, state.PinFormula, state.PinIncluded:
			out = append(out, p.Digest)
		}
	}
	slices.Sort(out)
	return out
}

// Forecast says what a run is expected to take, from earlier runs of its script.
func (s *Service) Forecast(ctx context.Context, n Next) (*view.Forecast, error) {
	f, fleet, why, err := s.foretell(ctx, n)
	if err != nil || why != "" {
		return &view.Forecast{Why: why}, err
	}
	return &view.Forecast{Elapsed: span(f.Elapsed), Worked: span(f.Worked), Of: f.Of, Workers: fleet.Workers,
		Slots: fleet.Workers * fleet.Slots}, nil
}

// Prospect says so for the limit of a run.
func (s *Service) Prospect(ctx context.Context, n Next) (runner.Prospect, error) {
	f, _, why, err := s.foretell(ctx, n)
	if err != nil || why != "" {
		return runner.Prospect{}, err
	}
	p := runner.Prospect{Of: f.Of, Nodes: f.Nodes, Elapsed: f.Elapsed.Middle}
	p.Low.Elapsed, p.Low.Slots = f.Elapsed.Low, f.Worked.Low
	return p, nil
}

// foretell simulates the run. why says why nothing is expected.
func (s *Service) foretell(ctx context.Context, n Next) (f forecast.Forecast, fleet forecast.Fleet, why string,
	err error) {
	earlier, err := history.Earlier(ctx, s.Home.State, n.Workspace, func(r state.Run) bool {
		return s.Home.IdentityOf(r) == n.Script
	})
	if err != nil {
		return f, fleet, "", err
	}
	if fleet, err = s.fleet(ctx, n.Budget); err != nil {
		return f, fleet, "", err
	}
	var records []forecast.Record
	for _, r := range earlier {
		record, err := forecast.Read(ctx, s.Home.State, r)
		if err != nil {
			return f, fleet, "", err
		}
		if err := s.other(ctx, n.Code, r, &record); err != nil {
			return f, fleet, "", err
		}
		if record.Has(n.Computed) {
			records = append(records, record)
		}
	}
	computed := func(node string) bool { return n.Computed[node] }
	model, err := forecast.Fit(records)
	if errors.Is(err, forecast.ErrNoRecord) {
		return f, fleet, "no earlier run of this script with these nodes is complete", nil
	}
	if err != nil {
		return f, fleet, "", err
	}
	if _, node := model.Of(computed); node != "" {
		return f, fleet, "no complete run has computed " + node + " by its present code", nil
	}
	if fleet.Workers == 0 {
		return f, fleet, "no worker is there", nil
	}
	load := s.load(n.Budget)
	load.Workers, load.Slots = fleet.Workers, fleet.Slots
	load.Files, load.Computed = n.Files, computed
	if f, err = model.Forecast(ctx, load, fleet); err != nil {
		return f, fleet, "", fmt.Errorf("simulate a run of %s: %w", n.Script, err)
	}
	return f, fleet, "", nil
}

func span(i forecast.Interval) *view.ForecastSpan {
	return &view.ForecastSpan{Low: i.Low.Milliseconds(), Middle: i.Middle.Milliseconds(), High: i.High.Milliseconds()}
}

// fleet returns the workers that there are; those of a cluster are taken to be alike.
func (s *Service) fleet(ctx context.Context, b budget.Budget) (out forecast.Fleet, err error) {
	if s.Home.Cluster() == nil {
		return forecast.Fleet{Workers: 1, Slots: b.Slots}, nil
	}
	workers, err := registry.Workers(ctx, s.Home)
	if err != nil {
		return out, fmt.Errorf("see which workers there are: %w", err)
	}
	slots := 0
	for _, w := range workers {
		if !w.Gone && !w.Draining && w.Slots > 0 {
			out.Workers, slots = out.Workers+1, slots+w.Slots
		}
	}
	out.Slots = (slots + out.Workers/2) / max(out.Workers, 1)
	return out, nil
}

// load returns what runs of this instance have in common.
func (s *Service) load(b budget.Budget) forecast.Load {
	return forecast.LoadOf(b, s.Home.Cluster() != nil)
}

// Replayed is a complete run as the simulator carries it out again.
type Replayed struct {
	Costs  forecast.Costs
	Record forecast.Record
	Rests  []string // what the costs rest on that are not of batches, a sentence each
	// For returns the costs for so many workers, with so many slots each: the more of them, the more batches are
	// planned.
	For func(workers, slots int) forecast.Costs
}

// Replay returns what the simulator needs to carry a complete run out again, on scale times its files, by slots that
// are speed times as fast. Workers of that budget cut the batches.
func (s *Service) Replay(ctx context.Context, key state.RunKey, scale, speed float64, b budget.Budget) (Replayed,
	error) {
	model, record, err := s.learnt(ctx, key)
	if err != nil {
		return Replayed{}, err
	}
	load := s.load(b)
	load.Scale, load.Speed = scale, speed
	return Replayed{Costs: model.Costs(load), Record: record, Rests: model.Rests(load),
		For: func(workers, slots int) forecast.Costs {
			of := load
			of.Workers, of.Slots = workers, slots
			return model.Costs(of)
		}}, nil
}

// learnt returns what one complete run teaches.
func (s *Service) learnt(ctx context.Context, key state.RunKey) (m forecast.Model, record forecast.Record, err error) {
	run, err := s.Numbered(ctx, key.Workspace, key.Run)
	if err != nil {
		return m, record, err
	}
	if !history.Whole(run) {
		f := fault.New(fault.Script, "run %d is not complete, or its tables may not be read any more: it cannot be "+
			"simulated", run.Run)
		f.Hint = "{{do history}} lists runs"
		return m, record, f
	}
	if record, err = forecast.Read(ctx, s.Home.State, run); err != nil {
		return m, record, err
	}
	m, err = forecast.Fit([]forecast.Record{record})
	if errors.Is(err, forecast.ErrNoRecord) || err == nil && !record.Computed() {
		err = fault.New(fault.Script, "run %d has computed nothing", run.Run)
	}
	return m, record, err
}
