package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"thalweg/internal/address"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/plan"
	"thalweg/internal/remote"
	"thalweg/internal/script"
	"thalweg/internal/state"
	"thalweg/internal/worker"
)

// fetching is the copying of a node's remote inputs, or the look at them, beside
// other work. Once done has ended, copies and err are set.
type fetching struct {
	done   context.Context
	copies map[string]files.Copy
	err    error
}

// remoteInputs lists the remote files that a node reads.
func remoteInputs(n *script.Node) []string {
	var urls []string
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			if address.Remote(u.URL) && !slices.Contains(urls, u.URL) {
				urls = append(urls, u.URL)
			}
		}
	}
	return urls
}

// copies gives the copies of a node's remote inputs, or says that they are on
// their way. ctx must live as long as the run is worked on.
func (p *Pipeline) copies(ctx context.Context, n *script.Node) (map[string]files.Copy, error) {
	f, err := p.beside(ctx, p.fetches, n, p.fetchAll)
	if f == nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.fetches, n.Name)
	delete(p.looks, n.Name)
	return f.copies, f.err
}

// seen says of a node's remote inputs what their servers do, likewise. That they
// cannot be asked is said when they are copied.
func (p *Pipeline) seen(ctx context.Context, n *script.Node) (map[string]files.Copy, error) {
	f, err := p.beside(ctx, p.looks, n, p.lookAll)
	if f == nil || f.err != nil {
		return nil, err
	}
	return f.copies, nil
}

// beside has something done for a node's remote inputs, once; nil if it has none,
// or not yet.
func (p *Pipeline) beside(ctx context.Context, known map[string]*fetching, n *script.Node, do func(context.Context, *script.Node, []string) (map[string]files.Copy, error)) (*fetching, error) {
	urls := remoteInputs(n)
	if len(urls) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := known[n.Name]
	if f == nil {
		done, finish := context.WithCancel(context.WithoutCancel(ctx))
		f = &fetching{done: done}
		known[n.Name] = f
		p.background.Go(func() {
			defer finish()
			f.copies, f.err = do(ctx, n, urls)
		})
	}
	if f.done.Err() == nil {
		return nil, &worker.NotReadyError{Until: f.done}
	}
	return f, nil
}

// placeAll says where the input files of a node, and of what is computed inside
// it, are: what copies says of the remote ones.
func (p *Pipeline) placeAll(ctx context.Context, n *script.Node, in *plan.Inputs, copies func(context.Context, *script.Node) (map[string]files.Copy, error)) (err error) {
	for _, t := range []*plan.Table{in.Reader, in.Lookup} {
		if t.Ephemeral() {
			if err := p.placeAll(ctx, t.Node, t.Inner, copies); err != nil {
				return err
			}
		}
	}
	in.Places.Dir = p.cfg.Dir
	in.Places.Copies, err = copies(ctx, n)
	return err
}

// takeOverUncopied is takeOver before remote inputs are copied: by what their
// servers say of them.
func (p *Pipeline) takeOverUncopied(ctx context.Context, n *script.Node, node state.Node, in plan.Inputs) (state.Plan, bool, error) {
	if !p.mayTakeOver(node) || len(remoteInputs(n)) == 0 {
		return state.Plan{}, false, nil
	}
	if err := p.placeAll(ctx, n, &in, p.seen); err != nil || in.Places.Copies == nil {
		return state.Plan{}, false, err
	}
	id, err := p.identify(ctx, n, in)
	if err != nil {
		return state.Plan{}, false, err
	}
	return p.takeOver(ctx, n, node, in, id)
}

func (p *Pipeline) lookAll(ctx context.Context, _ *script.Node, urls []string) (map[string]files.Copy, error) {
	planned, err := p.plannedVersions(ctx)
	if err != nil {
		return nil, err
	}
	found, err := p.spool.Look(ctx, urls)
	if err != nil {
		return nil, err
	}
	copies := map[string]files.Copy{}
	for i, u := range urls {
		v := found[i]
		if before := planned[address.Redact(u)]; before != "" && remote.StrongTag(before) != v.StrongTag() {
			return nil, nil // copying it says that it has changed
		}
		copies[u] = files.Copy{Key: remote.Key(u), Bytes: v.Bytes, Tag: v.StrongTag()}
	}
	return copies, nil
}

