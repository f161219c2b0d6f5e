package statetest

import (
	"bytes"
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"thalweg/internal/state"
)

// model is a store in memory, written to be obviously right and nothing else:
// one lock, plain values, no cleverness. It keeps the same promises as every
// other store except that it forgets everything.
type model struct {
	mu    sync.Mutex
	clock func() time.Time
	runs  map[state.RunKey]*modelRun
}

type modelRun struct {
	state.Run
	nodes []*modelNode
}

type modelNode struct {
	state.Node
	specs    []state.BatchSpec
	batches  []state.Batch
	attempts map[int][]state.Attempt // by batch; attempt n at place n-1
	parts    map[int][]state.Part
	files    map[int][]state.File
	checks   map[int][]state.CheckResult
}

var _ state.Store = (*model)(nil)

func newModel() *model {
	return &model{clock: time.Now, runs: map[state.RunKey]*modelRun{}}
}

func milli(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

func (m *model) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	return m.mu.Unlock, nil
}

func (m *model) run(key state.RunKey) (*modelRun, error) {
	if r := m.runs[key]; r != nil {
		return r, nil
	}
	return nil, state.ErrNotFound
}

func (m *model) node(key state.NodeKey) (*modelRun, *modelNode, error) {
	r, err := m.run(key.RunKey)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range r.nodes {
		if n.Name == key.Node {
			return r, n, nil
		}
	}
	return nil, nil, state.ErrNotFound
}

func (m *model) batch(key state.BatchKey) (*modelRun, *modelNode, *state.Batch, error) {
	r, n, err := m.node(key.NodeKey)
	if err != nil {
		return nil, nil, nil, err
	}
	if key.Batch < 0 || key.Batch >= len(n.batches) {
		return nil, nil, nil, state.ErrNotFound
	}
	return r, n, &n.batches[key.Batch], nil
}

func (m *model) CreateRun(ctx context.Context, run state.Run, nodes []state.NodeSpec) (state.RunKey, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return state.RunKey{}, err
	}
	defer leave()
	run.Run = 1
	for key := range m.runs {
		if key.Workspace == run.Workspace && key.Run >= run.Run {
			run.Run = key.Run + 1
		}
	}
	run.Status, run.Finished, run.Failure = state.Running, time.Time{}, nil
	if run.Created.IsZero() {
		run.Created = m.clock()
	}
	run.Created = milli(run.Created)
	r := &modelRun{Run: run}
	for _, spec := range nodes {
		key := state.NodeKey{RunKey: run.RunKey, Node: spec.Name}
		r.nodes = append(r.nodes, &modelNode{
			Node:     state.Node{NodeKey: key, NodeSpec: spec, Status: state.Pending},
			attempts: map[int][]state.Attempt{}, parts: map[int][]state.Part{}, files: map[int][]state.File{},
			checks: map[int][]state.CheckResult{},
		})
	}
	sort.SliceStable(r.nodes, func(i, j int) bool { return r.nodes[i].Ordinal < r.nodes[j].Ordinal })
	m.runs[run.RunKey] = r
	return run.RunKey, nil
}

func (m *model) Run(ctx context.Context, key state.RunKey) (state.Run, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return state.Run{}, err
	}
	defer leave()
	r, err := m.run(key)
	if err != nil {
		return state.Run{}, err
	}
	return r.Run, nil
}

func (m *model) Runs(ctx context.Context, workspace string) ([]state.Run, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var runs []state.Run
	for key, r := range m.runs {
		if key.Workspace == workspace {
			runs = append(runs, r.Run)
		}
	}
	sort.Slice(runs, func(i, j int) bool { return runs[i].Run < runs[j].Run })
	return runs, nil
}

func (m *model) Workspaces(ctx context.Context) ([]string, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var names []string
	for key := range m.runs {
		names = append(names, key.Workspace)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (m *model) SetRunStatus(ctx context.Context, key state.RunKey, from, to state.Status, failure *state.Failure) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !state.CanMove("run", from, to) {
		return state.ErrIllegalMove
	}
	r, err := m.run(key)
	if err != nil {
		return err
	}
	if r.Status != from {
		return state.ErrConflict
	}
	r.Status, r.Failure, r.Finished = to, nil, time.Time{}
	if to == state.Failed {
		r.Failure = failure
	}
	if to.Terminal() {
		r.Finished = milli(m.clock())
	}
	return nil
}

func (m *model) Nodes(ctx context.Context, key state.RunKey) ([]state.Node, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := m.run(key)
	if err != nil {
		return nil, err
	}
	var nodes []state.Node
	for _, n := range r.nodes {
		nodes = append(nodes, n.Node)
	}
	return nodes, nil
}

func (m *model) Node(ctx context.Context, key state.NodeKey) (state.Node, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return state.Node{}, err
	}
	defer leave()
	_, n, err := m.node(key)
	if err != nil {
		return state.Node{}, err
	}
	return n.Node, nil
}

