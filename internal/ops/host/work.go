package host

import (
	"slices"
	"strconv"
)

// Calculation names the fixed calculation: rates of another one say nothing of these. It changes whenever what is
// calculated does.
const Calculation = 1

// Sizes of the fixed calculation.
const (
	workNumbers = 4096
	workTexts   = 512
	workSlots   = 4096 // of its hash table, a power of two
)

// work is a fixed calculation, as runs do: it sorts, looks up by hash, writes and reads numbers as text, and adds
// floats. What it touches fits in a core's own caches, and it asks for no memory.
type work struct {
	numbers [workNumbers]uint64
	slots   [workSlots]uint64
	text    []byte
}

// workResult is what a round always has.
const workResult = 404861339714366963

// Parameters of well-known generators and hashes.
const (
	fnvOffset  = 14695981039346656037
	fnvPrime   = 1099511628211
	golden     = 0x9e3779b97f4a7c15
	workBegins = 88172645463325252
)

// round does the calculation once, and returns its result, which is always the same.
func (w *work) round() uint64 {
	x := uint64(workBegins)
	for i := range w.numbers {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		w.numbers[i] = x
	}
	slices.Sort(w.numbers[:])
	clear(w.slots[:])
	found := uint64(0)
	for _, n := range w.numbers[:workSlots/2] {
		at := n * golden >> 52
		for w.slots[at] != 0 && w.slots[at] != n {
			at = (at + 1) % workSlots
			found++
		}
		w.slots[at] = n
	}
	sum, hash := 0.0, uint64(fnvOffset)
	for _, n := range w.numbers[:workTexts] {
		w.text = strconv.AppendFloat(w.text[:0], float64(n>>12)/workTexts, 'f', 3, 64)
		for _, b := range w.text {
			hash = (hash ^ uint64(b)) * fnvPrime
		}
		whole, _ := strconv.ParseFloat(string(w.text), 64) // it was written so
		sum += whole
	}
	return hash ^ uint64(sum) ^ found<<48
}
