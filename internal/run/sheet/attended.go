package sheet

import (
	"math"
	"slices"
	"time"
)

// Attended returns how long any worker was there. A worker that has left the run between From and To counts as evenly
// spread over that time.
func Attended(sheets []Sheet) time.Duration {
	var times []time.Time
	for _, s := range sheets {
		times = append(times, s.From, s.To)
	}
	there := 0.0
	Spans(times, func(from, to time.Time) {
		most := 0.0
		for _, s := range sheets {
			if !s.From.After(from) && !s.To.Before(to) {
				most = max(most, min(s.Presence/s.To.Sub(s.From).Seconds(), 1))
			}
		}
		there += most * to.Sub(from).Seconds()
	})
	return time.Duration(math.Round(there * 1e9))
}

// Spans calls do for each span between two of the times that follow each other.
func Spans(times []time.Time, do func(from, to time.Time)) {
	slices.SortFunc(times, time.Time.Compare)
	for i := 1; i < len(times); i++ {
		if times[i].After(times[i-1]) {
			do(times[i-1], times[i])
		}
	}
}
