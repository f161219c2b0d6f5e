package history

import (
	"context"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/store/state"
)

// FollowOptions sets the interval and the end of following a run.
type FollowOptions struct {
	Every time.Duration // interval between looks for new events; 0: a default
	Stay  bool          // Follow goes on while the run waits for people, is paused, or nobody works on it
	// Abandoned reports whether nobody works on a run that is running; nil: not known.
	Abandoned func(state.Run) bool
}

// followEvery is the default interval between looks for new events of a run.
const followEvery = 250 * time.Millisecond

// abandonedFor is the number of looks in a row that must find nobody at work on a run before Follow ends. One
// process may just be taking the run over from another.
const abandonedFor = 8

// aboutToGoOn is the longest wait for a stopped run to go on: see state.Run.AboutToGoOn.
const aboutToGoOn = 10 * time.Second

// linesMax limits the lines that are told at once.
const linesMax = state.PageMax

// Looks become rarer while nothing happens in a run, and the longer it is followed. The
// pause is the time since the last event divided by quietShare, or the time of following
// divided by longShare if that is more. It is followSlowest at most.
const (
	quietShare    = 8
	longShare     = 16
	followSlowest = time.Second
)

// Follow calls tell with all events of a run, until it is over. Without Stay it also
// ends when the run waits for people, is paused, or nobody works on it.
func Follow(ctx context.Context, s *Stream, o FollowOptions, tell func([]Line) error) error {
	if o.Every == 0 {
		o.Every = followEvery
	}
	abandoned := 0
	var before, now string // texts of asIs: when events were last told, and at the latest look
	began := time.Now()
	moved := began
	for first, over := true, false; ; first = false {
		told := false
		if first || over || now != before {
			var err error
			before, moved = now, time.Now()
			if told, err = Tell(ctx, s, tell); err != nil {
				return err
			}
		}
		if over && !told { // nothing had happened between the look and the end
			return nil
		}
		var alone bool
		var err error
		if now, over, alone, err = s.ends(ctx, o); err != nil {
			return err
		}
		if abandoned++; !alone {
			abandoned = 0
		}
		if over = over || abandoned >= abandonedFor; over {
			continue
		}
		pause := time.NewTimer(min(max(o.Every, time.Since(moved)/quietShare, time.Since(began)/longShare),
			max(o.Every, followSlowest)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
}

// Tell calls tell with all new lines of a stream, and reports whether there were
// any.
func Tell(ctx context.Context, s *Stream, tell func([]Line) error) (told bool, err error) {
	for {
		lines, err := s.Next(ctx, linesMax)
		if err != nil || len(lines) == 0 {
			return told, err
		}
		told = true
		if err := tell(lines); err != nil || len(lines) < linesMax {
			return told, err
		}
	}
}

// ends looks at the run. It returns the run's text of asIs, whether Follow is to end, and
// whether nobody works on the run.
func (s *Stream) ends(ctx context.Context, o FollowOptions) (as string, over, abandoned bool, err error) {
	run, nodes, err := read(ctx, s.store, s.key)
	if err != nil {
		return "", false, false, err
	}
	as = asIs(run, nodes)
	switch {
	case run.Command.Pending():
	case run.AboutToGoOn():
		if s.stopped.IsZero() {
			s.stopped = time.Now()
		}
		return as, time.Since(s.stopped) > aboutToGoOn, false, nil
	case run.Status.Terminal():
		return as, true, false, nil
	case o.Stay:
		if o.Abandoned != nil && run.Status == state.Running && !state.Waits(nodes) {
			o.Abandoned(run) // the caller may tell people; Follow goes on
		}
	case run.Status == state.Paused:
		at, err := s.atWork(ctx, nodes)
		return as, !at, false, err
	case state.Waits(nodes):
		return as, true, false, nil
	default:
		return as, false, o.Abandoned != nil && o.Abandoned(run), nil
	}
	return as, false, false, nil
}

// asIs returns a text that changes whenever anything changes in a run.
func asIs(run state.Run, nodes []state.Node) string {
	var b strings.Builder
	fmt.Fprint(&b, run.Status, run.Epoch, run.Command.Pending())
	for _, n := range nodes {
		fmt.Fprint(&b, " ", n.Revision)
	}
	return b.String()
}

// atWork reports whether a batch is claimed.
func (s *Stream) atWork(ctx context.Context, nodes []state.Node) (bool, error) {
	for _, n := range nodes {
		batches, _, err := s.store.Unsettled(ctx, n.NodeKey, state.Page{})
		if err != nil {
			return false, fmt.Errorf("read the batches of %s: %w", n.Name, err)
		}
		for _, b := range batches {
			if b.Status == state.Claimed {
				return true, nil
			}
		}
	}
	return false, nil
}
