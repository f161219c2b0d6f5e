package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/address"
	"thalweg/internal/base/fault"
	"thalweg/internal/io/files"
	"thalweg/internal/io/inputcache"
	"thalweg/internal/io/remote"
	"thalweg/internal/lang/expr"
	"thalweg/internal/lang/filespec"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/job"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// fetching is the copying of a node's inputs, or the look at them, beside other work.
// Once done has ended, copies and err are set.
type fetching struct {
	done   context.Context
	copies map[string]files.Copy
	err    error
}

// copied is an input of which batches read a copy.
type cachedInput struct {
	name string // as planning knows it
	want inputcache.Want
}

// key names the copy.
func (c cachedInput) key() string { return c.want.Key() }

// copiedInputs lists the inputs of a node of which copies are read: those of other
// machines, and texts that have to be unpacked.
func (p *Pipeline) copiedInputs(ctx context.Context, n *script.Node) ([]cachedInput, error) {
	p.mu.Lock()
	known, ok := p.copied[n]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	var out []cachedInput
	seen := map[string]bool{}
	for _, r := range n.FileReaders() {
		found, err := p.list(ctx, r)
		if err != nil {
			return nil, err
		}
		urls, err := files.Expand(ctx, files.Places{Dir: p.cfg.Dir, Policy: p.cfg.Remote.Policy(), Listed: found}, r.URLs)
		if err != nil {
			return nil, err
		}
		for _, u := range urls {
			if want, ok := p.wanted(r, u.URL); ok && !seen[u.URL] {
				seen[u.URL] = true
				out = append(out, cachedInput{u.URL, want})
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.copied[n] = out
	return out, nil
}

// list lists what patterns of a reader stand for on servers: all nodes of the run that this
// process plans see the same.
func (p *Pipeline) list(ctx context.Context, r *script.FileReader) (map[string][]string, error) {
	out := map[string][]string{}
	for _, u := range r.URLs {
		if !files.RemotePattern(u.URL) {
			continue
		}
		p.mu.Lock()
		found, ok := p.listed[u.URL]
		p.mu.Unlock()
		if !ok {
			var err error
			if found, err = p.store.List(ctx, u.URL); err != nil {
				return nil, err
			}
			p.mu.Lock()
			if p.listed == nil {
				p.listed = map[string][]string{}
			}
			if before, ok := p.listed[u.URL]; ok {
				found = before
			}
			p.listed[u.URL] = found
			p.mu.Unlock()
		}
		out[u.URL] = found
	}
	return out, nil
}

// listedBefore returns the files that list has found for a node.
func (p *Pipeline) listedBefore(n *script.Node) map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string][]string{}
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			if found, ok := p.listed[u.URL]; ok {
				out[u.URL] = found
			}
		}
	}
	return out
}

// copiesSome says whether a node has inputs of which copies are read, without a listing.
func (p *Pipeline) copiesSome(ctx context.Context, n *script.Node) (bool, error) {
	if listsRemote(n) {
		return true, nil
	}
	inputs, err := p.copiedInputs(ctx, n)
	return len(inputs) > 0, err
}

// listsRemote reports whether names of a node stand for several files of servers.
func listsRemote(n *script.Node) bool {
	return slices.ContainsFunc(n.FileReaders(), func(r *script.FileReader) bool {
		return slices.ContainsFunc(r.URLs, func(u script.FileURL) bool { return files.RemotePattern(u.URL) })
	})
}

// places says where the files of the run are, and which may be read.
func (p *Pipeline) places() files.Places {
	return files.Places{Dir: p.cfg.Dir, Policy: p.cfg.Remote.Policy()}
}

// wanted is the copy of a file that is read; none if the file itself is.
func (p *Pipeline) wanted(r *script.FileReader, u string) (w inputcache.Want, ok bool) {
	w = inputcache.Want{URL: u, Text: !r.Parquet, Charset: r.CSV.Charset, Records: r.Records}
	if r.Database() {
		w.URL, w.Table, w.Query, w.Charset = address.DatabaseIn(p.cfg.Dir, u), r.Table, r.Query, filespec.UTF8
		for _, c := range r.Columns {
			if c.Type == expr.DateTime && !c.Short { // short forms refuse what is finer when they read it
				w.Millis = append(w.Millis, c.Header)
			}
		}
		return w, true
	}
	if address.Remote(u) {
		return w, true
	}
	w.Name = u
	var err error
	w.URL, err = files.PathOf(p.places(), u)
	return w, err == nil && files.Packed(r, w.URL) // whoever reads it says what is wrong with it
}

// copies gives the copies of a node's inputs, or says that they are on their way. ctx must live as long as the run is
// worked on.
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

