package app

import (
	"context"
	"io"

	"thalweg/internal/app/runs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/simulate"
)

// Types of simulated fleets.
type (
	SimulatedFleet = simulate.Config
	Simulated      = simulate.Result
	Costs          = simulate.Costs
	MeasuredRuns   = simulate.Measured
	HostSpeed      = simulate.Speed
)

// PortfolioCosts returns the costs that were measured with the portfolio.
func PortfolioCosts() Costs { return simulate.Portfolio() }

// ReadCosts reads measured costs; errors name the file.
func ReadCosts(name string, text []byte) (Costs, error) { return simulate.ReadCosts(name, text) }

// WithoutBroker returns the costs for fleets without a message broker.
func WithoutBroker(c Costs) Costs {
	c.Queue = simulate.Latency{}
	return c
}

// Replayed is a complete run as the simulator carries it out again.
type Replayed = runs.Replayed

// Replay returns what the simulator needs to carry a complete run out again, on scale times its files, by slots that
// are speed times as fast, for workers as this machine would have.
func (a *App) Replay(ctx context.Context, key view.RunKey, scale, speed float64) (Replayed, error) {
	b, err := runtime.ShareOf(0, 0, true)
	if err != nil {
		return Replayed{}, err
	}
	return a.Runs.Replay(ctx, key, scale, speed, b)
}

// ReadMeasured reads the measured times of real runs; errors name the file.
func ReadMeasured(name string, text []byte) (MeasuredRuns, error) {
	return simulate.ReadMeasured(name, text)
}

// ReadSpeed reads how fast the cores of a host are; errors name the file.
func ReadSpeed(name string, text []byte) (HostSpeed, error) { return simulate.ReadSpeed(name, text) }

// Compared is a complete run beside its simulation.
type Compared struct {
	Run       int64     `json:"run"`
	Workers   int       `json:"workers"`
	Slots     int       `json:"slots"` // of each
	Real      RealRun   `json:"real"`
	Simulated Simulated `json:"simulated"`
}

// RealRun is what a run took.
type RealRun struct {
	Elapsed float64            `json:"elapsed_s"`
	Shares  map[string]float64 `json:"shares"` // of the slots' time, by what it went to
}

// Compare simulates a complete run on as many workers and slots as it had, by costs for them; nil: by its own.
func (a *App) Compare(ctx context.Context, key view.RunKey, costs func(workers, slots int) Costs, seed uint64) (
	c Compared, err error) {
	own, err := a.Replay(ctx, key, 1, 1)
	if err != nil {
		return c, err
	}
	if costs == nil {
		costs = func(int, int) Costs { return own.Costs }
	}
	r := own.Record
	if r.Workers == 0 {
		return c, fault.New(fault.Script, "run %d has no time sheets to compare with: its workers were of an older program",
			key.Run)
	}
	c = Compared{Run: key.Run, Workers: r.Workers, Slots: r.Slots, Real: RealRun{r.Elapsed.Seconds(), r.Shares}}
	c.Simulated, err = Simulate(ctx, SimulatedFleet{Costs: costs(r.Workers, r.Slots), Workers: r.Workers, Slots: r.Slots,
		Seed: seed})
	return c, err
}

// Simulate says how efficient a fleet would be, in virtual time, and what limits it.
func Simulate(ctx context.Context, fleet SimulatedFleet) (Simulated, error) {
	return simulate.Alone(ctx, fleet)
}

// WriteCurve writes how efficient fleets are, as svg or csv.
func WriteCurve(w io.Writer, format string, results []Simulated) error {
	if format == "svg" {
		return simulate.WriteSVG(w, results)
	}
	return simulate.WriteCSV(w, results)
}

// PlanFor chooses machines for a complete run, or a larger one of its script.
func (a *App) PlanFor(ctx context.Context, key view.RunKey, w runs.Wanted) (runs.Planned, error) {
	b, err := runtime.ShareOf(0, 0, true)
	if err != nil {
		return runs.Planned{}, err
	}
	return a.Runs.PlanFor(ctx, key, w, b)
}
