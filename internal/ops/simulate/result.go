package simulate

import (
	"fmt"
	"time"
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

// shareNames are texts of JSON output: they do not change.
var shareNames = [shares]string{"work", "parts", "claims", "claims_refused", "commits", "not_offered",
	"nothing_to_take", "handover", "other"}

// limits explains the shares to people.
var limits = [shares]string{
	Transfers: "parts: the bandwidth of the store or of workers", Claims: "state: conditional writes of claims",
	Refused:   "claims lost: workers bid for the same batches",
	Commits:   "state: conditional writes of commits",
	Unoffered: "offers: batches could be taken, and workers had not heard", Nothing: "skew: a node's last batches",
	Handover: "handover from node to node", Other: "attempts lost with their workers",
}

func (f *fleet) result() Result {
	rest := f.capacity
	for _, d := range f.spent[:Other] {
		rest -= d
	}
	f.spent[Other] = max(rest, 0)
	r := Result{
		Workers: f.Workers, Slots: f.Workers * f.Slots, Batches: f.batches, Elapsed: f.world.now.Seconds(),
		Shares: map[string]float64{},
		Reads:  f.reads, Writes: f.writes, Lost: f.lost, Refused: f.refused, Deaths: f.deaths,
	}
	worst := Transfers
	for s := range shares {
		r.Shares[shareNames[s]] = float64(f.spent[s]) / float64(max(f.capacity, time.Nanosecond))
		if s != Work && f.spent[s] > f.spent[worst] {
			worst = s
		}
	}
	r.Efficiency = r.Shares[shareNames[Work]]
	r.Limit = fmt.Sprintf("%s (%.1f %%)", limits[worst], 100*float64(f.spent[worst])/float64(f.capacity))
	return r
}
