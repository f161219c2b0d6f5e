// Package stats holds the figures of statistics that several packages judge errors by. Nothing in it fails.
package stats

// Student90 is where nine tenths of Student's distribution lie below, for so many degrees of freedom, at least 1:
// between it and its negative lie 80 %.
func Student90(free int) float64 {
	few := []float64{3.0777, 1.8856, 1.6377, 1.5332, 1.4759, 1.4398, 1.4149, 1.3968, 1.3830, 1.3722} // 1 to 10
	if free <= len(few) {
		return few[max(free, 1)-1]
	}
	const z = 1.2816 // of the normal distribution; Fisher's expansion
	v := float64(free)
	return z + (z*z*z+z)/(4*v) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*v*v)
}