func (m *model) PlanNode(ctx context.Context, key state.NodeKey, plan []byte, batches []state.BatchSpec) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	r, n, err := m.node(key)
	if err != nil {
		return err
	}
	if n.Plan != nil {
		if bytes.Equal(n.Plan, plan) && slices.EqualFunc(n.specs, batches, sameSpec) {
			return nil
		}
		return state.ErrExists
	}
	if r.Status != state.Running || n.Status != state.Pending {
		return state.ErrConflict
	}
	n.Plan = append([]byte{}, plan...)
	n.specs = slices.Clone(batches)
	n.Status, n.BatchesTotal = state.Running, len(batches)
	for _, spec := range batches {
		n.batches = append(n.batches, state.Batch{
			BatchKey: state.BatchKey{NodeKey: key, Batch: spec.Batch}, BatchSpec: spec, Status: state.Pending,
		})
	}
	return nil
}

func sameSpec(a, b state.BatchSpec) bool {
	return a.Batch == b.Batch && a.RowsIn == b.RowsIn && a.BytesIn == b.BytesIn && bytes.Equal(a.Work, b.Work)
}

func (m *model) SetNodeStatus(ctx context.Context, key state.NodeKey, from, to state.Status) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !state.CanMove("node", from, to) {
		return state.ErrIllegalMove
	}
	_, n, err := m.node(key)
	if err != nil {
		return err
	}
	if n.Status != from {
		return state.ErrConflict
	}
	n.Status, n.Finished = to, time.Time{}
	if to.Terminal() {
		n.Finished = milli(m.clock())
	}
	return nil
}

func (m *model) Batches(ctx context.Context, key state.NodeKey) ([]state.Batch, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, n, err := m.node(key)
	if err != nil {
		return nil, err
	}
	return slices.Clone(n.batches), nil
}

func (m *model) Claim(ctx context.Context, key state.BatchKey, owner string, now, lease time.Time) (state.Claim, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return state.Claim{}, err
	}
	defer leave()
	r, n, b, err := m.batch(key)
	if err != nil {
		return state.Claim{}, err
	}
	now, lease = milli(now), milli(lease)
	expired := b.Status == state.Claimed && b.Lease.Before(now)
	if r.Status != state.Running || n.Status != state.Running || (b.Status != state.Pending && !expired) {
		return state.Claim{}, state.ErrNotClaimable
	}
	if expired {
		n.endAttempt(b, state.Lost, now, nil)
	}
	b.Status, b.Attempt, b.Owner, b.Lease, b.Started = state.Claimed, b.Attempt+1, owner, lease, now
	n.attempts[key.Batch] = append(n.attempts[key.Batch], state.Attempt{
		BatchKey: key, Attempt: b.Attempt, Owner: owner, Status: state.Claimed, Started: now,
	})
	if n.Started.IsZero() {
		n.Started = now
	}
	return state.Claim{BatchKey: key, Attempt: b.Attempt, Owner: owner, Lease: lease, Spec: b.BatchSpec}, nil
}

func (n *modelNode) endAttempt(b *state.Batch, to state.Status, now time.Time, failure *state.Failure) {
	a := &n.attempts[b.BatchKey.Batch][b.Attempt-1]
	a.Status, a.Finished, a.Failure = to, milli(now), failure
}

func (n *modelNode) reset(b *state.Batch) {
	*b = state.Batch{BatchKey: b.BatchKey, BatchSpec: b.BatchSpec, Status: state.Pending, Attempt: b.Attempt}
}

// held finds the batch that a claim may act on. done says that the claim
// ended as wanted before.
func (m *model) held(c state.Claim, wanted state.Status) (n *modelNode, b *state.Batch, done bool, err error) {
	r, n, b, err := m.batch(c.BatchKey)
	if err != nil {
		return nil, nil, false, err
	}
	attempts := n.attempts[c.Batch]
	if c.Attempt < 1 || c.Attempt > len(attempts) || attempts[c.Attempt-1].Owner != c.Owner {
		return nil, nil, false, state.ErrLeaseLost
	}
	status := attempts[c.Attempt-1].Status
	if status == wanted && wanted != state.Claimed {
		return n, b, true, nil
	}
	if status != state.Claimed || r.Status != state.Running {
		return nil, nil, false, state.ErrLeaseLost
	}
	return n, b, false, nil
}

func (m *model) Extend(ctx context.Context, c state.Claim, lease time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	_, b, _, err := m.held(c, state.Claimed)
	if err != nil {
		return err
	}
	b.Lease = milli(lease)
	return nil
}

