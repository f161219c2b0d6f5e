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
	coming := slices.SortedFunc(slices.Values(sheets), func(a, b Sheet) int { return a.From.Compare(b.From) })
	var present []Sheet
	there := 0.0
	Spans(times, func(from, to time.Time) {
		for ; len(coming) > 0 && !coming[0].From.After(from); coming = coming[1:] {
			present = append(present, coming[0])
		}
		present = slices.DeleteFunc(present, func(s Sheet) bool { return s.To.Before(to) })
		most := 0.0
		for _, s := range present {
			most = max(most, min(s.Presence/s.To.Sub(s.From).Seconds(), 1))
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