// plannedVersions says of which versions the remote inputs are that nodes of the
// run were planned to read, by their addresses: a run reads one of each.
func (p *Pipeline) plannedVersions(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := p.eachRemote(ctx, func(in state.Input) error {
		out[in.Address] = in.Digest
		return nil
	})
	return out, err
}

// eachRemote calls do for the remote inputs that nodes of the run were planned
// to read, but for those from whose address a secret was taken out.
func (p *Pipeline) eachRemote(ctx context.Context, do func(state.Input) error) error {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	for _, n := range nodes {
		if n.PlanDigest == "" {
			continue
		}
		inputs, err := state.All(ctx, p.cfg.Store.Inputs, n.NodeKey)
		if err != nil {
			return fmt.Errorf("read the input files of %s: %w", n.Name, err)
		}
		for _, in := range inputs {
			if !address.Remote(in.Address) || strings.Contains(in.Address, address.Mask) {
				continue
			}
			if err := do(in); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Pipeline) fetchAll(ctx context.Context, n *script.Node, urls []string) (map[string]files.Copy, error) {
	planned, err := p.plannedVersions(ctx)
	if err != nil {
		return nil, err
	}
	p.cfg.Logger.Info("copying remote inputs", "node", n.Name, "files", len(urls))
	wants := make([]remote.Want, len(urls))
	for i, u := range urls {
		wants[i] = remote.Want{URL: u, Version: planned[address.Redact(u)]}
	}
	found, err := p.spool.EnsureAll(ctx, wants)
	if err != nil {
		return nil, err
	}
	copies := map[string]files.Copy{}
	for i, u := range urls {
		copies[u] = files.Copy{Key: remote.Key(u), Path: found[i].Path, Version: found[i].Version, Tag: remote.StrongTag(found[i].Version)}
	}
	return copies, nil
}

// Close waits for copying that goes on: the end of the run's context ends it.
func (p *Pipeline) Close() { p.background.Wait() }

// locate finds the copies that the batch's slices are of, in this process.
func (x *attempt) locate(ctx context.Context) error {
	urls := map[string]string{}
	x.batch.Work.Each(x.node, func(n *script.Node, _ *plan.Work) {
		for _, u := range remoteInputs(n) {
			urls[remote.Key(u)] = u
		}
	})
	var wants []remote.Want
	at := map[string]int{}
	lists := x.batch.Work.FileLists()
	for _, s := range slices.Concat(lists...) {
		if _, have := at[s.Copy]; s.Copy == "" || have {
			continue
		}
		if urls[s.Copy] == "" {
			return fault.New(fault.Script, "the script does not read %s any more", s.URL)
		}
		at[s.Copy] = len(wants)
		wants = append(wants, remote.Want{URL: urls[s.Copy], Version: s.Version})
	}
	found, err := x.p.EnsureAll(ctx, wants)
	if err != nil {
		return err
	}
	for _, list := range lists {
		for i, s := range list {
			if s.Copy == "" {
				continue
			}
			if list[i], err = s.At(found[at[s.Copy]].Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// EnsureAll gives copies of remote files that the run reads. It implements
// Copier, for those who execute its batches in other processes.
func (p *Pipeline) EnsureAll(ctx context.Context, wants []remote.Want) ([]remote.Copy, error) {
	if p.cfg.Copies != nil {
		return p.cfg.Copies.EnsureAll(ctx, wants)
	}
	return p.spool.EnsureAll(ctx, wants)
}

// CopiesDir is the directory of a run's copies of remote inputs, in what it
// keeps of remote files.
const CopiesDir = "in"