func (m *model) Commit(ctx context.Context, c state.Claim, out state.Outcome, now time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n, b, done, err := m.held(c, state.Succeeded)
	if err != nil || done {
		return err
	}
	n.endAttempt(b, state.Succeeded, now, nil)
	b.Status, b.Lease, b.Finished, b.Stats = state.Succeeded, time.Time{}, milli(now), out.Stats
	n.BatchesDone++
	n.RowsIn += out.Stats.RowsIn
	n.RowsOut += out.Stats.RowsOut
	n.BytesIn += out.Stats.BytesIn
	n.BytesOut += out.Stats.BytesOut
	n.publish(c, out)
	return nil
}

func (n *modelNode) publish(c state.Claim, out state.Outcome) {
	for _, p := range out.Parts {
		p.Batch = c.Batch
		n.parts[c.Batch] = append(n.parts[c.Batch], p)
	}
	sort.Slice(n.parts[c.Batch], func(i, j int) bool { return n.parts[c.Batch][i].Seq < n.parts[c.Batch][j].Seq })
	for _, f := range out.Files {
		f.NodeKey, f.Batch = c.NodeKey, c.Batch
		n.files[c.Batch] = append(n.files[c.Batch], f)
	}
	for _, r := range out.Checks {
		r.NodeKey, r.Batch = c.NodeKey, c.Batch
		n.checks[c.Batch] = append(n.checks[c.Batch], r)
	}
}

func (m *model) Fail(ctx context.Context, c state.Claim, failure state.Failure, out state.Outcome, now time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n, b, done, err := m.held(c, state.Failed)
	if err != nil || done {
		return err
	}
	n.endAttempt(b, state.Failed, now, &failure)
	b.Status, b.Lease, b.Finished, b.Failure, b.Stats = state.Failed, time.Time{}, milli(now), &failure, out.Stats
	n.BatchesFailed++
	n.publish(c, out)
	return nil
}

func (m *model) Release(ctx context.Context, c state.Claim, now time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	n, b, done, err := m.held(c, state.Released)
	if err != nil || done {
		return err
	}
	n.endAttempt(b, state.Released, now, nil)
	n.reset(b)
	return nil
}

func (m *model) Attempts(ctx context.Context, key state.NodeKey) ([]state.Attempt, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, n, err := m.node(key)
	if err != nil {
		return nil, err
	}
	var all []state.Attempt
	for i := range n.batches {
		all = append(all, n.attempts[i]...)
	}
	return all, nil
}

func (m *model) Reopen(ctx context.Context, key state.RunKey, now time.Time) error {
	leave, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	r, err := m.run(key)
	if err != nil {
		return err
	}
	if r.Status == state.Complete {
		return state.ErrConflict
	}
	r.Status, r.Finished, r.Failure = state.Running, time.Time{}, nil
	for _, n := range r.nodes {
		n.reopen(now)
	}
	return nil
}

func (n *modelNode) reopen(now time.Time) {
	for i := range n.batches {
		b := &n.batches[i]
		if b.Status == state.Claimed {
			n.endAttempt(b, state.Lost, now, nil)
		}
		if b.Status == state.Claimed || b.Status == state.Failed {
			n.reset(b)
			delete(n.parts, i)
			delete(n.checks, i)
		}
	}
	n.BatchesFailed = 0
	if n.Status == state.Failed || n.Status == state.Stopped {
		n.Status, n.Finished = state.Running, time.Time{}
		if n.Plan == nil {
			n.Status = state.Pending
		}
	}
}

func (m *model) Manifest(ctx context.Context, key state.NodeKey) ([]state.Part, error) {
	return m.partsOf(ctx, key, func(p state.Part) bool { return p.Side == "" })
}

func (m *model) SideParts(ctx context.Context, key state.NodeKey) ([]state.Part, error) {
	return m.partsOf(ctx, key, func(p state.Part) bool { return p.Side != "" })
}

func (m *model) partsOf(ctx context.Context, key state.NodeKey, wanted func(state.Part) bool) ([]state.Part, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	_, n, err := m.node(key)
	if err != nil {
		return nil, err
	}
	var all []state.Part
	for i := range n.batches {
		for _, p := range n.parts[i] {
			if wanted(p) {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

func (m *model) Checks(ctx context.Context, key state.RunKey) ([]state.CheckResult, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := m.run(key)
	if err != nil {
		return nil, err
	}
	var all []state.CheckResult
	for _, n := range r.nodes {
		for i := range n.batches {
			all = append(all, n.checks[i]...)
		}
	}
	return all, nil
}

func (m *model) Files(ctx context.Context, key state.RunKey) ([]state.File, error) {
	leave, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := m.run(key)
	if err != nil {
		return nil, err
	}
	var all []state.File
	for _, n := range r.nodes {
		for i := range n.batches {
			all = append(all, n.files[i]...)
		}
	}
	return all, nil
}

func (m *model) Close() error { return nil }
