package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/run/job"
	"thalweg/internal/run/orders"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// planGate decides a gate: it asks, or it is passed, with what was asked and
// decided as its plan. What is shown is looked at each time, also after the
// decision: one about other tables is void.
func (p *Pipeline) planGate(ctx context.Context, node state.Node) (state.Plan, error) {
	g := p.cfg.Script.Gate(gate.NameOf(node.Name))
	if g == nil {
		return state.Plan{}, fault.New(fault.Script, "the script has no approval %s any more", gate.NameOf(node.Name))
	}
	rec, err := p.asks(ctx, g, node)
	if err != nil {
		return state.Plan{}, err
	}
	if rec.Passed == "" {
		if err := gate.CheckDecision(node, &rec); err != nil {
			return state.Plan{}, err
		}
		if rec.Passed == "" {
			return state.Plan{}, &job.AskError{Record: rec}
		}
	}
	rec.Message = "" // what was asked stays beside the node
	data, err := rec.Encode()
	return state.Plan{Record: data}, err
}

// failedMost are the failed checks that a record names; its digest is of all.
const failedMost = 50

// asks makes the record of what a gate asks now. It is Passed where nobody has
// to be asked.
func (p *Pipeline) asks(ctx context.Context, g *script.Gate, node state.Node) (gate.Record, error) {
	rec := gate.Record{Gate: g.Name, By: g.By, Verified: g.Verified, FourEyes: g.FourEyes, Message: g.Message}
	if g.Timeout > 0 {
		rec.Timeout = g.Timeout.String()
	}
	if g.Writer != nil {
		rec.Table = g.Writer.Table.Name
		failed, err := p.opening(ctx, g, node)
		if err != nil {
			return rec, err
		}
		if rec.Failed = failed; len(failed) == 0 && !g.Always {
			rec.Passed = "no check that would ask has failed"
		}
	}
	guards, err := p.guards(ctx, g)
	if err != nil {
		return rec, err
	}
	for _, n := range guards {
		rec.Guards = append(rec.Guards, n.Name)
	}
	for _, a := range g.Answers {
		rec.Answers = append(rec.Answers, gate.Question{Name: a.Name, Type: a.Type, Default: a.Default,
			Message: a.Message, Min: a.Min, Max: a.Max, OneOf: a.OneOf})
	}
	for _, n := range g.Show {
		shown, err := p.shown(ctx, g, n, node, guards)
		if err != nil {
			return rec, fmt.Errorf("look at what gate %s shows: %w", g.Name, err)
		}
		rec.Shows = append(rec.Shows, shown)
	}
	if err := p.noteShown(ctx, node, rec); err != nil {
		return rec, err
	}
	rec.SetDigest()
	if more := len(rec.Failed) - failedMost; more > 0 {
		rec.Failed, rec.MoreFailed = rec.Failed[:failedMost], more
	}
	return rec, nil
}

// noteShown notes that a gate shows tables of other runs, as nodes note what they
// are about to read: those runs are not dropped while people look at them.
func (p *Pipeline) noteShown(ctx context.Context, node state.Node, rec gate.Record) error {
	var foreign []state.NodeKey
	for _, key := range rec.Reads(p.cfg.Run) {
		if key.RunKey != p.cfg.Run {
			foreign = append(foreign, key)
		}
	}
	err := orders.NoteReads(ctx, p.cfg.Store, node.NodeKey, foreign, time.Now())
	if errors.Is(err, orders.ErrDropping) { // it is looked at again when somebody decides
		return nil
	}
	return err
}

// guards lists the nodes of the run that wait for a gate.
func (p *Pipeline) guards(ctx context.Context, g *script.Gate) ([]state.Node, error) {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	return slices.DeleteFunc(nodes, func(n state.Node) bool { return !slices.Contains(n.Inputs, g.Key()) }), nil
}

// shown describes a table as it is now: the run's own, or the one of another run
// that the nodes behind the gate would read; where none of them does, the node
// that the gate is at.
func (p *Pipeline) shown(ctx context.Context, g *script.Gate, n *script.Node, asks state.Node,
	guards []state.Node) (gate.Shown, error) {
	key := state.NodeKey{RunKey: p.cfg.Run, Node: n.Name}
	if !slices.Contains(asks.Inputs, n.Name) {
		reader := asks
		reader.Name = cmp.Or(g.Front, g.Writer).Name
		for _, guard := range guards {
			if slices.Contains(p.cfg.Script.Node(guard.Name).Sources(p.cfg.Script), n) {
				reader = guard
				break
			}
		}
		var err error
		if key, err = p.source(ctx, n, reader); err != nil {
			return gate.Shown{}, err
		}
	}
	holder, err := p.complete(ctx, key, asks)
	if err != nil {
		return gate.Shown{}, err
	}
	t, err := readTable(ctx, p.cfg.Store, holder)
	if err != nil {
		return gate.Shown{}, err
	}
	s := gate.Shown{Table: n.Table.Name, Node: key.Node, Run: key.Run}
	s.Digest, s.Rows, s.Bytes = gate.TableDigest(t.Parts)
	return s, nil
}

// opening lists the checks of a gate's table that failed and ask for approval.
func (p *Pipeline) opening(ctx context.Context, g *script.Gate, node state.Node) ([]gate.Check, error) {
	if !slices.Contains(node.Inputs, g.Writer.Name) {
		return nil, nil // it was checked in the run that has written it
	}
	writer, err := p.complete(ctx, state.NodeKey{RunKey: p.cfg.Run, Node: g.Writer.Name}, node)
	if err != nil {
		return nil, err
	}
	results, err := state.All(ctx, p.cfg.Store.Checks, writer.NodeKey)
	if err != nil {
		return nil, fmt.Errorf("read the checks of %s: %w", g.Writer.Name, err)
	}
	var out []gate.Check
	for _, r := range results {
		if !r.Passed && r.Severity == script.SeverityApproval {
			out = append(out, gate.Check{Name: r.Name, Failed: r.Failed, Kept: r.Kept, Message: r.Message,
				Table: plan.SideTable(g.Writer, state.SideFailed)})
		}
	}
	return out, nil
}

// passed refuses to plan a node for which a gate was passed that has shown other
// tables than the node would read.
func (p *Pipeline) checkGates(ctx context.Context, n *script.Node, node state.Node, in plan.Inputs) error {
	for _, name := range node.Inputs {
		if !strings.HasPrefix(name, gate.Prefix) {
			continue
		}
		asked, err := p.cfg.Store.Node(ctx, state.NodeKey{RunKey: p.cfg.Run, Node: name})
		if err != nil {
			return fmt.Errorf("read gate %s: %w", gate.NameOf(name), err)
		}
		rec, err := gate.Decode(asked.Plan)
		if err != nil {
			return err
		}
		for _, s := range rec.Shows {
			i := slices.IndexFunc(in.Tables(n), func(t *plan.Table) bool { return t.Node.Table.Name == s.Table })
			if i < 0 {
				continue // it was shown beside what the node reads
			}
			t := in.Tables(n)[i]
			if digest, _, _ := gate.TableDigest(t.Parts); digest != s.Digest {
				return &fault.Error{Kind: fault.Script,
					Message: fmt.Sprintf("it reads table %s of run %d, which is not the one that was shown at gate %s",
						s.Table, t.Run.Run, rec.Gate),
					Hint: fmt.Sprintf("let it be decided again: %s",
						p.cfg.Run.Do("retry", "node", name))}
			}
		}
	}
	return nil
}
