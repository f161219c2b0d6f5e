package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/history"
	"thalweg/internal/store/state"
)

const (
	// recentRuns limits the runs that are over and still looked at: they may be invalidated, or go on.
	recentRuns = 30
	// spaceRests is how many times longer a space rests than a look has taken, up to quietEvery.
	spaceRests = 4
)

// space reads how the latest runs of a workspace are, and those that are not over. Its cost does not grow with the
// number of runs that are over.
type space struct {
	pacer
	audience
	hub   *Hub
	name  string
	ready chan struct{} // closed behind the first look

	// Of look alone:
	paused *string         // what of its schedules is paused; nil: it was not read yet
	newest int64           // the latest run's number
	seen   map[int64]int64 // revisions of runs that were listed
	whole  time.Time       // when it looked at all runs that are not over

	mu     sync.Mutex
	heard  map[int64]bool // numbers of runs that have changed; 0: of some
	runs   map[int64]told // that are not over, and the latest of those that are
	change int64          // counts the changes
	orders int64          // the change with which schedules were last paused or went on; 0: they were not
	moved  chan struct{}
	err    error // of the latest look
	ended  error
}

// told is a run as listeners know it.
type told struct {
	Line
	change int64  // with which it became so; 0: it was so from the beginning, and is over
	main   string // all but its progress: while it is the same, nobody is told anew
	over   bool
}

// hear has the space look at a run; 0: at those that have changed.
func (s *space) hear(run int64) {
	s.mu.Lock()
	s.hears(run)
	s.mu.Unlock()
	s.wake()
}

// hears is hear without waking. s.mu is held.
func (s *space) hears(run int64) {
	if s.heard == nil {
		s.heard = map[int64]bool{}
	}
	s.heard[run] = true
}

// follow reads until nobody listens.
func (s *space) follow() {
	defer s.end()
	first := sync.OnceFunc(func() { close(s.ready) })
	for ok := true; ok; ok = s.wait(s.hub.ctx, s.hub.every(), s.gone) {
		at := time.Now()
		s.look()
		first()
		s.looked(at, min(spaceRests*time.Since(at), quietEvery))
	}
}

// look lists the runs that have changed, or may have.
func (s *space) look() {
	ctx := s.hub.ctx
	s.mu.Lock()
	list := s.heard
	s.heard = nil
	s.mu.Unlock()
	var err error
	all := time.Since(s.whole) >= s.hub.every()
	if some := list[0]; all || some {
		delete(list, 0)
		list, err = s.suspects(ctx, list, all)
		err = errors.Join(err, s.schedules(ctx))
	}
	if all {
		s.whole = time.Now()
	}
	now, failed := map[int64]history.Run{}, []int64(nil)
	for run := range list {
		shown, one := s.hub.cfg.List(ctx, s.key(run))
		switch {
		case one == nil:
			now[run], s.newest = shown, max(s.newest, run)
		case !errors.Is(one, state.ErrNotFound): // it may be about to be created
			failed, err = append(failed, run), errors.Join(err, one)
		}
	}
	if ctx.Err() == nil {
		s.take(now, failed, err)
	}
}

