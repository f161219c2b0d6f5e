package orders

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// PlanAgainMax limits how often a node is planned again by itself between two orders that let its run go on.
// The other runs that it reads may change as often as it is read.
const PlanAgainMax = 5

// errNeedless says that there is nothing to order.
var errNeedless = errors.New("somebody was faster")

// TooOftenError is the failure of a node that was planned again PlanAgainMax times.
type TooOftenError struct{ Fault *fault.Error }

// Error implements error.
func (e *TooOftenError) Error() string { return e.Fault.Error() }

// Unwrap gives the classified failure.
func (e *TooOftenError) Unwrap() error { return e.Fault }

// PlanAgain has a node of a running run planned again, and all nodes that come
// behind it, planned or not: one of them may be about to be, and finds then that
// an order has come. seen is the node as it was when that was found necessary. In
// a run that is not running any more, or where the node has another plan by now,
// nothing is ordered.
func PlanAgain(ctx context.Context, s state.Store, seen state.Node, by state.Mark) error {
	token := state.TokenAgain + seen.Name + " " + rand.Text()
	err := state.Decide(ctx, s, seen.RunKey, token, by.Time, func(run state.Run) (state.Command, error) {
		o := state.Command{Kind: state.CommandRedo, Mark: by}
		if run.Status != state.Running {
			return o, errNeedless
		}
		nodes, err := s.Nodes(ctx, seen.RunKey)
		if err != nil {
			return o, fmt.Errorf("read the nodes of run %d: %w", seen.Run, err)
		}
		i := slices.IndexFunc(nodes, func(n state.Node) bool { return n.Name == seen.Name })
		if i < 0 || nodes[i].Generation != seen.Generation || nodes[i].PlanDigest != seen.PlanDigest {
			return o, errNeedless
		}
		times, err := plannedAgain(ctx, s, seen.NodeKey)
		if err != nil {
			return o, err
		}
		if times >= PlanAgainMax {
			return o, &TooOftenError{&fault.Error{Kind: fault.Environment,
				Message: fmt.Sprintf("node %s was planned again %d times, because what it reads of other runs did "+
					"not stay as it was: %s", seen.Name, times, by.Reason),
				Hint: fmt.Sprintf("when nothing is done to those runs any more: %s",
					seen.Do("resume"))}}
		}
		o.Nodes = behind(nodes, seen.Name)
		return o, nil
	})
	if errors.Is(err, errNeedless) || errors.Is(err, state.ErrConflict) {
		return nil
	}
	return err
}

// behind names a node and all that read it, themselves or through others, to be
// planned again.
func behind(nodes []state.Node, name string) []state.CommandNode {
	redo := []state.CommandNode{{Node: name, Replan: true}}
	in := map[string]bool{name: true}
	for changed := true; changed; {
		changed = false
		for _, n := range nodes {
			if !in[n.Name] && slices.ContainsFunc(n.Inputs, func(of string) bool { return in[of] }) {
				in[n.Name], changed = true, true
				redo = append(redo, state.CommandNode{Node: n.Name, Replan: true})
			}
		}
	}
	return redo
}

// plannedAgain counts how often that was ordered of a node since people have let
// its run go on.
func plannedAgain(ctx context.Context, s state.Store, key state.NodeKey) (times int, err error) {
	for after := int64(0); ; {
		events, err := s.Events(ctx, state.NodeKey{RunKey: key.RunKey}, after, state.PageMax)
		if err != nil {
			return 0, fmt.Errorf("read the events of run %d: %w", key.Run, err)
		}
		if len(events) == 0 {
			return times, nil
		}
		for _, e := range events {
			after = e.Seq
			if e.Kind != state.OrderBegun || e.Command == nil {
				continue
			}
			switch kind := e.Command.Kind; {
			case e.Command.OfPeople() && (kind == state.CommandReopen || kind == state.CommandRedo):
				times = 0
			case strings.HasPrefix(e.Command.Token, state.TokenAgain+key.Node+" "):
				times++
			}
		}
	}
}