// beside has something done for the inputs of a node that are copied, once; nil if it has none,
// or not yet.
func (p *Pipeline) beside(ctx context.Context, known map[string]*fetching, n *script.Node,
	do func(context.Context, *script.Node, []cachedInput) (map[string]files.Copy, error)) (*fetching, error) {
	if some, err := p.copiesSome(ctx, n); err != nil || !some {
		return nil, err
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
			inputs, err := p.copiedInputs(ctx, n) // which may ask servers
			if err != nil {
				f.err = err
				return
			}
			f.copies, f.err = do(ctx, n, inputs)
		})
	}
	if f.done.Err() == nil {
		return nil, &job.NotReadyError{Until: f.done}
	}
	return f, nil
}

// placeAll says where the input files of a node, and of what is computed inside
// it, are: what copies says of the remote ones.
func (p *Pipeline) placeAll(ctx context.Context, n *script.Node, in *plan.Inputs,
	copies func(context.Context, *script.Node) (map[string]files.Copy, error)) (err error) {
	for _, t := range []*plan.Table{in.Reader, in.Lookup} {
		if t.Ephemeral() {
			if err := p.placeAll(ctx, t.Node, t.Inner, copies); err != nil {
				return err
			}
		}
	}
	in.Places.Dir, in.Places.Policy = p.cfg.Dir, p.cfg.Remote.Policy()
	in.Places.Copies, err = copies(ctx, n)
	in.Places.Listed = p.listedBefore(n)
	return err
}

// takeOverUncopied is takeOver before inputs are copied: by what servers say of theirs.
func (p *Pipeline) takeOverUncopied(ctx context.Context, n *script.Node, node state.Node, in plan.Inputs) (state.Plan,
	bool, error) {
	if !p.mayTakeOver(node) {
		return state.Plan{}, false, nil
	}
	if some, err := p.copiesSome(ctx, n); err != nil || !some {
		return state.Plan{}, false, err
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

func (p *Pipeline) lookAll(ctx context.Context, _ *script.Node, inputs []cachedInput) (map[string]files.Copy, error) {
	planned, err := p.plannedVersions(ctx)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(inputs, func(c cachedInput) bool { return address.Database(c.name) }) {
		return nil, nil // which state a table is in is known by its rows alone
	}
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(c cachedInput) bool { return !address.Remote(c.name) })
	urls := make([]string, len(inputs))
	for i, c := range inputs {
		urls[i] = c.name
	}
	found, err := p.store.Look(ctx, urls)
	if err != nil {
		return nil, err
	}
	out := map[string]files.Copy{}
	for i, u := range urls {
		v := found[i]
		if before := planned[address.Redact(u)]; before != "" && remote.StrongTag(before) != v.StrongTag() {
			return nil, nil // copying it says that it has changed
		}
		out[u] = files.Copy{Key: inputs[i].key(), Bytes: v.Bytes, Tag: v.StrongTag()}
	}
	return out, nil
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

func (p *Pipeline) fetchAll(ctx context.Context, n *script.Node, inputs []cachedInput) (map[string]files.Copy, error) {
	planned, err := p.plannedVersions(ctx)
	if err != nil {
		return nil, err
	}
	p.cfg.Logger.Info("copying inputs", "node", n.Name, "files", len(inputs))
	wants := make([]inputcache.Want, len(inputs))
	for i, c := range inputs {
		wants[i] = c.want
		if address.Remote(c.name) {
			wants[i].Version = planned[address.Redact(c.name)]
		}
	}
	defer p.tellCopying(n, wants)()
	found, err := p.store.EnsureAll(ctx, append(wants, p.together(ctx, n, inputs)...))
	if err != nil {
		return nil, err
	}
	out := map[string]files.Copy{}
	for i, c := range inputs {
		copied := files.Copy{Key: c.key(), Path: found[i].Path, Version: found[i].Version}
		if address.Remote(c.name) {
			copied.Tag = remote.StrongTag(found[i].Version)
		}
		if address.Database(c.name) {
			copied.Tag = remote.SumOf(found[i].Version)
		}
		out[c.name] = copied
	}
	return out, nil
}

// together lists what other nodes of the run read of the databases that n reads: it is copied
// with what n reads, so that all of it is of one moment.
func (p *Pipeline) together(ctx context.Context, n *script.Node, inputs []cachedInput) []inputcache.Want {
	databases := map[string]bool{}
	for _, c := range inputs {
		if address.Database(c.name) {
			at, _, _ := strings.Cut(c.name, "#")
			databases[at] = true
		}
	}
	if len(databases) == 0 {
		return nil
	}
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return nil // whoever needs the state says so
	}
	var out []inputcache.Want
	for _, other := range nodes {
		node := p.cfg.Script.Node(other.Name)
		if other.Name == n.Name || node == nil || other.PlanDigest != "" || listsRemote(node) {
			continue
		}
		theirs, err := p.copiedInputs(ctx, node)
		if err != nil {
			continue // said when that node is planned
		}
		for _, c := range theirs {
			if at, _, _ := strings.Cut(c.name, "#"); address.Database(c.name) && databases[at] {
				c.want.Optional = true
				out = append(out, c.want)
			}
		}
	}
	return out
}

// copyingTold is the interval between two reports of a copy's progress.
const copyingTold = 2 * time.Second

// tellCopying says how the copying of a node's inputs goes until stop is called.
func (p *Pipeline) tellCopying(n *script.Node, wants []inputcache.Want) (stop func()) {
	if p.cfg.Observe == nil {
		return func() {}
	}
	done := make(chan struct{})
	var teller sync.WaitGroup
	teller.Go(func() {
		tick := time.NewTicker(copyingTold)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-tick.C:
				files, bytes := p.store.Progress(wants)
				p.cfg.Observe(job.Event{Run: p.cfg.Run, Time: now, Kind: job.NodeCopying, Node: n.Name,
					Copying: &job.Copying{Files: len(wants), FilesDone: files, Bytes: bytes}})
			}
		}
	})
	return func() {
		close(done)
		teller.Wait()
	}
}