// schedules tells whether schedules were paused, or go on, since the last look.
func (s *space) schedules(ctx context.Context) error {
	notes, err := state.AllNotes(ctx, s.hub.cfg.Store, s.name, state.TopicPaused)
	if err != nil {
		return err
	}
	var all strings.Builder
	for _, n := range notes {
		fmt.Fprintf(&all, "%q %q\n", n.Name, n.Data)
	}
	before, now := s.paused, all.String()
	if s.paused = &now; before == nil || *before == now {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change++
	s.orders = s.change
	s.tellAll()
	return nil
}

// tellAll has those look who wait. s.mu is held.
func (s *space) tellAll() {
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *space) key(run int64) state.RunKey { return state.RunKey{Workspace: s.name, Run: run} }

// suspects returns the runs that may have changed: those of heard, new ones, and with all those that are not over.
// Where there is a Watch the others are those that it says have changed.
func (s *space) suspects(ctx context.Context, heard map[int64]bool, all bool) (map[int64]bool, error) {
	list := maps.Clone(heard)
	if list == nil {
		list = map[int64]bool{}
	}
	err := s.begun(ctx, list)
	watch := s.hub.cfg.Watch
	var known []state.RunKey
	s.mu.Lock()
	for run, t := range s.runs {
		if !t.over && (all || watch == nil) {
			list[run] = true
		}
		known = append(known, s.key(run))
	}
	s.mu.Unlock()
	for run := range list {
		known = append(known, s.key(run))
	}
	if watch == nil {
		return list, err
	}
	revisions, failed := watch.Revisions(ctx, known)
	if failed != nil {
		return list, errors.Join(err, failed)
	}
	before := s.seen
	s.seen = map[int64]int64{}
	for i, key := range known {
		if s.seen[key.Run] = revisions[i]; before[key.Run] != revisions[i] {
			list[key.Run] = true
		}
	}
	return list, err
}

// begun puts the numbers of runs into list that are new, or not over any more. The first time it takes the latest runs
// for new.
func (s *space) begun(ctx context.Context, list map[int64]bool) error {
	if s.newest == 0 {
		runs, _, err := s.hub.cfg.Store.Runs(ctx, s.name, state.Page{Limit: recentRuns})
		if err != nil {
			return fmt.Errorf("read the runs of workspace %s: %w", s.name, err)
		}
		for _, r := range runs {
			list[r.Run], s.newest = true, max(s.newest, r.Run)
		}
	}
	s.mu.Lock()
	known := maps.Clone(s.runs)
	s.mu.Unlock()
	open, err := state.OpenRuns(ctx, s.hub.cfg.Store, s.name, func(key state.RunKey) bool {
		t, is := known[key.Run]
		return list[key.Run] || is && !t.over
	})
	for _, r := range open {
		list[r.Run], s.newest = true, max(s.newest, r.Run)
	}
	for { // those that have ended already
		_, one := s.hub.cfg.Store.Run(ctx, s.key(s.newest+1))
		if one != nil {
			if !errors.Is(one, state.ErrNotFound) {
				err = errors.Join(err, one)
			}
			return err
		}
		s.newest++
		list[s.newest] = true
	}
}

// take keeps how runs are now, and tells those who wait of what has changed. Those that could not be read are for the
// next look.
func (s *space) take(now map[int64]history.Run, failed []int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range failed {
		s.hears(run)
	}
	if err != nil {
		s.hears(0)
	}
	first, moved := s.runs == nil, err != nil
	if s.err = err; first && (err == nil || len(now) > 0) {
		s.runs = map[int64]told{}
	}
	for _, run := range slices.Sorted(maps.Keys(now)) {
		t := tell(now[run])
		if before := s.runs[run]; before.main == t.main {
			t.change = before.change
		} else if !first || !t.over {
			s.change++
			t.change, moved = s.change, true
		}
		s.runs[run] = t
	}
	s.trim()
	if moved {
		s.tellAll()
	}
}

// tell returns a run as it is told.
func tell(r history.Run) told {
	t := told{over: r.Finished != nil, Line: Line{Event: "run", JSON: encode(r)}}
	t.Discreet = t.JSON
	if r.Failure != nil {
		r.Failure = instance.FailureWithoutValues(r.Failure)
		t.Discreet = encode(r)
	}
	r.Rows, r.Bytes, r.Elapsed = 0, 0, 0
	t.main = string(encode(r))
	return t
}

// trim forgets the oldest of those that are over.
func (s *space) trim() {
	var over []int64
	for run, t := range s.runs {
		if t.over {
			over = append(over, run)
		}
	}
	slices.SortFunc(over, func(a, b int64) int {
		return cmp.Or(cmp.Compare(s.runs[a].change, s.runs[b].change), cmp.Compare(a, b))
	})
	for _, run := range over[:max(len(over)-recentRuns, 0)] {
		delete(s.runs, run)
	}
}

// end forgets a space that has ended by itself, and tells its listeners.
func (s *space) end() {
	s.hub.mu.Lock()
	s.finish()
	if s.hub.spaces[s.name] == s {
		s.forget()
	}
	s.hub.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = errEnded
	close(s.moved)
}

// forget makes room for another follower. Hub.mu is held.
func (s *space) forget() {
	delete(s.hub.spaces, s.name)
	s.hub.followed.Add(-1)
}

// Workspace listens to the runs of a workspace: first each that is not over, and of those that have ended lately some;
// then each that begins, moves on, asks for a decision, ends, or is otherwise not as it was but for its progress. A
// line is a run as lists have it; one of event schedules says that some were paused, or go on. The caller closes the
// result.
func (h *Hub) Workspace(name string) (*SpaceListener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.spaces[name]
	if s == nil {
		if err := h.room(); err != nil {
			return nil, err
		}
		s = &space{pacer: newPacer(h.cfg.pace), audience: audience{gone: make(chan struct{})}, hub: h, name: name,
			ready: make(chan struct{}), moved: make(chan struct{})}
		h.spaces[name] = s
		h.done.Go(s.follow)
	}
	s.enter()
	return &SpaceListener{space: s}, nil
}

// SpaceListener gets the changes of a workspace's runs. It is not safe for concurrent use.
type SpaceListener struct {
	*space
	at     int64 // the last change that was given
	closed bool
}

// Close ends listening. It may be called more than once.
func (l *SpaceListener) Close() {
	if !l.closed {
		l.closed = true
		l.hub.leave(&l.audience, l.forget)
	}
}

// Ready waits until changes from now on are told, or ctx ends. What runs that are over are like before is not told.
func (l *SpaceListener) Ready(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.ready:
	}
}

// Next returns the runs that have changed since the last call, in the order of their changes, and behind them whether
// schedules have. Of several changes it gives the last one. It waits until there are some, or ctx ends.
func (l *SpaceListener) Next(ctx context.Context) ([]Line, error) {
	for {
		lines, wait, err := l.changed()
		if err != nil || len(lines) > 0 {
			return lines, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-wait:
		}
	}
}

// changed returns the runs that have changed since the last call, what to wait for if there are none, or an error.
func (l *SpaceListener) changed() (lines []Line, wait <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var changed []told
	for _, t := range l.runs {
		if t.change > l.at {
			changed = append(changed, t)
		}
	}
	slices.SortFunc(changed, func(a, b told) int { return cmp.Compare(a.change, b.change) })
	for _, t := range changed {
		lines = append(lines, t.Line)
	}
	if l.orders > l.at {
		said := encode(map[string]string{"workspace": l.name})
		lines = append(lines, Line{Event: "schedules", JSON: said, Discreet: said})
	}
	l.at = l.change
	switch {
	case len(lines) > 0:
		return lines, nil, nil
	case l.ended != nil:
		return nil, nil, l.ended
	case l.err != nil:
		return nil, nil, fmt.Errorf("follow workspace %s: %w", l.name, l.err)
	}
	return nil, l.moved, nil
}
