package pipeline

import (
	"context"
	"slices"

	"thalweg/internal/address"
	"thalweg/internal/fault"
	"thalweg/internal/files"
	"thalweg/internal/plan"
	"thalweg/internal/remote"
	"thalweg/internal/script"
	"thalweg/internal/worker"
)

// fetching is the copying of a node's remote inputs, beside other work. Once
// done has ended, copies and err are set.
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
	urls := remoteInputs(n)
	if len(urls) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.fetches[n.Name]
	if f == nil {
		done, finish := context.WithCancel(context.WithoutCancel(ctx))
		f = &fetching{done: done}
		p.fetches[n.Name] = f
		p.background.Go(func() {
			defer finish()
			f.copies, f.err = p.fetchAll(ctx, n, urls)
		})
	}
	if f.done.Err() == nil {
		return nil, &worker.NotReadyError{Until: f.done}
	}
	delete(p.fetches, n.Name)
	return f.copies, f.err
}

// placeAll says where the input files of a node, and of what is computed inside
// it, are: the copies of the remote ones.
func (p *Pipeline) placeAll(ctx context.Context, n *script.Node, in *plan.Inputs) (err error) {
	for _, t := range []*plan.Table{in.Reader, in.Lookup} {
		if t.Ephemeral() {
			if err := p.placeAll(ctx, t.Node, t.Inner); err != nil {
				return err
			}
		}
	}
	in.Places.Dir = p.cfg.Dir
	in.Places.Copies, err = p.copies(ctx, n)
	return err
}

func (p *Pipeline) fetchAll(ctx context.Context, n *script.Node, urls []string) (map[string]files.Copy, error) {
	p.cfg.Logger.Info("copying remote inputs", "node", n.Name, "files", len(urls))
	wants := make([]remote.Want, len(urls))
	for i, u := range urls {
		wants[i].URL = u
	}
	found, err := p.spool.EnsureAll(ctx, wants)
	if err != nil {
		return nil, err
	}
	copies := map[string]files.Copy{}
	for i, u := range urls {
		copies[u] = files.Copy{Key: remote.Key(u), Path: found[i].Path, Version: found[i].Version}
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
	found, err := x.p.spool.EnsureAll(ctx, wants)
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

// CopiesDir is the directory of a run's copies of remote inputs, in what it
// keeps of remote files.
const CopiesDir = "in"
