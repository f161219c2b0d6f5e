package backoff

import (
	"math/rand/v2"
	"time"
)

// Limits.
const (
	// First is the longest wait behind the first try that was lost: about as long as
	// a try takes. Each wait may be twice as long as the one before.
	First = 4 * time.Millisecond
	// Longest is the longest of all. More room for others was measured to be worse:
	// those who win do not wait, and so have the partition for themselves.
	Longest = 32 * time.Millisecond
)

// Tries says how long one process waits between its tries at one partition. The zero
// value is that of who has lost nothing.
type Tries struct{ most time.Duration }

// Lost says that a try was lost to somebody else.
func (t *Tries) Lost() { t.most = min(max(2*t.most, First), Longest) }

// Won says that one was not.
func (t *Tries) Won() { t.most = 0 }

// Wait returns the random time to wait before the next try.
func (t *Tries) Wait(r *rand.Rand) time.Duration {
	if t.most == 0 {
		return 0
	}
	return time.Duration(r.Int64N(int64(t.most)))
}
