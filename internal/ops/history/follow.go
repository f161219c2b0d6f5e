package history

import (
	"context"
	"fmt"
	"time"

	"thalweg/internal/store/state"
)

// FollowOptions says how news of a run is had, and when following it ends.
type FollowOptions struct {
	Every time.Duration // interval between looks at a run that nobody may be at work on; 0: a default
	Stay  bool          // Follow goes on while the run waits for people, is paused, or nobody works on it
	// Abandoned reports whether nobody works on a run that is running; nil: not known.
	Abandoned func(state.Run) bool
	// Listen returns the news behind a line. While that fails, Follow reads the state instead.
	Listen func(ctx context.Context, after int64) (News, error)
}

// News tells what happens to a run, as it happens.
type News interface {
	// Next returns the next lines. It waits until there are some, ctx ends, or the news does.
	Next(ctx context.Context) ([]Line, error)
	Close()
}

const (
	// followEvery is the default of FollowOptions.Every.
	followEvery = 250 * time.Millisecond
	// followSlowest is the interval between looks at the run while there is no news.
	followSlowest = time.Second
	// AbandonedFor is the number of looks in a row that must find nobody at work on a run before Follow ends. One
	// process may just be taking the run over from another.
	AbandonedFor = 8
	// AboutToGoOn is the longest wait for a stopped run to go on: see state.Run.AboutToGoOn.
	AboutToGoOn = 10 * time.Second
	// linesMax limits the lines that are told at once.
	linesMax = state.PageMax
)

// Follow calls tell with all events of a run, until it is over. Without Stay it also
// ends when the run waits for people, is paused, or nobody works on it.
func Follow(ctx context.Context, s *Stream, o FollowOptions, tell func([]Line) error) error {
	if o.Every == 0 {
		o.Every = followEvery
	}
	f := &following{Stream: s, o: o, tell: tell}
	defer f.deaf()
	abandoned := 0
	for over := false; ; {
		told := false
		if over || f.news == nil {
			f.deaf() // it would tell again what is told now
			var err error
			if told, err = Tell(ctx, s, tell); err != nil {
				return err
			}
		}
		if over && !told { // nothing had happened between the look and the end
			return nil
		}
		var alone bool
		var err error
		if over, alone, err = s.ends(ctx, o); err != nil {
			return err
		}
		if abandoned++; !alone {
			abandoned = 0
		}
		if over = over || abandoned >= AbandonedFor; over {
			continue
		}
		pause := max(o.Every, followSlowest)
		if alone {
			pause = o.Every
		}
		if err := f.hear(ctx, pause); err != nil {
			return err
		}
	}
}

// following is a run that is followed.
type following struct {
	*Stream
	o    FollowOptions
	tell func([]Line) error
	news News // nil: there is none now
}

// hear tells the next news. It returns after a pause if there is none, at once if there cannot be any.
func (f *following) hear(ctx context.Context, pause time.Duration) error {
	until, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	var err error
	if f.news == nil {
		if f.news, err = f.o.Listen(until, f.given()); err != nil {
			f.news = nil
			<-until.Done()
			return context.Cause(ctx)
		}
	}
	lines, err := f.news.Next(until)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case until.Err() != nil && len(lines) == 0:
		return nil
	case err != nil: // the state says what there is
		f.deaf()
		return nil
	}
	f.skip(lines[len(lines)-1].N)
	return f.tell(lines)
}

// deaf ends the news.
func (f *following) deaf() {
	if f.news != nil {
		f.news.Close()
		f.news = nil
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

// Standing is how a run stands for who follows it.
type Standing struct {
	Over      bool `json:"over"`           // nothing more happens to it by itself
	GoesOn    bool `json:"about_to_go_on"` // it is stopped only until who has stopped it lets it go on
	Abandoned bool `json:"abandoned"`      // nobody works on it, at this moment
}

// Stand says how a run stands: see Follow for when it is over.
func Stand(ctx context.Context, store state.Store, key state.RunKey, o FollowOptions) (Standing, error) {
	run, nodes, err := read(ctx, store, key)
	if err != nil {
		return Standing{}, err
	}
	switch {
	case run.Command.Pending():
	case run.AboutToGoOn():
		return Standing{GoesOn: true}, nil
	case run.Status.Terminal():
		return Standing{Over: true}, nil
	case o.Stay:
		if o.Abandoned != nil && run.Status == state.Running && !state.Waits(nodes) {
			o.Abandoned(run) // the caller may tell people; Follow goes on
		}
	case run.Status == state.Paused:
		at, err := atWork(ctx, store, nodes)
		return Standing{Over: err == nil && !at}, err
	case state.Waits(nodes):
		return Standing{Over: true}, nil
	default:
		return Standing{Abandoned: o.Abandoned != nil && o.Abandoned(run)}, nil
	}
	return Standing{}, nil
}

// ends reports whether a run is over, and whether nobody works on it.
func (s *Stream) ends(ctx context.Context, o FollowOptions) (over, abandoned bool, err error) {
	at, err := Stand(ctx, s.store, s.key, o)
	if at.GoesOn {
		if s.stopped.IsZero() {
			s.stopped = time.Now()
		}
		at.Over = time.Since(s.stopped) > AboutToGoOn
	}
	return at.Over, at.Abandoned, err
}

// atWork reports whether a batch is claimed.
func atWork(ctx context.Context, store state.Store, nodes []state.Node) (bool, error) {
	for _, n := range nodes {
		batches, _, err := store.Unsettled(ctx, n.NodeKey, state.Page{})
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
