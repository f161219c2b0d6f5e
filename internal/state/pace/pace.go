package pace

import (
	"math/rand/v2"
	"time"
)

// Limits.
const (
	// First is how far apart tries are at first when one was lost: about as long
	// as a try takes.
	First = 8 * time.Millisecond
	// Longest is how far apart they are at most.
	Longest = time.Second
	// yields says how fast who wins comes back: a distance as long as this is halved by
	// it, a longer one is shortened by more, a shorter one by less. So all get the same.
	yields = 50 * time.Millisecond
)

// Pace is how far apart the tries of one process at one partition are. The zero
// value is that of who competes with nobody. It is not safe for use by several
// goroutines.
type Pace struct{ apart time.Duration }

// Lost says that a try was lost to somebody else.
func (p *Pace) Lost() { p.apart = min(max(2*p.apart, First), Longest) }

// Won says that one was not.
func (p *Pace) Won() {
	if p.apart = p.apart * yields / (p.apart + yields); p.apart < First/8 {
		p.apart = 0
	}
}

// Wait is how long to wait before the next try, by chance, if the latest was so
// long ago.
func (p *Pace) Wait(ago time.Duration, r *rand.Rand) time.Duration {
	if ago >= p.apart {
		return 0
	}
	return max(0, time.Duration(r.Int64N(int64(p.apart)))-ago)
}