// Close waits for copying that goes on: the end of the run's context ends it.
func (p *Pipeline) Close() { p.background.Wait() }

// locate finds the copies that the batch's slices are of, in this process.
func (x *attempt) locate(ctx context.Context) error {
	named := map[string]inputcache.Want{}
	var err error
	lists := x.batch.Work.FileLists()
	x.batch.Work.Each(x.node, func(n *script.Node, _ *plan.Work) {
		if listsRemote(n) { // what matches now is nothing to what was planned
			for _, r := range n.FileReaders() {
				for _, s := range slices.Concat(lists...) {
					if w, ok := x.p.wanted(r, s.URL); ok {
						named[w.Key()] = w
					}
				}
			}
			return
		}
		inputs, failed := x.p.copiedInputs(ctx, n)
		err = errors.Join(err, failed)
		for _, c := range inputs {
			named[c.key()] = c.want
		}
	})
	if err != nil {
		return err
	}
	var wants []inputcache.Want
	at := map[string]int{}
	for _, s := range slices.Concat(lists...) {
		if _, have := at[s.Copy]; s.Copy == "" || have {
			continue
		}
		w, ok := named[s.Copy]
		if !ok {
			return x.p.noCopy(s)
		}
		w.Version = s.Version
		at[s.Copy] = len(wants)
		wants = append(wants, w)
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

// noCopy says why there is no copy of what a batch was planned to read.
func (p *Pipeline) noCopy(s files.Slice) error {
	if address.Remote(s.URL) {
		return otherInputs(s.URL, "any more")
	}
	source, err := p.sourceOf(s)
	if err != nil {
		return err
	}
	if err := files.Unchanged([]files.Slice{source}); err != nil {
		return err
	}
	return otherInputs(s.URL, "any more as it did")
}

func otherInputs(url, how string) error {
	f := fault.New(fault.Script, "the script does not read %s %s", url, how)
	f.Hint = "the run goes on with the script that it was begun with only: a new run reads what the script says now"
	return f
}

// sourceOf is the file that a slice is of: of a copy of a file of this machine, that file.
func (p *Pipeline) sourceOf(s files.Slice) (files.Slice, error) {
	if s.Copy == "" || address.Remote(s.URL) {
		return s, nil
	}
	stamp, err := files.DecodeStamp(s.Version)
	if err != nil {
		return s, err
	}
	path, err := files.PathOf(p.places(), s.URL)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	return files.Slice{Path: path, URL: s.URL, FileBytes: stamp.Bytes, ModTime: stamp.ModTime,
		Digest: stamp.Digest}, nil
}

// EnsureAll gives copies of inputs that the run reads. It implements Copier, for those who
// execute its batches in other processes.
func (p *Pipeline) EnsureAll(ctx context.Context, wants []inputcache.Want) ([]inputcache.Copy, error) {
	if p.cfg.Copies != nil {
		return p.cfg.Copies.EnsureAll(ctx, wants)
	}
	return p.store.EnsureAll(ctx, wants)
}

// CopiesDir is the directory of a run's copies of inputs, in what it keeps of remote files.
const CopiesDir = "in"

// remoteInput is the first address of a node's inputs that is no file of this machine; "": none.
func remoteInput(n *script.Node) string {
	for _, r := range n.FileReaders() {
		for _, u := range r.URLs {
			if address.Remote(u.URL) {
				return u.URL
			}
		}
	}
	return ""
}
