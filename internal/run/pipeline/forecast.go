package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/plan"
	"thalweg/internal/run/reuse"
	"thalweg/internal/store/state"
)

// foreseeRunsMax limits the runs that are searched for one to compare with.
const foreseeRunsMax = 100

// Forecast says whether a run that began now would take a node's rows over.
type Forecast struct {
	From *state.NodeKey // whose rows it would take over; nil: it would be computed
	Why  string         // why it would be
}

// Forecast says of each of these nodes whether a run of them would take it over,
// and if not, why: the first difference to the latest run of the script that
// has completed the node. It plans nothing, and copies no remote file.
func (p *Pipeline) Forecast(ctx context.Context, nodes []*script.Node) (map[*script.Node]Forecast, error) {
	f := &forecaster{Pipeline: p, nodes: nodes, tables: map[*script.Node]*plan.Table{}}
	out := map[*script.Node]Forecast{}
	for _, n := range p.cfg.Script.Topological() {
		if !slices.Contains(nodes, n) {
			continue
		}
		one, err := f.node(ctx, n)
		if err != nil {
			return nil, err
		}
		out[n] = one
	}
	return out, nil
}

// forecaster knows the tables that would be taken over; those of nodes that would
// be computed are not among them.
type forecaster struct {
	*Pipeline
	nodes  []*script.Node // of the run: what else is read is of earlier ones
	tables map[*script.Node]*plan.Table
}

func (f *forecaster) node(ctx context.Context, n *script.Node) (Forecast, error) {
	in := plan.Inputs{Named: map[string]*plan.Table{}, Places: files.Places{Dir: f.cfg.Dir, Policy: f.cfg.Remote.Policy()}}
	for _, source := range n.Sources(f.cfg.Script) {
		if !slices.Contains(f.nodes, source) {
			t, err := f.table(ctx, source, state.Node{NodeKey: state.NodeKey{RunKey: f.cfg.Run, Node: n.Name},
				NodeSpec: state.NodeSpec{Name: n.Name}})
			if why := new(fault.Error); errors.As(err, &why) {
				return Forecast{Why: why.Message}, nil
			}
			if err != nil {
				return Forecast{}, err
			}
			f.tables[source] = t
		}
		if f.tables[source] == nil {
			return Forecast{Why: "it reads table " + source.Table.Name + ", which is computed"}, nil
		}
	}
	if n.Reader != nil {
		var tables []*plan.Table
		for _, source := range n.Reader.Creators {
			tables = append(tables, f.tables[source])
		}
		in.Reader = plan.Together(n.Reader.Fields(), tables)
	}
	if n.Lookup != nil {
		in.Lookup = f.tables[n.Lookup.Index.Node]
	}
	for _, source := range n.Named() {
		in.Named[source.Table.Name] = f.tables[source]
	}
	if n.Table != nil && f.planner.Ephemeral(n) {
		f.tables[n] = &plan.Table{Node: n, Inner: &in}
		return Forecast{Why: "its table is not stored"}, nil
	}
	if at := remoteInput(n); at != "" {
		return Forecast{Why: "whether its inputs " + address.Where(at) + " are the same is seen when a run begins"}, nil
	}
	if slices.Contains(f.cfg.Chosen, n.Name) {
		return Forecast{Why: "named"}, nil
	}
	id, err := f.identify(ctx, n, in)
	if err != nil || id.Why != "" {
		return Forecast{Why: id.Why}, err
	}
	origin, err := f.findSame(ctx, id.Digest(), f.whole)
	if err != nil {
		return Forecast{}, err
	}
	if origin == nil {
		why, err := f.differs(ctx, n, id)
		return Forecast{Why: why}, err
	}
	if n.Table != nil {
		t, err := readTable(ctx, f.cfg.Store, *origin)
		if err != nil {
			return Forecast{}, err
		}
		t.Node = n
		f.tables[n] = t
	}
	return Forecast{From: &origin.NodeKey}, nil
}

// differs says what has changed since the latest run of the script in which the
// node completed.
func (f *forecaster) differs(ctx context.Context, n *script.Node, id reuse.Identity) (string, error) {
	runs, _, err := f.cfg.Store.Runs(ctx, f.cfg.Run.Workspace, state.Page{Limit: foreseeRunsMax})
	if err != nil {
		return "", fmt.Errorf("look for a run of %s: %w", n.Name, err)
	}
	for _, r := range runs {
		if brief, ok := r.Brief(n.Name); !ok || brief.Status != state.Succeeded || f.cfg.Identify(r) != f.cfg.Identity {
			continue
		}
		node, err := f.cfg.Store.Node(ctx, state.NodeKey{RunKey: r.RunKey, Node: n.Name})
		if err != nil {
			return "", fmt.Errorf("read node %s of run %d: %w", n.Name, r.Run, err)
		}
		np, err := plan.DecodeNodePlan(node.Plan)
		if err != nil {
			return "", err
		}
		was, err := reuse.Decode(np.Follows)
		if err != nil {
			return "", err
		}
		return f.difference(ctx, n, node, id, was)
	}
	return "no run of the script has completed it", nil
}

func (f *forecaster) difference(ctx context.Context, n *script.Node, node state.Node, id,
	was reuse.Identity) (string, error) {
	switch name := id.Differs(was); {
	case len(was.Parts) == 0:
		return fmt.Sprintf("run %d did not record what its rows follow from", node.Run), nil
	case was.Why != "":
		return fmt.Sprintf("run %d cannot be taken over: %s", node.Run, was.Why), nil
	case name == reuse.PartFiles:
		file, err := f.changedFile(ctx, n, node)
		return fmt.Sprintf("%s since run %d", file, node.Run), err
	case name != "":
		return fmt.Sprintf("since run %d, %s has changed", node.Run, name), nil
	}
	return fmt.Sprintf("what it wrote in run %d is not there any more as it was written", node.Run), nil
}

// changedFile names the first input file that is not what a node was planned with.
func (f *forecaster) changedFile(ctx context.Context, n *script.Node, node state.Node) (string, error) {
	inputs, err := state.All(ctx, f.cfg.Store.Inputs, node.NodeKey)
	if err != nil {
		return "", fmt.Errorf("read the input files of %s: %w", n.Name, err)
	}
	was := map[string]bool{}
	for _, in := range inputs {
		was[in.Address] = true
	}
	for _, r := range n.FileReaders() {
		now, err := files.Identify(ctx, r, files.Places{Dir: f.cfg.Dir, Policy: f.cfg.Remote.Policy()})
		if err != nil {
			return "", err
		}
		for _, file := range now {
			if !was[file.URL] {
				return "input file " + file.URL + " is new", nil
			}
			delete(was, file.URL)
		}
	}
	for _, in := range inputs {
		if was[in.Address] {
			return "input file " + in.Address + " is not read any more", nil
		}
	}
	read, err := localSlices(f.cfg.Dir, inputs)
	if err != nil {
		return "", err
	}
	var changed *fault.Error
	if err := files.Unchanged(read); errors.As(err, &changed) {
		return "input file " + changed.Place.File + " has changed", nil
	}
	return "an input file has been written again", nil
}
