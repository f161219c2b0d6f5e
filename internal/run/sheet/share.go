package sheet

import (
	"slices"
	"time"
)

// Share names a use of the slots' time, of real and of simulated runs.
type Share int

// The shares.
const (
	Work      Share = iota // computing what is committed
	Parts                  // transfers of parts, beside which nothing was computed
	Claims                 // calls that claimed a batch
	Refused                // calls that claimed none: another was first
	Commits                // calls that committed
	Unoffered              // batches could be taken, and nobody had told this worker
	Nothing                // others were at work on all batches that could be taken
	Handover               // nobody was at work: between nodes, before the first and after the last
	Other                  // attempts that were lost, and what is left
	// Count is the number of shares.
	Count
)

// names are texts of JSON output and of notes: they do not change.
var names = [Count]string{"work", "parts", "claims", "claims_refused", "commits", "not_offered", "nothing_to_take",
	"handover", "other"}

// String is the share's name in JSON.
func (s Share) String() string { return names[s] }

// Names lists the shares' names, in their order.
func Names() []string { return slices.Clone(names[:]) }

// Times is the time of slots by what it went to.
type Times [Count]time.Duration

// Sum is the time of all shares.
func (t Times) Sum() (sum time.Duration) {
	for _, d := range t {
		sum += d
	}
	return sum
}
