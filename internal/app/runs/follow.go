package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"thalweg/internal/app/hub"
	"thalweg/internal/app/registry"
	"thalweg/internal/app/view"
	"thalweg/internal/ops/history"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// FollowOptions say how a run is followed.
type FollowOptions struct {
	After int64         // the line behind which it begins
	Stay  bool          // also while the run waits for people, is paused, or nobody works on it
	Every time.Duration // pause between looks whether somebody works on the run; 0: the default
	// Queued says that the run was left to workers: it is not left because none has come yet.
	Queued bool
	// Waiting has the state waited for while it is away.
	Waiting bool
	// Alone is told why no worker of a cluster takes the run, whenever that is another reason; may be nil.
	Alone func(why, hint string)
}

// Events gives what has happened to a run to tell, in lines that are numbered from 1.
func (s *Service) Events(ctx context.Context, key state.RunKey, after int64,
	tell func([]view.EventLine) error) error {
	_, err := history.Tell(ctx, history.NewStream(s.Home.State, key, after), tell)
	return err
}

// EventsPage is a piece of what has happened to a run.
type EventsPage struct {
	Events []view.EventLine
	Next   int64 // the line behind which the next page begins
	More   bool  // there are more lines behind it now
}

// EventsLooked is the most lines of which one page selects: it may hold none, and more are behind it.
const EventsLooked = 20_000

// EventsPage lists the first selected events behind the line after: limit of them at most.
func (s *Service) EventsPage(ctx context.Context, key state.RunKey, after int64, limit int,
	selected view.EventChoice) (EventsPage, error) {
	stream, page := history.NewStream(s.Home.State, key, after), EventsPage{Next: after}
	for looked := 0; looked < EventsLooked; {
		size := min(state.PageMax, EventsLooked-looked)
		if selected.All() {
			size = min(size, limit+1-len(page.Events))
		}
		lines, err := stream.Next(ctx, size)
		if err != nil || len(lines) == 0 {
			return page, err
		}
		for _, l := range lines {
			if len(page.Events) == limit {
				page.More = true
				return page, nil
			}
			page.Next = l.N
			if selected.Has(l.Event) {
				page.Events = append(page.Events, l)
			}
		}
		looked += len(lines)
	}
	page.More = true
	return page, nil
}

// Follow does so, and goes on until the run is over, or waits.
func (s *Service) Follow(ctx context.Context, key state.RunKey, o FollowOptions,
	tell func([]view.EventLine) error) error {
	store := s.Home.State
	if o.Waiting {
		store = s.Home.Waiting(s.Logger)
	}
	watch := nobodyWatch{service: s, key: key, alone: o.Alone}
	listen := func(ctx context.Context, after int64) (history.News, error) {
		l, err := s.News.Run(ctx, key, after)
		if err != nil {
			return nil, err
		}
		return runNews{l, s.discreet}, nil
	}
	return history.Follow(ctx, history.NewStream(store, key, o.After),
		history.FollowOptions{Stay: o.Stay, Abandoned: watch.abandoned, Every: o.Every, Listen: listen}, tell)
}

// runNews gives the lines of a listener as history has them.
type runNews struct {
	*hub.Listener
	discreet bool
}

// Next implements history.News.
func (n runNews) Next(ctx context.Context) ([]history.Line, error) {
	heard, err := n.Listener.Next(ctx, state.PageMax)
	if err != nil {
		return nil, err
	}
	lines := make([]history.Line, len(heard))
	for i, l := range heard {
		text := l.JSON
		if n.discreet {
			text = l.Discreet
		}
		if err := json.Unmarshal(text, &lines[i]); err != nil {
			return nil, fmt.Errorf("read line %d of run %d: %w", l.Number, lines[i].Run, err)
		}
	}
	return lines, nil
}

// FollowWork does so with events as those tell them who work on the run: each
// node's figures are added up. What a gate asks comes with it.
func (s *Service) FollowWork(ctx context.Context, key state.RunKey, o FollowOptions,
	show func(view.Event) error) error {
	asked := func(node string) (*gate.Record, error) { return s.asked(ctx, key, node) }
	return s.Follow(ctx, key, o, ShowWork(o.Stay, asked, show))
}

// ShowWork returns what shows the lines of a run's stream as events of who works on it. If it stays, asked says what
// a gate asks that waits; nil: it does not wait any more.
func ShowWork(stay bool, asked func(node string) (*gate.Record, error),
	show func(view.Event) error) func([]view.EventLine) error {
	work := workEvents{sums: map[string]state.Stats{}, from: map[string]*state.NodeKey{}}
	return func(lines []view.EventLine) error {
		for _, l := range lines {
			e, ok := work.of(l.Event)
			if !ok {
				continue
			}
			if e.Kind == job.NodeWaiting && stay { // else it is said at the end
				var err error
				if e.Gate, err = asked(e.Node); err != nil {
					return err
				}
			}
			if err := show(e); err != nil {
				return err
			}
		}
		return nil
	}
}

