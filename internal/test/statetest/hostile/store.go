package hostile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Store is a state store of partitions in memory. Any number of handles on it
// may be closed one by one; it forgets nothing until it is forgotten itself.
type Store struct {
	mu         sync.Mutex // of the maps, not of what is in them
	workspaces map[string]*workspacePartition
	runs       map[state.RunKey]*runPartition
	nodes      map[state.NodeKey]*nodePartition
	blobs      map[string][]byte
}

// workspacePartition numbers runs, and has notes.
type workspacePartition struct {
	sync.Mutex
	last   int64
	tokens map[string]int64
	notes  map[string][]state.Note // of each topic, by name
}

// runPartition is a run's record, its roles and its events.
type runPartition struct {
	sync.Mutex
	run    state.Run
	nodes  []state.NodeSpec // by ordinal
	roles  map[string]state.Role
	events []state.Event
	spans  []state.Span
}

// nodePartition is a node with all that belongs to it.
type nodePartition struct {
	sync.Mutex
	node         state.Node // without what is derived
	staged       map[string]*stagedPlan
	plan         *stagedPlan // nil: not planned
	batches      []*batch    // of the plan
	attempts     map[int][]*attempt
	publications []state.Publication
	events       []state.Event
	purged       *state.Tally // its tally when it was purged; nil: it was not
}

type stagedPlan struct {
	batches map[int]state.BatchSpec
	inputs  map[int]state.Input
}

type batch struct {
	state.Batch
	token string
}

// attempt is kept with what it published.
type attempt struct {
	state.Attempt
	out state.Outcome
}

// New returns an empty store.
func New() *Store {
	return &Store{
		workspaces: map[string]*workspacePartition{}, runs: map[state.RunKey]*runPartition{},
		nodes: map[state.NodeKey]*nodePartition{}, blobs: map[string][]byte{},
	}
}

// Handle is a use of a store, which ends by Close.
type Handle struct {
	*Store
	mu     sync.Mutex
	closed bool
}

var _ state.Store = (*Handle)(nil)

// Open returns a handle on the store.
func (s *Store) Open() *Handle { return &Handle{Store: s} }

// errClosed is the error of a closed handle.
var errClosed = errors.New("the store is closed")

// Run implements state.Store.
func (h *Handle) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return state.Run{}, errClosed
	}
	return h.Store.Run(ctx, key)
}

// Close implements state.Store. It may be called more than once.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return nil
}

func milli(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

// find looks a partition up.
func find[K comparable, P any](ctx context.Context, s *Store, all map[K]*P, key K) (*P, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := all[key]; p != nil {
		return p, nil
	}
	return nil, state.ErrNotFound
}

// inRun does something to a run's partition.
func (s *Store) inRun(ctx context.Context, key state.RunKey, do func(*runPartition) error) error {
	p, err := find(ctx, s, s.runs, key)
	if err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	return do(p)
}

// inNode does something to a node's partition.
func (s *Store) inNode(ctx context.Context, key state.NodeKey, do func(*nodePartition) error) error {
	p, err := find(ctx, s, s.nodes, key)
	if err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	return do(p)
}

// CreateRun implements state.Store: a number first, then the nodes, then the
// run, which nobody sees before.
func (s *Store) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec,
	blobs ...state.Blob) (state.RunKey, error) {
	if err := ctx.Err(); err != nil {
		return state.RunKey{}, err
	}
	seen := map[string]bool{}
	for _, n := range nodes {
		if n.Name == "" || seen[n.Name] {
			return state.RunKey{}, fault.New(fault.Bug, "node name %q is empty or used twice", n.Name)
		}
		seen[n.Name] = true
	}
	if run.Workspace == "" {
		return state.RunKey{}, fault.New(fault.Bug, "a run needs the name of a workspace")
	}
	if run.Created.IsZero() {
		run.Created = time.Now()
	}
	run.Run = s.number(run)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range blobs {
		s.blobs[b.Digest] = slices.Clone(b.Content)
	}
	for _, n := range nodes {
		key := state.NodeKey{RunKey: run.RunKey, Node: n.Name}
		if s.nodes[key] == nil {
			s.nodes[key] = &nodePartition{node: state.Node{NodeKey: key, NodeSpec: n, Status: state.Pending},
				staged: map[string]*stagedPlan{}, attempts: map[int][]*attempt{}}
		}
	}
	if s.runs[run.RunKey] == nil {
		run.Status, run.Epoch, run.Command, run.Finished = state.Running, 0, nil, time.Time{}
		run.Failure, run.Invalidated, run.Dropped, run.Nodes = nil, nil, nil, nil
		run.Created, run.Deadline = milli(run.Created), milli(run.Deadline)
		nodes = slices.Clone(nodes)
		slices.SortStableFunc(nodes, func(a, b state.NodeSpec) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
		p := &runPartition{run: run, nodes: nodes, roles: map[string]state.Role{}}
		p.tell(state.RunCreated, run.Actor, run.Created, state.EventData{Status: state.Running})
		s.runs[run.RunKey] = p
	}
	return run.RunKey, nil
}

// number gives a run its number in its workspace, and notes that it is open. One
// that has a number already has a note, or does not need it any more.
func (s *Store) number(run state.Run) int64 {
	p := s.workspace(run.Workspace)
	p.Lock()
	defer p.Unlock()
	if n := p.tokens[run.Token]; run.Token != "" && n != 0 {
		return n
	}
	p.last++
	p.tokens[run.Token] = p.last
	p.put(state.OpenNote(p.last, "", run.Created))
	return p.last
}

func (p *runPartition) tell(kind state.EventKind, actor string, at time.Time, data state.EventData) {
	p.events = append(p.events, state.Event{NodeKey: state.NodeKey{RunKey: p.run.RunKey}, Seq: int64(len(p.events)) + 1,
		Version: state.EventVersion, Time: milli(at), Actor: actor, Kind: kind, EventData: data})
}

// Run implements state.Store.
func (s *Store) Run(ctx context.Context, key state.RunKey) (run state.Run, err error) {
	err = s.inRun(ctx, key, func(p *runPartition) error { run = p.run; return nil })
	return run, err
}

// Runs implements state.Store.
func (s *Store) Runs(ctx context.Context, workspace string, page state.Page) (runs []state.Run, next int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	s.mu.Lock()
	keys := slices.Collect(maps.Keys(s.runs))
	s.mu.Unlock()
	keys = slices.DeleteFunc(keys, func(k state.RunKey) bool {
		return k.Workspace != workspace || page.From > 0 &&
			k.Run >= page.From
	})
	slices.SortFunc(keys, func(a, b state.RunKey) int { return cmp.Compare(b.Run, a.Run) })
	if n := limit(page); len(keys) > n {
		keys, next = keys[:n], keys[n-1].Run
	}
	for _, key := range keys {
		run, err := s.Run(ctx, key)
		if err != nil {
			return nil, 0, err
		}
		nodes, err := s.Nodes(ctx, key)
		if err != nil {
			return nil, 0, err
		}
		run.Pins = nil
		for _, n := range nodes {
			run.Nodes = append(run.Nodes, state.NodeBrief{Name: n.Name, Table: n.Table, Status: n.Status,
				RowsOut: n.RowsOut, BytesOut: n.BytesOut, Spent: n.Spent})
		}
		runs = append(runs, run)
	}
	return runs, next, nil
}

func limit(page state.Page) int {
	if page.Limit <= 0 || page.Limit > state.PageMax {
		return state.PageMax
	}
	return page.Limit
}

// Workspaces implements state.Store.
func (s *Store) Workspaces(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := slices.Sorted(maps.Keys(s.workspaces))
	return slices.DeleteFunc(names, func(name string) bool { return s.workspaces[name].last == 0 }), ctx.Err()
}

// Blob implements state.Store.
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	content, ok := s.blobs[digest]
	if !ok {
		return nil, state.ErrNotFound
	}
	return slices.Clone(content), nil
}

