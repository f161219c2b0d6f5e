package load

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// sequence counts the operations of a sequential load, for all of its clients.
type sequence struct{ next atomic.Uint64 }

// take takes n operations, and returns the number of the first.
func (s *sequence) take(n int) uint64 { return s.next.Add(uint64(n)) - uint64(n) }

// zipfExponent is that of YCSB.
const zipfExponent = 0.99

// zipf draws ranks from 1 to n, rank r as often as r to the power of -zipfExponent, by rejection-inversion
// (W. Hörmann, G. Derflinger: Rejection-inversion to generate variates from monotone discrete distributions,
// ACM TOMACS 6.3, 1996), which needs no sum over all keys. The algorithm's h is the power, H its integral.
type zipf struct {
	n         float64
	low, high float64 // H at 3/2, less h(1), and at n + 1/2
	near      float64 // closer to a rank it is accepted without a look at h
}

func newZipf(n uint64) zipf {
	z := zipf{n: float64(n)}
	z.low, z.high = integral(1.5)-1, integral(z.n+0.5)
	z.near = 2 - inverse(integral(2.5)-power(2))
	return z
}

func power(x float64) float64 { return math.Exp(-zipfExponent * math.Log(x)) }

func integral(x float64) float64 {
	return math.Expm1((1-zipfExponent)*math.Log(x)) / (1 - zipfExponent)
}

func inverse(y float64) float64 {
	return math.Exp(math.Log1p(max(y*(1-zipfExponent), -1)) / (1 - zipfExponent))
}

func (z zipf) rank(r *rand.Rand) uint64 {
	for {
		u := z.high + r.Float64()*(z.low-z.high)
		x := inverse(u)
		k := min(max(math.Round(x), 1), z.n)
		if k-x <= z.near || u >= integral(k+0.5)-power(k) {
			return uint64(k)
		}
	}
}

// scramble spreads the numbers below n over themselves, each to another one: popular keys must not lie together. It
// permutes the numbers of as many bits as n-1 has, and goes on from what is not below n.
type scramble struct {
	n     uint64
	mask  uint64
	shift int
}

func newScramble(n uint64) scramble {
	width := max(bits.Len64(n-1), 1)
	return scramble{n: n, mask: math.MaxUint64 >> (64 - width), shift: width/2 + 1}
}

func (s scramble) of(k uint64) uint64 {
	for {
		for range 2 {
			k = k * 0x9e3779b97f4a7c15 & s.mask // odd, so it has an inverse
			k ^= k >> s.shift
		}
		k = (k + 0x632be59bd9b4e019) & s.mask
		if k < s.n {
			return k
		}
	}
}

// keyMaker makes the operations of one client.
type keyMaker struct {
	plan Plan
	rand *rand.Rand
	zipf zipf
	mix  scramble
	seq  *sequence
}

func newKeyMaker(plan Plan, client int, seq *sequence) *keyMaker {
	m := &keyMaker{plan: plan, rand: rand.New(rand.NewPCG(plan.Seed, uint64(client))), seq: seq}
	if plan.Of == Zipf {
		m.zipf, m.mix = newZipf(plan.Keys), newScramble(plan.Keys)
	}
	return m
}

// fill makes operations.
func (m *keyMaker) fill(ops []Op) {
	var from uint64
	if m.plan.Of == Sequential {
		from = m.seq.take(len(ops))
	}
	for i := range ops {
		op := &ops[i]
		switch m.plan.Of {
		case Sequential:
			op.Key = (from + uint64(i)) % m.plan.Keys
		case Zipf:
			op.Key = m.mix.of(m.zipf.rank(m.rand) - 1)
		default:
			op.Key = m.rand.Uint64N(m.plan.Keys)
		}
		op.Kind = Write
		if m.plan.Reads == 1 || m.plan.Reads > 0 && m.rand.Float64() < m.plan.Reads {
			op.Kind = Read
		}
	}
}
