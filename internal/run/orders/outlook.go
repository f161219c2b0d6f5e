package orders

import (
	"context"
	"fmt"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Outlook says what an order to a whole run would do.
type Outlook struct {
	Before   state.Status `json:"before"`
	Status   state.Status `json:"status"`    // behind the order; the same: it would change nothing
	InFlight int          `json:"in_flight"` // batches at work: a pause lets them end, a stop does not
	Left     []NodeLeft   `json:"left"`      // nodes that are not done
	Tasks    []RedoStep   `json:"tasks,omitempty"`
}

// NodeLeft is a node that is not done.
type NodeLeft struct {
	Node    string       `json:"node"`
	Status  state.Status `json:"status"`
	Batches int          `json:"batches"` // 0: it is not planned yet
	Done    int          `json:"done"`
}

// Preview says what CommandStop, CommandPause or CommandReopen would do to a run. A stop or a pause of a run that is
// over changes nothing; a run that cannot go on is refused.
func Preview(ctx context.Context, s state.Store, key state.RunKey, kind state.CommandKind) (Outlook, error) {
	run, err := s.Run(ctx, key)
	if err != nil {
		return Outlook{}, fmt.Errorf("read run %d: %w", key.Run, err)
	}
	out := Outlook{Before: run.Status, Status: run.Status, Left: []NodeLeft{}}
	nodes, err := s.Nodes(ctx, key)
	if err != nil {
		return out, fmt.Errorf("read the nodes of run %d: %w", key.Run, err)
	}
	for _, n := range nodes {
		if err := out.see(ctx, s, n); err != nil {
			return out, err
		}
	}
	if kind == state.CommandReopen {
		return out, out.goOn(ctx, s, run)
	}
	if to, ok := (state.Command{Kind: kind}).Leads(run); ok {
		out.Status = to
	}
	return out, nil
}

// see counts what is left of a node.
func (o *Outlook) see(ctx context.Context, s state.Store, n state.Node) error {
	if n.Status != state.Succeeded {
		o.Left = append(o.Left, NodeLeft{Node: n.Name, Status: n.Status, Batches: n.BatchesTotal, Done: n.BatchesDone})
	}
	if n.Status != state.Running && n.Status != state.Paused {
		return nil
	}
	unsettled, err := state.All(ctx, s.Unsettled, n.NodeKey)
	if err != nil {
		return fmt.Errorf("read the batches of %s: %w", n.Name, err)
	}
	for _, b := range unsettled {
		if b.Status == state.Claimed {
			o.InFlight++
		}
	}
	return nil
}

// goOn says what would be done if the run went on.
func (o *Outlook) goOn(ctx context.Context, s state.Store, run state.Run) error {
	kind := state.CommandReopen
	if run.Status == state.Paused {
		kind = state.CommandUnpause
	}
	closed, err := Close(ctx, s, run, RedoSelection{})
	if err != nil {
		return err
	}
	c := state.Command{Kind: kind}
	if len(closed.Redo) > 0 {
		c = state.Command{Kind: state.CommandRedo, Nodes: closed.Redo}
	}
	to, ok := c.Leads(run)
	if !ok {
		return goesNotOn(run)
	}
	o.Status, o.Tasks = to, closed.Tasks
	return nil
}

// goesNotOn says why a run cannot go on.
func goesNotOn(run state.Run) error {
	f := &fault.Error{Kind: fault.Script, Code: fault.Conflict,
		Message: fmt.Sprintf("run %d is %s: there is nothing to resume", run.Run, run.Status),
		Hint:    run.Do("retry", "node", "NODE").String() + " does parts of it again"}
	void := func(m *state.Mark, what string) error {
		f.Message = fmt.Sprintf("run %d was %s by %s: %s", run.Run, what, m.Actor, m.Reason)
		f.Hint = "it does not go on: start a new one"
		return f
	}
	switch {
	case run.Dropped != nil:
		return void(run.Dropped, "dropped")
	case run.Invalidated != nil:
		return void(run.Invalidated, "invalidated")
	}
	return f
}
