package explore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/store/state"
	"thalweg/internal/test/statetest/hostile"
)

// Result sums up an exploration.
type Result struct {
	States int
	Steps  int  // from one state to another, or the same
	Depth  int  // of the state that takes most steps to come to
	All    bool // nothing was left out but what the bounds say
}

// String says it for people.
func (r Result) String() string {
	all := "all of them"
	if !r.All {
		all = "not all of them"
	}
	return fmt.Sprintf("%d states, %s, %d transitions, at most %d in a row", r.States, all, r.Steps, r.Depth)
}

// digest stands for what was digested: that two of a hundred million share one
// has a likelihood of less than 10⁻²².
type digest [16]byte

func digestOf(b []byte) digest {
	sum := sha256.Sum256(b)
	return digest(sum[:16])
}

// visited is a state that has been come to: by which step, from which one.
type visited struct {
	from int32
	step uint8
	kind uint8 // see ended
}

// What a state is for the promise that a run comes to its end.
const (
	goesOn   uint8 = iota // anything may come of it
	ended                 // nothing has to be done any more
	complete              // likewise, and all is done
	well                  // nothing has failed, and nobody has ended it: it may still become complete
)

// explorer visits every state, breadth first. What it keeps of each is small:
// the way to one is walked again where it is asked for.
type explorer struct {
	bounds Bounds
	places map[digest]int32 // of states
	states []visited
	next   []int32 // states that can be come to by one step, those of the first state first
	nexts  []int   // where those of a state end in next
	buffer []byte
	result Result
}

// Explore visits every state that can be reached within the bounds. A promise
// that is broken is an error that tells the shortest way to where it is.
func Explore(b Bounds) (Result, error) {
	begin, err := newWorld(b, hostile.New(), "w")
	if err != nil {
		return Result{}, err
	}
	e := &explorer{bounds: b, places: map[digest]int32{}, result: Result{All: true}}
	e.enter(begin, -1, 0)
	for level := []*world{begin}; len(level) > 0 && err == nil; {
		place := len(e.states) - len(level)
		var following []*world
		for i, w := range level {
			level[i] = nil // it takes more room than all that is kept of it
			if following, err = e.leave(w, place+i, following); err != nil {
				break
			}
		}
		level = following
		e.result.Depth++
	}
	e.result.States = len(e.states)
	if err != nil || !e.result.All {
		return e.result, err
	}
	return e.result, e.stuck()
}

// enter notes a state; false if it has been come to before.
func (e *explorer) enter(w *world, from int32, step int) (place int32, isNew bool) {
	e.buffer = w.key(e.buffer[:0])
	digest := digestOf(e.buffer)
	if place, known := e.places[digest]; known {
		return place, false
	}
	place = int32(len(e.states)) //nolint:gosec // bounded by memory
	e.places[digest] = place
	e.states = append(e.states, visited{from, uint8(step), w.kind()}) //nolint:gosec // a few dozen
	return place, true
}

// kind says what the state is.
func (w *world) kind() uint8 {
	ending := w.ran.Command.Pending() && w.ran.Command.Kind != state.CommandPause
	failed := slices.ContainsFunc(w.at[:], func(n *nodePicture) bool {
		return n.Status == state.Failed ||
			n.BatchesFailed > 0
	})
	switch {
	case w.ran.over() && w.ran.Status == state.Complete:
		return complete
	case w.ran.over():
		return ended
	case !ending && !failed && !w.ran.Status.Terminal():
		return well
	}
	return goesOn
}

// leave takes every step from a state.
func (e *explorer) leave(w *world, place int, following []*world) ([]*world, error) {
	for i, s := range w.steps() {
		e.result.Steps++
		after := w.clone()
		if err := s.do(after); err != nil {
			return nil, fmt.Errorf("%w, after\n%s", err, e.way(int32(place), s.name)) //nolint:gosec // as enter
		}
		if e.bounds.States > 0 && len(e.states) >= e.bounds.States {
			e.result.All = false
			return following, nil
		}
		to, isNew := e.enter(after, int32(place), i) //nolint:gosec // as enter
		e.next = append(e.next, to)
		if isNew {
			following = append(following, after)
		}
	}
	e.nexts = append(e.nexts, len(e.next))
	return following, nil
}

// way returns the steps that lead to a state, and a step from it.
func (e *explorer) way(place int32, last string) string {
	var steps []int
	for ; place > 0; place = e.states[place].from {
		steps = append(steps, int(e.states[place].step))
	}
	w, err := newWorld(e.bounds, hostile.New(), "w")
	if err != nil {
		return err.Error()
	}
	var names []string
	for _, i := range slices.Backward(steps) {
		s := w.steps()[i]
		names = append(names, s.name)
		if err := s.do(w); err != nil { // it was not one when it was first taken
			return err.Error()
		}
	}
	return strings.Join(append(names, last), "\n")
}

// stuck looks for a state from which the run cannot come to an end, or to be
// complete although nothing is in the way: somebody would wait without end there.
func (e *explorer) stuck() error {
	for _, look := range []struct {
		what     string
		from, to func(kind uint8) bool
	}{
		{"the run comes to no end", func(uint8) bool { return true }, func(kind uint8) bool {
			return kind == ended ||
				kind == complete
		}},
		{"the run does not become complete", func(kind uint8) bool { return kind == well },
			func(kind uint8) bool { return kind == complete }},
	} {
		reaches := e.reach(look.to)
		for place, s := range e.states {
			if look.from(s.kind) && !reaches[place] {
				return fmt.Errorf("%s, whatever is done, after\n%s", look.what, e.way(int32(place), "(that is all)")) //nolint:gosec // as enter
			}
		}
	}
	return nil
}

// reach finds the states from which one of some kind can be come to: it asks each
// for that until nothing changes, last ones first, as they mostly are nearer.
func (e *explorer) reach(kind func(uint8) bool) []bool {
	reaches := make([]bool, len(e.states))
	for i, s := range e.states {
		reaches[i] = kind(s.kind)
	}
	for changed := true; changed; {
		changed = false
		for place := len(e.states) - 1; place >= 0; place-- {
			if reaches[place] {
				continue
			}
			from := 0
			if place > 0 {
				from = e.nexts[place-1]
			}
			if slices.ContainsFunc(e.next[from:e.nexts[place]], func(to int32) bool { return reaches[to] }) {
				reaches[place], changed = true, true
			}
		}
	}
	return reaches
}