// BeginCommand implements state.Store.
func (s *Store) BeginCommand(ctx context.Context, key state.RunKey, o state.Command) error {
	return s.inRun(ctx, key, func(p *runPartition) error {
		if begun, err := o.Begins(p.run); begun || err != nil {
			return err
		}
		o.Done = false
		p.run.Epoch, p.run.Command = o.Epoch, &o
		p.tell(state.OrderBegun, o.Actor, o.Time, state.EventData{Epoch: o.Epoch, Command: &o})
		return nil
	})
}

// CommitCommand implements state.Store.
func (s *Store) CommitCommand(ctx context.Context, key state.RunKey, epoch int64, now time.Time) error {
	return s.inRun(ctx, key, func(p *runPartition) error {
		if p.run.Epoch != epoch || p.run.Command == nil {
			return state.ErrConflict
		}
		if !p.run.Command.Done {
			p.run = p.run.Command.Ends(p.run, milli(now))
			p.tell(state.OrderEnded, p.run.Command.Actor, now, state.EventData{Epoch: epoch, Status: p.run.Status})
		}
		return nil
	})
}

// CompleteRun implements state.Store.
func (s *Store) CompleteRun(ctx context.Context, key state.RunKey, epoch int64, actor string, now time.Time) error {
	return s.inRun(ctx, key, func(p *runPartition) error {
		if p.run.Epoch != epoch || p.run.Command.Pending() ||
			p.run.Status != state.Running && p.run.Status != state.Complete {
			return state.ErrConflict
		}
		if p.run.Status == state.Running {
			p.run.Status, p.run.Finished = state.Complete, milli(now)
			p.tell(state.RunCompleted, actor, now, state.EventData{Status: state.Complete})
		}
		return nil
	})
}

// Acquire implements state.Store.
func (s *Store) Acquire(ctx context.Context, key state.RunKey, role, owner string, now,
	until time.Time) (got state.Role, err error) {
	err = s.inRun(ctx, key, func(p *runPartition) error {
		got = p.roles[role]
		got.Name = role
		if !got.Take(owner, milli(now), milli(until)) {
			return state.ErrHeld
		}
		p.roles[role] = got
		return nil
	})
	return got, err
}

// Resign implements state.Store.
func (s *Store) Resign(ctx context.Context, key state.RunKey, role, owner string) error {
	return s.inRun(ctx, key, func(p *runPartition) error {
		if r := p.roles[role]; r.Owner == owner {
			p.roles[role] = state.Role{Name: role, Term: r.Term}
		}
		return nil
	})
}

// Events implements state.Store.
func (s *Store) Events(ctx context.Context, key state.NodeKey, after int64, n int) (events []state.Event, err error) {
	take := func(all []state.Event) error {
		all = all[min(max(int(after), 0), len(all)):]
		events = slices.Clone(all[:min(len(all), limit(state.Page{Limit: n}))])
		return nil
	}
	if key.Node == "" {
		err = s.inRun(ctx, key.RunKey, func(p *runPartition) error { return take(p.events) })
	} else {
		err = s.inNode(ctx, key, func(p *nodePartition) error { return take(p.events) })
	}
	return events, err
}
