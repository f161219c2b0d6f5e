package agents

import (
	"thalweg/internal/base/fault"
	"thalweg/internal/ops/load"
)

// share is an agent's part of a load.
type share struct {
	Plan        load.Plan `json:"plan"`
	FirstKey    uint64    `json:"first_key"`    // is added to each key
	FirstClient int       `json:"first_client"` // is added to each client's number
}

// seedStep is odd: multiples of it differ, and lie far apart. It is 2^64 divided by the golden ratio.
const seedStep = 0x9E3779B97F4A7C15

// divide gives each of n agents its part, by clients: what a client does is what it would do if one machine had all.
func divide(p load.Plan, n int) ([]share, error) {
	if p.Clients < n {
		return nil, fault.New(fault.Script, "%d clients are too few for %d agents: each needs one", p.Clients, n)
	}
	whole := uint64(p.Clients)
	if p.Ops > 0 && uint64(p.Ops) < whole || p.Of == load.Sequential && p.Keys < whole {
		return nil, fault.New(fault.Script, "%d operations on %d keys are too few for %d clients of several agents",
			p.Ops, p.Keys, p.Clients)
	}
	out := make([]share, n)
	var before uint64 // clients of the agents before
	for i := range out {
		mine := whole / uint64(n)
		if uint64(i) < whole%uint64(n) {
			mine++
		}
		s := share{Plan: p, FirstClient: int(before)}
		s.Plan.Clients = int(mine)
		s.Plan.Rate = p.Rate * float64(mine) / float64(whole)
		s.Plan.Ops = int64(upTo(uint64(p.Ops), before+mine, whole) - upTo(uint64(p.Ops), before, whole))
		s.Plan.Seed = p.Seed + uint64(i)*seedStep
		if p.Of == load.Sequential { // each key once: everybody has keys of its own
			s.FirstKey = upTo(p.Keys, before, whole)
			s.Plan.Keys = upTo(p.Keys, before+mine, whole) - s.FirstKey
		}
		out[i], before = s, before+mine
	}
	return out, nil
}

// upTo is the part of a total that belongs to the first so many of the whole.
func upTo(total, first, whole uint64) uint64 { return total/whole*first + total%whole*first/whole }
