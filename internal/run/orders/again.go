package orders

import (
	"context"
	"fmt"
	"slices"
	"time"

	"thalweg/internal/base/action"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// RedoSelection names what of a run is to be done again. What failed, or was left when
// the run ended, is done in any case: without it the run would not complete.
type RedoSelection struct {
	Nodes   []string
	Batches []Batches
	Inside  map[string]string // of ephemeral tables: the node that computes each, by that which declares it
}

// Empty reports whether nothing is wished but that the run goes on.
func (w RedoSelection) Empty() bool { return len(w.Nodes)+len(w.Batches) == 0 }

// Batches of a node: From to To, both included.
type Batches struct {
	Node     string
	From, To int
}

// Reason names the cause of a step. The texts are printed in JSON: they do not change. The texts are printed
// in JSON: they do not change.
type Reason string

// The reasons.
const (
	Asked       Reason = "asked"       // it was named
	Follows     Reason = "follows"     // it checks, in the same node, what is done again
	Reads       Reason = "reads"       // it reads a table that is written again
	Computes    Reason = "computes"    // an ephemeral table that was named is computed in it
	HasFailed   Reason = "failed"      // it has failed, or could not be planned
	Invalidated Reason = "invalidated" // its rows are not to be read
	Left        Reason = "left"        // it was not done when the run ended
)

// RedoStep describes the work at one node, for one reason.
type RedoStep struct {
	Node    string        `json:"node"`
	Why     Reason        `json:"why"`
	Of      string        `json:"of,omitempty"`      // the node that Reads and Computes are about
	Batches []int         `json:"batches,omitempty"` // none: all that there will be, or are left
	Count   int           `json:"count"`             // how many that is, as the node is planned now; 0: it is not
	Total   int           `json:"batches_total"`     // that the node has now
	Replan  bool          `json:"planned_again,omitempty"`
	Rows    int64         `json:"rows"` // that they wrote last time
	Elapsed time.Duration `json:"elapsed_ns"`
	Failure string        `json:"failure,omitempty"`
}

// Again reports whether the task does something again that was done.
func (t RedoStep) Again() bool { return t.Why != HasFailed && t.Why != Left }

// RedoPlan is all that is done when a wish is granted, in the run's order.
type RedoPlan struct {
	Tasks []RedoStep
	// Redo lists the parts that are done although they were done: an order's Nodes. None: the run goes on
	// where it was.
	Redo []state.CommandNode
}

// Close finds what a wish leads to: in the nodes that it names, those of its
// batches, and of those that check them all that come behind them; and every
// node, in whole, that reads a table of which something is written again. Such
// a node is planned again when its tables are there: its plan names parts that
// are no more, and it must not begin before. Nodes that were not planned yet
// will read what is there then.
func Close(ctx context.Context, s state.Store, run state.Run, w RedoSelection) (RedoPlan, error) {
	nodes, err := s.Nodes(ctx, run.RunKey)
	if err != nil {
		return RedoPlan{}, fmt.Errorf("read the nodes of run %d: %w", run.Run, err)
	}
	c := closer{store: s, run: run, nodes: nodes, inside: w.Inside, redo: map[string]*state.CommandNode{},
		why:   map[string]RedoStep{},
		asked: map[string][]int{}}
	for _, name := range w.Nodes {
		if err := c.node(ctx, name); err != nil {
			return RedoPlan{}, err
		}
	}
	for _, b := range w.Batches {
		if err := c.batches(ctx, b); err != nil {
			return RedoPlan{}, err
		}
	}
	for _, n := range nodes {
		if n.Status == state.Invalidated && c.redo[n.Name] == nil {
			c.redo[n.Name], c.why[n.Name] = &state.CommandNode{Node: n.Name, Replan: true}, RedoStep{Why: Invalidated}
		}
	}
	c.readers()
	return c.close(ctx)
}

// closer is one call of Close.
type closer struct {
	store  state.Store
	run    state.Run
	nodes  []state.Node
	inside map[string]string
	redo   map[string]*state.CommandNode // by node
	why    map[string]RedoStep           // likewise: Why and Of
	asked  map[string][]int              // likewise: the batches that were named
}

func (c *closer) find(name string) (state.Node, error) {
	i := slices.IndexFunc(c.nodes, func(n state.Node) bool { return n.Name == name })
	if i < 0 {
		return state.Node{}, &fault.Error{Kind: fault.Script, Code: fault.NotFound,
			Message: fmt.Sprintf("run %d has no node %s", c.run.Run, name),
			Hint:    c.run.Do("nodes").String() + " lists them"}
	}
	n := c.nodes[i]
	if n.PlanDigest == "" {
		return n, &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s of run %d has not been planned yet: there is nothing to do again",
				name, c.run.Run),
			Hint: c.run.Do("resume").String() + " lets the run go on"}
	}
	return n, nil
}

