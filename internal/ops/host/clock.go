package host

import (
	"context"
	"time"
)

// clock measures what a reading of the clock costs, and its steps.
func (m *measuring) clock(ctx context.Context) error {
	const reads = 1 << 12
	var costs []float64
	step := time.Hour
	for range m.repeats {
		begun, n := time.Now(), 0
		last := begun
		for last.Sub(begun) < m.each/2 {
			if err := ctx.Err(); err != nil {
				return err
			}
			for range reads {
				now := time.Now()
				if off := now.Sub(last); off > 0 {
					step = min(step, off)
				}
				last = now
			}
			n += reads
		}
		costs = append(costs, float64(last.Sub(begun).Nanoseconds())/float64(n))
	}
	m.add("clock_read", "ns", costs...)
	m.add("clock_step", "ns", float64(step.Nanoseconds()))
	if res := resolution(); res > 0 {
		m.add("clock_resolution", "ns", float64(res.Nanoseconds()))
	}
	return nil
}
