package history

import (
	"time"

	"thalweg/internal/store/state"
)

// Stages divides the time of batches. Times are in milliseconds, summed over all batches:
//
//   - Read: fetching inputs and looking at them before DuckDB does.
//   - Compute: all inside DuckDB, also where a statement reads files or writes a part.
//   - Python: inside interpreters; several may work for one batch at once.
//   - Write: making results durable, or sending them.
//   - Commit: showing files under their names.
//   - Wait: waiting for memory.
//   - Slot: waiting for a free slot of a worker that has more batches in flight than it computes at once.
//   - Other: the rest of Total.
type Stages struct {
	Read    int64 `json:"read_ms"`
	Compute int64 `json:"compute_ms"`
	Python  int64 `json:"python_ms"`
	Write   int64 `json:"write_ms"`
	Commit  int64 `json:"commit_ms"`
	Wait    int64 `json:"wait_ms"`
	Slot    int64 `json:"slot_ms"`
	Other   int64 `json:"other_ms"`
	Total   int64 `json:"total_ms"` // of all batches, one after the other
}

// Stage is one of the Stages, with its name.
type Stage struct {
	Name   string
	Letter rune
	MS     int64
}

// StagesOf divides the measured time of batches into stages.
func StagesOf(s state.Stats) Stages {
	known := s.Turn + s.Wait + s.Read + s.Engine + s.Python + s.Write + s.Commit
	total := max(s.Elapsed, known)
	return Stages{Slot: s.Turn.Milliseconds(), Wait: s.Wait.Milliseconds(), Read: s.Read.Milliseconds(),
		Compute: s.Engine.Milliseconds(), Python: s.Python.Milliseconds(),
		Write: s.Write.Milliseconds(), Commit: s.Commit.Milliseconds(), Other: (total - known).Milliseconds(),
		Total: total.Milliseconds()}
}

// List lists the stages in the order in which a batch passes them.
func (s Stages) List() []Stage {
	return []Stage{{"slot", ':', s.Slot}, {"wait", '.', s.Wait}, {"read", 'r', s.Read}, {"compute", 'c', s.Compute},
		{"python", 'p', s.Python},
		{"write", 'w', s.Write}, {"commit", 'k', s.Commit}, {"other", '-', s.Other}}
}

// work returns the total without Slot: while a batch waits for a slot, that time counts for the batch in the slot.
func (s Stages) work() int64 { return s.Total - s.Slot }

// share returns a stage's part of the work, from 0 to 1.
func (s Stages) share(ms int64) float64 {
	if s.work() <= 0 {
		return 0
	}
	return float64(ms) / float64(s.work())
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
