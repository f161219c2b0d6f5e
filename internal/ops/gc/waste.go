package gc

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/parts"
	"thalweg/internal/store/state"
)

// partsAtOnce is the number of parts that are judged before the first of them is removed.
const partsAtOnce = 1_000

// waste removes parts that no manifest needs, in the order of their keys, which
// is that of runs and nodes. They are seen some at a time before state is asked.
func (c *collector) waste(ctx context.Context) error {
	if err := c.wasteOf(ctx, c.Parts.List, c.Parts.Delete); err != nil {
		return err
	}
	if left := parts.LeavingsOf(c.Parts); left != nil { // by processes that died while they put a part
		return c.wasteOf(ctx, left.Unfinished, left.Abandon)
	}
	return nil
}

// lister gives parts by their keys.
type lister func(ctx context.Context, prefix, after string) iter.Seq2[parts.Info, error]

// remover removes what a lister gave.
type remover func(ctx context.Context, key string) error

func (c *collector) wasteOf(ctx context.Context, list lister, remove remover) error {
	var at judge
	seen := make([]parts.Info, 0, partsAtOnce)
	for info, err := range list(ctx, pipeline.PartsPrefix(c.Workspace), "") {
		if err != nil {
			return fmt.Errorf("list the parts of workspace %s: %w", c.Workspace, err)
		}
		if seen = append(seen, info); len(seen) < partsAtOnce {
			continue
		}
		if err := c.judge(ctx, &at, seen, remove); err != nil {
			return err
		}
		seen = seen[:0]
	}
	return c.judge(ctx, &at, seen, remove)
}

// judge removes those of some parts that nobody needs. What was read before they
// were seen says nothing of them.
func (c *collector) judge(ctx context.Context, at *judge, seen []parts.Info, remove remover) error {
	at.node.loaded = false
	for _, info := range seen {
		if err := c.part(ctx, at, info, remove); err != nil {
			return err
		}
	}
	return nil
}

// part removes a part if nobody needs it.
func (c *collector) part(ctx context.Context, at *judge, info parts.Info, remove remover) error {
	run, dir, batch, attempt, ok := pipeline.PartOf(info.Key)
	if !ok {
		c.report.Unknown.add(info.Bytes)
		return nil
	}
	if err := at.turn(ctx, c, run, dir); err != nil {
		return err
	}
	if !at.node.known {
		c.report.Unknown.add(info.Bytes)
		return nil
	}
	to, err := at.verdict(ctx, c, info.Key, batch, attempt)
	if err != nil || to == nil {
		return err
	}
	to.add(info.Bytes)
	if c.DryRun || to == &c.report.Held || to == &c.report.Unknown {
		return nil
	}
	if err := remove(ctx, info.Key); err != nil {
		return fmt.Errorf("remove part %s: %w", info.Key, err)
	}
	c.Checkpoint(job.PartRemoved)
	return nil
}

// judge says of parts of one node after the other whether they are needed.
type judge struct {
	run struct {
		key   state.RunKey
		nodes map[string]state.NodeKey // by directory
	}
	node struct {
		dir    string
		loaded bool
		known  bool
		state.Node
	}
	// What state says of some batches of the node: the attempts first.
	from, to int
	attempts map[[2]int]state.Attempt // by batch and number
	listed   map[string]bool          // parts that the manifest has
}

// nodesOf lists the nodes of a run; none of one that state does not know.
func (c *collector) nodesOf(ctx context.Context, run state.RunKey) ([]state.Node, error) {
	nodes, err := c.Store.Nodes(ctx, run)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	return nodes, nil
}

// turn reads the node whose parts come now.
func (j *judge) turn(ctx context.Context, c *collector, run state.RunKey, dir string) error {
	if j.node.loaded && j.node.dir == dir {
		return nil
	}
	if j.run.key != run || j.run.nodes[dir] == (state.NodeKey{}) {
		j.run.key, j.run.nodes = run, map[string]state.NodeKey{}
		nodes, err := c.nodesOf(ctx, run)
		if err != nil {
			return err
		}
		for _, n := range nodes {
			j.run.nodes[pipeline.PartsDir(n)] = n.NodeKey
		}
	}
	j.node.dir, j.node.loaded, j.from, j.to = dir, true, 0, 0
	key, known := j.run.nodes[dir]
	if j.node.known = known; !known {
		return nil
	}
	var err error
	if j.node.Node, err = c.Store.Node(ctx, key); err != nil {
		return fmt.Errorf("read node %s of run %d: %w", key.Node, key.Run, err)
	}
	return nil
}

// verdict returns the figure of the report that a part counts for, removed or held; nil: it is needed.
func (j *judge) verdict(ctx context.Context, c *collector, key string, batch, number int) (*Amount, error) {
	n := j.node.Node
	held := c.reads.holds(n.NodeKey)
	if c.dropped[n.Run] && !held && (n.Dropped || c.DryRun) {
		return &c.report.Dropped, nil
	}
	if err := j.read(ctx, c, batch); err != nil {
		return nil, err
	}
	a, known := j.attempts[[2]int{batch, number}]
	switch {
	case j.listed[key] && c.dropped[n.Run]:
		return &c.report.Held, nil
	case j.listed[key]:
		return nil, nil
	case !known:
		return &c.report.Unknown, nil
	case a.Status == state.Claimed && n.Holds(a.Epoch):
		return nil, nil // it may commit
	case a.Status != state.Succeeded:
		return &c.report.Dead, nil
	case c.reads.busy(n.NodeKey):
		return &c.report.Held, nil
	}
	return &c.report.Withdrawn, nil
}

// read reads what state says of a batch and those behind it. An attempt that has
// committed when its status is read is in the manifest that is read after that,
// or was withdrawn.
func (j *judge) read(ctx context.Context, c *collector, batch int) error {
	if j.from <= batch && batch < j.to {
		return nil
	}
	page := state.Page{From: int64(batch), Limit: batchesAtOnce}
	attempts, next, err := c.Store.Attempts(ctx, j.node.NodeKey, page)
	if err != nil {
		return fmt.Errorf("read the attempts at node %s of run %d: %w", j.node.Name, j.node.Run, err)
	}
	listed, nextListed, err := c.Store.Parts(ctx, j.node.NodeKey, page)
	if err != nil {
		return fmt.Errorf("read the manifest of node %s of run %d: %w", j.node.Name, j.node.Run, err)
	}
	j.from, j.to = batch, batch+batchesAtOnce
	for _, n := range []int64{next, nextListed} {
		if n > 0 {
			j.to = min(j.to, int(n))
		}
	}
	j.attempts, j.listed = map[[2]int]state.Attempt{}, map[string]bool{}
	for _, a := range attempts {
		j.attempts[[2]int{a.Batch, a.Attempt}] = a
	}
	for _, p := range listed {
		j.listed[p.Key] = true
	}
	return nil
}

// batchesAtOnce are the batches of a node of which attempts and parts are kept in memory.
const batchesAtOnce = 100