// node wants all of a node to be done again.
func (c *closer) node(ctx context.Context, name string) error {
	n, err := c.find(name)
	if err != nil {
		return err
	}
	why := RedoStep{Why: Asked}
	for inside := c.inside[n.Name]; inside != ""; inside = c.inside[n.Name] {
		if n, err = c.find(inside); err != nil {
			return err
		}
		why = RedoStep{Why: Computes, Of: name}
	}
	// What was taken over is done here, by a plan of its own.
	c.redo[n.Name], c.why[n.Name] = &state.CommandNode{Node: n.Name, Replan: n.ReusedFrom != nil ||
		n.Status == state.Invalidated}, why
	return nil
}

// batches wants some batches of a node to be done again.
func (c *closer) batches(ctx context.Context, b Batches) error {
	n, err := c.find(b.Node)
	switch {
	case err != nil:
		return err
	case n.ReusedFrom != nil:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s of run %d has no batches: its rows are those of run %d", n.Name, c.run.Run,
				n.ReusedFrom.Run),
			Hint: fmt.Sprintf("%s does all of it here; or retry run %d", action.Setting("node", n.Name),
				n.ReusedFrom.Run)}
	case n.BatchesTotal == 0:
		return &fault.Error{Kind: fault.Script, Message: fmt.Sprintf("node %s of run %d has no batches",
			n.Name, c.run.Run),
			Hint: action.Setting("node", n.Name) + " does what computes it again"}
	case b.From < 0 || b.To < b.From || b.To >= n.BatchesTotal:
		return &fault.Error{Kind: fault.Script,
			Message: fmt.Sprintf("node %s of run %d has no batches %d to %d: it has %d",
				n.Name, c.run.Run, b.From, b.To, n.BatchesTotal),
			Hint: fmt.Sprintf("they are numbered from 0 to %d", n.BatchesTotal-1)}
	}
	redo := c.redo[n.Name]
	switch {
	case redo == nil:
		redo = &state.CommandNode{Node: n.Name}
		c.redo[n.Name], c.why[n.Name] = redo, RedoStep{Why: Asked}
	case len(redo.Batches) == 0:
		return nil // all of it is done again
	}
	for i := b.From; i <= b.To; i++ {
		redo.Batches = append(redo.Batches, i)
		c.asked[n.Name] = append(c.asked[n.Name], i)
	}
	redo.Batches, c.asked[n.Name] = sorted(redo.Batches), sorted(c.asked[n.Name])
	return c.follow(ctx, n, redo)
}

// follow adds the batches of later phases than the first that is done again:
// they look at what those of earlier phases have written.
func (c *closer) follow(ctx context.Context, n state.Node, redo *state.CommandNode) error {
	specs, err := state.All(ctx, c.store.Specs, n.NodeKey)
	if err != nil {
		return fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	first := -1
	for _, spec := range specs {
		if among(redo.Batches, spec.Batch) && (first < 0 || spec.Phase < first) {
			first = spec.Phase
		}
	}
	for _, spec := range specs {
		if spec.Phase > first {
			redo.Batches = append(redo.Batches, spec.Batch)
		}
	}
	redo.Batches = sorted(redo.Batches)
	return nil
}

// sorted puts the numbers of batches in order, each once: among looks for them.
func sorted(batches []int) []int {
	slices.Sort(batches)
	return slices.Compact(batches)
}

func among(sorted []int, batch int) bool {
	_, ok := slices.BinarySearch(sorted, batch)
	return ok
}

// readers adds every node that reads, itself or through others, what is done again.
func (c *closer) readers() {
	for changed := true; changed; {
		changed = false
		for _, n := range c.nodes {
			i := slices.IndexFunc(n.Inputs, func(in string) bool { return c.redo[in] != nil })
			before := c.redo[n.Name]
			if i < 0 || before != nil && before.Replan || !begun(n) {
				continue
			}
			if before == nil {
				c.why[n.Name] = RedoStep{Why: Reads, Of: n.Inputs[i]}
			}
			c.redo[n.Name], changed = &state.CommandNode{Node: n.Name, Replan: true}, true
		}
	}
}

// begun reports whether something of a node may have come of tables that it reads.
func begun(n state.Node) bool {
	return n.PlanDigest != "" || n.Decision != nil || n.Status != state.Pending && n.Status != state.Stopped
}

// close says what is done, and why.
func (c *closer) close(ctx context.Context) (out RedoPlan, err error) {
	for _, n := range c.nodes {
		var some []RedoStep
		if redo := c.redo[n.Name]; redo != nil {
			out.Redo = append(out.Redo, *redo)
			some, err = c.again(ctx, n, *redo)
		} else if n.Status != state.Succeeded {
			some, err = c.left(ctx, n)
		}
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, some...)
	}
	return out, nil
}

