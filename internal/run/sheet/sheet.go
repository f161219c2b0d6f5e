package sheet

import (
	"math"
	"time"
)

// Sheet says what one worker did for a run. Times are seconds. JSON of it is stored, and shown.
type Sheet struct {
	Worker  string `json:"worker"` // as attempts have it
	Host    string `json:"host"`
	Machine string `json:"machine,omitempty" doc:"Type of machine; none: it is not known."`
	Cores   int    `json:"cores"`
	Slots   int    `json:"slots"`
	Memory  int64  `json:"memory_bytes" doc:"That it may use."`
	// From and To are of the clock of the state; Presence leaves out the times between them in which the worker had
	// left the run.
	From     time.Time          `json:"from"`
	To       time.Time          `json:"to"`
	Presence float64            `json:"presence_s" doc:"Time for which it was there."`
	Shares   map[string]float64 `json:"shares_s" doc:"Time of its slots by what it went to."`
	// Elsewhere is the time of its slots that went to other runs which it worked on at the same time: with the shares
	// it adds up to presence × slots.
	Elsewhere   float64 `json:"other_runs_s,omitempty" doc:"Time of its slots that went to other runs meanwhile."`
	CPU         float64 `json:"cpu_s" doc:"Processor time of the worker itself."`
	ChildrenCPU float64 `json:"children_cpu_s" doc:"Processor time of processes that it has started."`
	GC          float64 `json:"gc_cpu_s" doc:"Processor time of the worker's own garbage collector, as it estimates it."`
	ChildrenGC  float64 `json:"children_gc_cpu_s" doc:"The same of its slots that are processes, up to the latest batch of each."`
	// PeakBudget is the most of the memory budget that the worker held, PeakResident the most memory that it and its
	// children were seen to have.
	PeakBudget   int64 `json:"peak_budget_bytes" doc:"Most of the memory budget that it held."`
	PeakResident int64 `json:"peak_resident_bytes" doc:"Most memory that it and its processes were seen to have."`
	PartsRead    int64 `json:"parts_read_bytes"`
	PartsWritten int64 `json:"parts_written_bytes"`
	Calls        int64 `json:"state_calls"`
	Batches      int64 `json:"batches" doc:"That it committed."`
	Lost         int64 `json:"attempts_lost" doc:"Attempts that committed nothing."`
}

// Time returns what a share has.
func (s Sheet) Time(of Share) time.Duration { return durationOf(s.Shares[of.String()]) }

// SlotTime returns the time of slots that the run has had, whatever it went to.
func (s Sheet) SlotTime() (sum time.Duration) {
	for of := range Count {
		sum += s.Time(of)
	}
	return sum
}

// Total sums up the sheets of a run.
type Total struct {
	Workers  int                `json:"workers"`
	Presence float64            `json:"presence_s" doc:"Time for which workers were there, summed."`
	SlotTime float64            `json:"slots_s" doc:"Time of their slots that the run has had."`
	Busy     float64            `json:"busy" doc:"Part of that in which something was computed that was committed."`
	Shares   map[string]float64 `json:"shares_s" doc:"Time of slots by what it went to."`
	CPU      float64            `json:"cpu_s" doc:"Processor time of workers and of the processes that they have started."`
	GC       float64            `json:"gc_cpu_s" doc:"Part of it that garbage collectors of workers and of their slots' processes took."`
	Lost     int64              `json:"attempts_lost"`
}

// TotalOf sums sheets up; nil: there are none.
func TotalOf(sheets []Sheet) *Total {
	if len(sheets) == 0 {
		return nil
	}
	t := Total{Workers: len(sheets), Shares: map[string]float64{}}
	for _, s := range sheets {
		t.Presence += s.Presence
		t.SlotTime += s.SlotTime().Seconds()
		t.CPU += s.CPU + s.ChildrenCPU
		t.GC += s.GC + s.ChildrenGC
		t.Lost += s.Lost
		for of := range Count {
			t.Shares[of.String()] += s.Shares[of.String()]
		}
	}
	if t.SlotTime > 0 {
		t.Busy = round(t.Shares[Work.String()] / t.SlotTime)
	}
	for name, seconds := range t.Shares {
		t.Shares[name] = round(seconds)
	}
	t.Presence, t.SlotTime, t.CPU, t.GC = round(t.Presence), round(t.SlotTime), round(t.CPU), round(t.GC)
	return &t
}

// plus adds what an earlier sheet of the same worker and run has.
func (s Sheet) plus(before Sheet) Sheet {
	s.From = before.From
	s.Presence = round(s.Presence + before.Presence)
	shares := make(map[string]float64, Count)
	for of := range Count {
		shares[of.String()] = round(s.Shares[of.String()] + before.Shares[of.String()])
	}
	s.Shares = shares
	s.Elsewhere = round(s.Elsewhere + before.Elsewhere)
	s.CPU, s.ChildrenCPU = round(s.CPU+before.CPU), round(s.ChildrenCPU+before.ChildrenCPU)
	s.GC, s.ChildrenGC = round(s.GC+before.GC), round(s.ChildrenGC+before.ChildrenGC)
	s.PeakBudget = max(s.PeakBudget, before.PeakBudget)
	s.PeakResident = max(s.PeakResident, before.PeakResident)
	s.PartsRead += before.PartsRead
	s.PartsWritten += before.PartsWritten
	s.Calls += before.Calls
	s.Batches += before.Batches
	s.Lost += before.Lost
	return s.ordered()
}

// ordered has the sheet end no earlier than its presence allows: the clock of the state may have been set back.
func (s Sheet) ordered() Sheet {
	if least := s.From.Add(durationOf(s.Presence)); s.To.Before(least) {
		s.To = least
	}
	return s
}

// round keeps microseconds of seconds.
func round(seconds float64) float64 { return math.Round(seconds*1e6) / 1e6 }

func durationOf(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }
