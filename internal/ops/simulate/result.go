package simulate

import (
	"fmt"
	"time"

	"thalweg/internal/run/sheet"
)

// Result sums up a simulated run.
type Result struct {
	Workers int     `json:"workers"`
	Slots   int     `json:"slots"` // of all workers
	Batches int     `json:"batches"`
	Elapsed float64 `json:"elapsed_s"`
	// share of the slots' time in which something was computed that counts
	Efficiency float64            `json:"efficiency"`
	Shares     map[string]float64 `json:"shares"` // all of it, by what it went to
	Limit      string             `json:"limit"`  // what takes most of the rest
	Reads      int                `json:"state_reads"`
	Writes     int                `json:"state_writes"` // conditional ones
	Lost       int                `json:"writes_lost"`  // of them: another one came first, and they were repeated
	Refused    int                `json:"claims_refused"`
	Deaths     int                `json:"deaths"`
}

// limits explains the shares to people.
var limits = [sheet.Count]string{
	sheet.Parts: "parts: the bandwidth of the store or of workers", sheet.Claims: "state: conditional writes of claims",
	sheet.Refused:   "claims lost: workers bid for the same batches",
	sheet.Commits:   "state: conditional writes of commits",
	sheet.Unoffered: "offers: batches could be taken, and workers had not heard",
	sheet.Nothing:   "skew: a node's last batches",
	sheet.Handover:  "handover from node to node", sheet.Other: "attempts lost with their workers",
}

func (f *fleet) result() Result {
	rest := f.capacity
	for _, d := range f.spent[:sheet.Other] {
		rest -= d
	}
	f.spent[sheet.Other] = max(rest, 0)
	r := Result{
		Workers: f.Workers, Slots: f.Workers * f.Slots, Batches: f.batches, Elapsed: f.world.now.Seconds(),
		Shares: map[string]float64{},
		Reads:  f.reads, Writes: f.writes, Lost: f.lost, Refused: f.refused, Deaths: f.deaths,
	}
	worst := sheet.Parts
	for s := range sheet.Count {
		r.Shares[s.String()] = float64(f.spent[s]) / float64(max(f.capacity, time.Nanosecond))
		if s != sheet.Work && f.spent[s] > f.spent[worst] {
			worst = s
		}
	}
	r.Efficiency = r.Shares[sheet.Work.String()]
	r.Limit = fmt.Sprintf("%s (%.1f %%)", limits[worst], 100*float64(f.spent[worst])/float64(f.capacity))
	return r
}