// again are the tasks of a node that is named in the order.
func (c *closer) again(ctx context.Context, n state.Node, redo state.CommandNode) ([]RedoStep, error) {
	t := c.why[n.Name]
	t.Node, t.Count, t.Total, t.Replan = n.Name, n.BatchesTotal, n.BatchesTotal, redo.Replan
	if len(redo.Batches) == 0 {
		tally, err := c.store.Tally(ctx, n.NodeKey)
		if err != nil {
			return nil, fmt.Errorf("read what %s measured: %w", n.Name, err)
		}
		t.Rows, t.Elapsed = n.RowsOut, tally.Stats.Elapsed
		return []RedoStep{t}, nil
	}
	batches, err := state.All(ctx, c.store.Batches, n.NodeKey)
	if err != nil {
		return nil, fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	t.Count = 0
	asked, follows := t, t
	follows.Why = Follows
	for _, b := range batches {
		to := &asked
		switch {
		case !among(redo.Batches, b.BatchKey.Batch):
			continue
		case !among(c.asked[n.Name], b.BatchKey.Batch):
			to = &follows
		}
		to.Batches = append(to.Batches, b.BatchKey.Batch)
		to.Count++
		to.Rows += b.Stats.RowsOut
		to.Elapsed += b.Stats.Elapsed
	}
	tasks := []RedoStep{asked}
	if len(follows.Batches) > 0 {
		tasks = append(tasks, follows)
	}
	return tasks, nil
}

// left are the tasks of a node that is not done and not named.
func (c *closer) left(ctx context.Context, n state.Node) ([]RedoStep, error) {
	unsettled, err := state.All(ctx, c.store.Unsettled, n.NodeKey)
	if err != nil {
		return nil, fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	failed := RedoStep{Node: n.Name, Why: HasFailed, Total: n.BatchesTotal}
	if n.Failure != nil {
		failed.Failure = n.Failure.Message
	}
	for _, b := range unsettled {
		if b.Status != state.Failed {
			continue
		}
		failed.Batches = append(failed.Batches, b.BatchKey.Batch)
		failed.Count++
		failed.Elapsed += b.Stats.Elapsed
		if b.Failure != nil && failed.Failure == "" {
			failed.Failure = b.Failure.Message
		}
	}
	var out []RedoStep
	if len(failed.Batches) > 0 || n.Status == state.Failed {
		out = append(out, failed)
	}
	if rest := n.BatchesTotal - n.BatchesDone - len(failed.Batches); rest > 0 || n.PlanDigest == "" &&
		n.Status != state.Failed {
		out = append(out, RedoStep{Node: n.Name, Why: Left, Count: rest, Total: n.BatchesTotal})
	}
	return out, nil
}

// Failed reports whether something of the closure has failed before.
func (c RedoPlan) Failed() bool {
	return slices.ContainsFunc(c.Tasks, func(t RedoStep) bool { return t.Why == HasFailed })
}

// Redoes reports whether something of a node is done again that was done.
func (c RedoPlan) Redoes(node string) bool {
	return slices.ContainsFunc(c.Redo, func(r state.CommandNode) bool { return r.Node == node })
}
