package bill

import (
	"slices"
	"time"

	"thalweg/internal/run/sheet"
)

// Twice returns the time of machines that several runs pay whole, because workers of their own were on one host at
// once, and that of services, because workers of their own were there at once. It is nearly right: it sees no runs but
// these.
func Twice(runs [][]sheet.Sheet) (machines, services time.Duration) {
	anywhere, on := apart(runs)
	if !anywhere {
		return 0, 0
	}
	hosts, paid := map[string][]sheet.Sheet{}, map[string]time.Duration{}
	for _, sheets := range runs {
		services += attended(sheets)
		for i, s := range sheets {
			if on[s.Host] {
				hosts[s.Host] = append(hosts[s.Host], s)
				paid[s.Host] += scaled(s.SlotTime(), hostShare(sheets, i)/float64(max(s.Slots, 1)))
			}
		}
	}
	for host, sheets := range hosts {
		machines += max(paid[host]-sheet.Attended(sheets), 0)
	}
	return machines, max(services-sheet.Attended(slices.Concat(runs...)), 0)
}

// apart reports whether runs had different workers at once, and on which hosts.
func apart(runs [][]sheet.Sheet) (anywhere bool, on map[string]bool) {
	type of struct {
		run int
		sheet.Sheet
	}
	var all, there []of
	for i, sheets := range runs {
		for _, s := range sheets {
			all = append(all, of{i, s})
		}
	}
	slices.SortFunc(all, func(a, b of) int { return a.From.Compare(b.From) })
	on = map[string]bool{}
	for _, s := range all {
		there = slices.DeleteFunc(there, func(o of) bool { return !o.To.After(s.From) })
		for _, o := range there {
			if o.run != s.run && o.Worker != s.Worker {
				anywhere = true
				on[s.Host] = on[s.Host] || s.Host == o.Host
			}
		}
		there = append(there, s)
	}
	return anywhere, on
}