// Standing says how a run stands for who follows it; stay is that of FollowOptions.
func (s *Service) Standing(ctx context.Context, key state.RunKey, stay bool) (view.Standing, error) {
	return history.Stand(ctx, s.Home.State, key, history.FollowOptions{Stay: stay, Abandoned: func(r state.Run) bool {
		return s.Home.Cluster() == nil && !s.Home.AtWork(r.RunKey)
	}})
}

// workEvents makes of the events of a run's state those that a worker tells.
type workEvents struct {
	sums map[string]state.Stats    // of the nodes' batches so far
	from map[string]*state.NodeKey // whose rows nodes have taken over
}

// of returns an event as a worker tells it; false if people are shown nothing of it.
func (w workEvents) of(said state.Event) (job.Event, bool) {
	e, ok := workEvent(said)
	switch sum := w.sums[e.Node]; e.Kind {
	case job.NodePlanned:
		delete(w.sums, e.Node)
		w.from[e.Node] = e.ReusedFrom
	case job.BatchFinished:
		sum.RowsIn, sum.RowsOut, sum.BytesOut = sum.RowsIn+e.Stats.RowsIn, sum.RowsOut+e.Stats.RowsOut,
			sum.BytesOut+e.Stats.BytesOut
		w.sums[e.Node] = sum
	case job.NodeFinished:
		e.Stats, e.ReusedFrom = sum, w.from[e.Node]
	}
	return e, ok
}

// asked returns what a gate asks; nil if it does not wait any more.
func (s *Service) asked(ctx context.Context, key state.RunKey, node string) (*gate.Record, error) {
	n, err := s.Home.Waiting(s.Logger).Node(ctx, state.NodeKey{RunKey: key, Node: node})
	if err != nil {
		return nil, fmt.Errorf("read what gate %s asks: %w", gate.NameOf(node), err)
	}
	if n.Status != state.Waiting {
		return nil, nil
	}
	r, err := gate.Decode(n.Gate)
	if err != nil { // what cannot be read is not shown
		return nil, nil //nolint:nilerr // Show says it
	}
	return &r, nil
}

// workEvent returns an event of state as a worker tells it; false if people are shown nothing of it.
func workEvent(e state.Event) (job.Event, bool) {
	out := job.Event{Run: e.RunKey, Time: e.Time, Node: e.Node, Attempt: e.Attempt, Batches: e.Batches,
		Failure: e.Failure, ReusedFrom: e.ReusedFrom}
	if e.Batch != nil {
		out.Batch = *e.Batch
	}
	out.Stats = state.Stats{RowsIn: e.RowsIn, RowsOut: e.RowsOut, BytesOut: e.BytesOut}
	switch {
	case e.Kind == state.NodePlanned:
		out.Kind = job.NodePlanned
	case e.Kind == state.BatchClaimed:
		out.Kind = job.BatchStarted
	case e.Kind == state.BatchEnded && e.Status == state.Succeeded:
		out.Kind = job.BatchFinished
	case e.Kind == state.BatchEnded && e.Status == state.Released:
		out.Kind = job.BatchReleased
	case e.Kind == state.BatchEnded && e.Status == state.Lost:
		out.Kind = job.BatchLost
	case e.Kind == state.BatchEnded && e.Failure != nil:
		out.Kind = job.BatchFailed
		if e.Failure.Again {
			out.Kind = job.BatchRetried
		}
	case e.Kind == state.NodeMoved && e.Status == state.Succeeded:
		out.Kind = job.NodeFinished
	case e.Kind == state.NodeMoved && e.Status == state.Waiting && gate.Is(state.NodeSpec{Name: e.Node,
		Kind: gate.Kind}):
		out.Kind = job.NodeWaiting
	default:
		return out, false
	}
	return out, true
}

// nobodyWatch says, now and then, that nobody takes a run.
type nobodyWatch struct {
	service *Service
	key     state.RunKey
	alone   func(why, hint string)
	next    time.Time // when it is looked again
	said    string
}

const (
	// nobodyEvery is the time between two looks at who works on a run. A run that is taken at once
	// is not called alone before.
	nobodyEvery   = 2 * time.Second
	nobodyTimeout = 5 * time.Second
)

// abandoned implements history.FollowOptions: a run of a cluster is not left because
// nobody has come yet, only said to be alone.
func (n *nobodyWatch) abandoned(run state.Run) bool {
	home := n.service.Home
	if home.Cluster() == nil {
		return !home.AtWork(run.RunKey)
	}
	now := time.Now()
	if n.next.IsZero() {
		n.next = now.Add(nobodyEvery)
	}
	if n.alone == nil || now.Before(n.next) {
		return false
	}
	n.next = now.Add(nobodyEvery)
	ctx, cancel := context.WithTimeout(context.Background(), nobodyTimeout)
	defer cancel()
	why, hint, err := registry.NobodyTakes(ctx, home, n.key)
	if err == nil && why == "" {
		n.said = ""
	}
	if err != nil || why == "" || why == n.said {
		return false
	}
	n.said = why
	n.alone(why, hint)
	return false
}
