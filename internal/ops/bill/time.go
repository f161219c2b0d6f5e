package bill

import (
	"math"
	"time"

	"thalweg/internal/ops/price"
	"thalweg/internal/run/sheet"
)

// lostShare returns which part of sheet.Other is of attempts that were lost: the rest of it was waited. The time of an
// attempt whose worker has died runs until its lease ended; of that, only what a sheet has was paid.
func lostShare(sheets []sheet.Sheet, nodes []Node) float64 {
	var other, lost time.Duration
	for _, s := range sheets {
		other += s.Time(sheet.Other)
	}
	for _, n := range nodes {
		lost += n.Spent.Lost
	}
	if other <= 0 {
		return 0
	}
	return min(float64(lost)/float64(other), 1)
}

// hostShare returns which part of its host's price a worker pays, by the cores of the workers that were there at the
// same time.
func hostShare(sheets []sheet.Sheet, i int) float64 {
	own := sheets[i]
	times := []time.Time{own.From, own.To}
	var others []sheet.Sheet
	for at, s := range sheets {
		if at != i && s.Host == own.Host && s.From.Before(own.To) && own.From.Before(s.To) {
			others = append(others, s)
			times = append(times, s.From, s.To)
		}
	}
	if len(others) == 0 || !own.To.After(own.From) {
		return 1
	}
	share := 0.0
	sheet.Spans(times, func(from, to time.Time) {
		if from.Before(own.From) || to.After(own.To) {
			return
		}
		cores := max(own.Cores, 1)
		for _, s := range others {
			if !s.From.After(from) && !s.To.Before(to) {
				cores += max(s.Cores, 1)
			}
		}
		share += to.Sub(from).Seconds() * float64(max(own.Cores, 1)) / float64(cores)
	})
	return share / own.To.Sub(own.From).Seconds()
}

// attended returns how long workers were there for a run, less what they did for other runs meanwhile.
func attended(sheets []sheet.Sheet) time.Duration {
	var own, others float64
	for _, s := range sheets {
		own, others = own+s.SlotTime().Seconds(), others+max(s.Elsewhere, 0)
	}
	there := sheet.Attended(sheets)
	if others > 0 {
		there = scaled(there, own/(own+others))
	}
	return there
}

func scaled(d time.Duration, by float64) time.Duration {
	return time.Duration(math.Round(float64(d) * by))
}

// seconds returns a time in seconds, of which it keeps microseconds.
func seconds(d time.Duration) float64 { return round(d.Seconds()) }

func round(seconds float64) float64 { return math.Round(seconds*1e6) / 1e6 }

func valueOf(m *price.Money) price.Money {
	if m == nil {
		return 0
	}
	return *m
}
