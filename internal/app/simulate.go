package app

import (
	"context"
	"io"

	"thalweg/internal/app/runs"
	"thalweg/internal/app/runtime"
	"thalweg/internal/app/view"
	"thalweg/internal/ops/simulate"
)

// Types of simulated fleets.
type (
	SimulatedFleet = simulate.Config
	Simulated      = simulate.Result
	Costs          = simulate.Costs
	MeasuredRuns   = simulate.Measured
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
