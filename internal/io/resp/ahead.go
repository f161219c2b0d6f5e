package resp

// aheadKeys are looked ahead at once. A processor waits for about ten places in memory at a time.
const aheadKeys = 64

// lookAhead has the rows that the next commands ask for fetched from memory together: most of the time of a lookup
// in a large table is the wait for memory, twice.
type lookAhead struct {
	command request
	places  [aheadKeys]uint64
	sum     byte // keeps the compiler from leaving the reads out
}

func (a *lookAhead) held() int { return cap(a.command.args)*spanBytes + aheadKeys*8 }

// lookAhead touches the rows of the commands that in begins with, and returns where the first one is that it has
// not looked at. Every argument but the name may be a key: one that is none costs a read.
func (s *Session) lookAhead(d *Dataset, in []byte) (touched int) {
	if s.Check != nil && !s.known {
		return len(in)
	}
	if s.ahead == nil {
		s.ahead = &lookAhead{}
	}
	a, n := s.ahead, 0
	for touched < len(in) && n < aheadKeys {
		if done, err := a.command.read(in[touched:], true); err != nil || !done {
			a.command.reset()
			touched = len(in)
			break
		}
		for _, arg := range a.command.args[min(1, len(a.command.args)):] {
			if n == aheadKeys {
				break
			}
			a.places[n] = d.rows.Place(in[touched:][arg.from:arg.to])
			n++
		}
		touched += a.command.at
		a.command.reset()
	}
	a.sum += d.rows.Touch(a.places[:n])
	return touched
}
