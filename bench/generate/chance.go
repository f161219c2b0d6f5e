package generate

import (
	"math/rand/v2"
	"slices"
)

// chance is the one stream of randomness of a data set. Only integers come
// out of it, so that no processor's floating point can change a file.
type chance struct{ r *rand.Rand }

// streamTag keeps this data set's stream apart from other users of a seed.
const streamTag = 0x7468616c77656700

func newChance(seed uint64) chance {
	return chance{rand.New(rand.NewPCG(seed, streamTag))}
}

// between returns a number from lo to hi, both included.
func (c chance) between(lo, hi int64) int64 { return lo + c.r.Int64N(hi-lo+1) }

// percent is true in p of 100 cases.
func (c chance) percent(p int64) bool { return c.between(1, 100) <= p }

// pick returns n different elements of from, in the order of from.
func pick[T any](c chance, from []T, n int) []T {
	chosen := c.r.Perm(len(from))[:n]
	slices.Sort(chosen)
	out := make([]T, n)
	for i, k := range chosen {
		out[i] = from[k]
	}
	return out
}

// apportion splits total into one share for each weight, roughly in
// proportion, each share within [lo, hi]. The shares add up to total exactly,
// which needs lo*len ≤ total ≤ hi*len.
func apportion(total int64, weights []int64, lo, hi int64) []int64 {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	shares := make([]int64, len(weights))
	left := total
	for i, w := range weights {
		shares[i] = min(hi, max(lo, total*w/sum))
		left -= shares[i]
	}
	// What rounding and the bounds left over is dealt out one by one.
	for i := 0; left != 0; i = (i + 1) % len(shares) {
		switch {
		case left > 0 && shares[i] < hi:
			shares[i]++
			left--
		case left < 0 && shares[i] > lo:
			shares[i]--
			left++
		}
	}
	return shares
}

// skewed returns n weights of which a few are large, as holdings in a fund are.
func (c chance) skewed(n int) []int64 {
	const top = 100
	weights := make([]int64, n)
	for i := range weights {
		w := c.between(10, top)
		weights[i] = w * w
	}
	return weights
}
