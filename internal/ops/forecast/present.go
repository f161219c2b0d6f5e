package forecast

import (
	"fmt"
	"math"
	"slices"
	"time"

	"thalweg/internal/ops/simulate"
	"thalweg/internal/run/sheet"
)

// claimsLeast is how many claims there must be before their mean says how long calls of the state take.
const claimsLeast = 8

// attend takes in what the time sheets of the run say; none say nothing.
func (r *Record) attend(sheets []sheet.Sheet) {
	total := sheet.TotalOf(sheets)
	if total == nil || total.SlotTime <= 0 || total.Presence <= 0 {
		return
	}
	r.Machine, r.Memory = sheets[0].Machine, sheets[0].Memory
	r.Shares = map[string]float64{}
	for name, seconds := range total.Shares {
		r.Shares[name] = seconds / total.SlotTime
	}
	slots, cores := 0.0, 0.0 // of a worker, by presence
	claims := total.Lost
	for _, s := range sheets {
		slots += s.Presence * float64(s.Slots)
		cores += s.Presence * float64(s.Cores)
		claims += s.Batches
		r.Memory = min(r.Memory, s.Memory)
		r.Peak = max(r.Peak, s.PeakResident/int64(max(s.Slots, 1)))
		if s.Machine != r.Machine {
			r.Machine = ""
		}
	}
	nearest := func(v float64) int { return max(int(math.Round(v)), 1) }
	there, gaps := present(sheets)
	r.Elapsed = max(r.Elapsed-gaps, 0)
	r.Slots, r.Cores = nearest(slots/total.Presence), nearest(cores/total.Presence)
	r.Workers = nearest(total.Presence / max(there.Seconds(), 1e-9))
	if claims >= claimsLeast {
		r.Claim = time.Duration(total.Shares[sheet.Claims.String()] / float64(claims) * float64(time.Second))
	}
}

// present returns the time for which any worker was there, and that between workers in which none was.
func present(sheets []sheet.Sheet) (there, gaps time.Duration) {
	from, to := sheets[0].From, sheets[0].To
	for _, s := range sheets {
		if s.From.Before(from) {
			from = s.From
		}
		if s.To.After(to) {
			to = s.To
		}
	}
	there = sheet.Attended(sheets)
	return there, max(to.Sub(from)-there, 0)
}

// state returns the times of the state's calls: those that are known of its kind, so many times as long as the claims
// of the run took. Where its sheets do not tell, they are as they are known.
func (r Record) state(l Load) simulate.State {
	claim := l.State.Write.Mean()
	if l.State.Kind == simulate.Cassandra { // which is read first
		claim += l.State.Read.Mean()
	}
	if r.Claim == 0 || claim == 0 || l.moves() {
		return l.State
	}
	times := r.Claim.Seconds() * 1000 / claim
	return simulate.State{Kind: l.State.Kind, Read: l.State.Read.Times(times), Write: l.State.Write.Times(times)}
}

// Rests says what the costs of Costs rest on that are not of batches: a sentence each.
func (m Model) Rests(l Load) []string {
	last := m.records[0]
	out := []string{"Calls of the state take the built-in times of " + l.State.Kind + "."}
	if last.state(l) != l.State {
		out[0] = fmt.Sprintf("Calls of the state take times by the run's time sheets: a claim took %.2g ms.",
			last.Claim.Seconds()*1000)
	}
	parts := m.Costs(l).Parts
	switch {
	case parts.WorkerMB == 0:
		return append(out, "Parts take no time: the run moved none.")
	case l.moves():
		return append(out, fmt.Sprintf("Parts move at the built-in %.3g MB/s a worker.", parts.WorkerMB))
	case last.Slots == 0:
		return append(out, fmt.Sprintf("Parts move at %.3g MB/s a worker, as in the run if it had one slot: it has no "+
			"time sheets.", parts.WorkerMB))
	}
	return append(out, fmt.Sprintf("Parts move at %.3g MB/s a worker, as in the run.", parts.WorkerMB))
}

// Classes returns the run's time by class of node: load, join, python, write, as far as it has nodes of them. It is
// divided as the time of slots is that their batches took.
func (r Record) Classes() (out []ClassTime) {
	sum, all := map[string]float64{}, 0.0
	for _, n := range r.Nodes {
		took := (n.Worked + n.Moved).Seconds()
		sum[classOf(n.Kind)] += took
		all += took
	}
	for _, class := range classes {
		if took, ok := sum[class]; ok && all > 0 {
			out = append(out, ClassTime{class, r.Elapsed.Seconds() * took / all})
		}
	}
	return slices.Clip(out)
}
