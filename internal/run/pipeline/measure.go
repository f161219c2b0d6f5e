package pipeline

import (
	"time"

	"thalweg/internal/base/budget"
	"thalweg/internal/run/engine"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// measured holds an attempt's time outside DuckDB and Python, and its memory, over all pieces of its batch.
type measured struct {
	read   time.Duration // fetching inputs and looking at them
	write  time.Duration // making results durable, or sending them
	wait   time.Duration // for memory
	turn   time.Duration // for a free slot
	pieces int64         // that its work was cut into
	cpu    time.Duration // of this process, in the engine
	watch  *budget.Watch
}

// during adds the time until the returned function is called.
func during(d *time.Duration) (done func()) {
	began := time.Now()
	return func() { *d += time.Since(began) }
}

// tell says where the time went, once nothing more of it will.
func (m *measured) tell(s *state.Stats) {
	s.Read, s.Write, s.Wait, s.Turn = m.read, m.write, m.wait, m.turn
}

// stats returns the figures of an attempt. RowsIn and the like are set for attempts that succeeded only.
func (x *attempt) stats(res engine.Result) state.Stats {
	m := x.strain.measured
	s := state.Stats{Engine: res.Engine, Python: res.Python.Busy}
	memory, spilled := m.watch.Stop()
	s.PeakBytes = max(memory, res.Python.PeakBytes)
	alone := int64(0)
	if x.strain.alone > 0 {
		alone = 1
	}
	for name, n := range map[string]int64{plan.CounterBadRows: res.BadRows, state.CounterPieces: m.pieces,
		state.CounterAlone: alone, state.CounterSpilled: spilled,
		state.CounterEngineCPU: m.cpu.Microseconds(), state.CounterPythonCPU: res.Python.CPU.Microseconds(),
		state.CounterPythonStarved: res.Python.Starved.Microseconds()} {
		if n > 0 {
			if s.Counters == nil {
				s.Counters = map[string]int64{}
			}
			s.Counters[name] = n
		}
	}
	return s
}
