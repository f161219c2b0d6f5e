package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"thalweg/internal/base/address"
	"thalweg/internal/io/files"
	"thalweg/internal/io/remote"
	"thalweg/internal/run/plan"
	"thalweg/internal/store/state"
)

// plannedInput is a file as a node of the run was planned with it.
type plannedInput struct {
	node  string
	slice files.Slice
}

// slicesOf lists what batches read of files: of unpacked copies, the files themselves.
func (p *Pipeline) slicesOf(specs []state.BatchSpec) ([]files.Slice, error) {
	var out []files.Slice
	for _, spec := range specs {
		var w plan.Work
		if err := w.Decode(spec); err != nil {
			return nil, err
		}
		for _, s := range slices.Concat(w.FileLists()...) {
			source, err := p.sourceOf(s)
			if err != nil {
				return nil, err
			}
			out = append(out, source)
		}
	}
	return out, nil
}

// inputFiles lists the files behind slices, each once.
func inputFiles(read []files.Slice) []state.Input {
	var out []state.Input
	seen := map[string]bool{}
	for _, s := range read {
		if seen[s.URL] {
			continue
		}
		seen[s.URL] = true
		in := state.Input{Address: s.URL, Bytes: s.FileBytes, Time: s.ModTime, Digest: s.Digest, Rows: -1}
		if s.Copy != "" {
			in.Digest = s.Version
		}
		out = append(out, in)
	}
	return out
}

// CheckInputs refuses to go on with a run whose input files are not what its
// nodes were planned with: also those of nodes that are done, whose rows would
// not belong to what is read from now on. A file that is gone concerns only
// those who still want to read it, or will do so again. Remote files have
// versions of their own.
func (p *Pipeline) CheckInputs(ctx context.Context, again func(node string) bool) error {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	for _, n := range nodes {
		read, err := p.recordedInputs(ctx, n)
		if err != nil {
			return err
		}
		read = slices.DeleteFunc(read, func(s files.Slice) bool {
			return n.Status == state.Succeeded && !again(n.Name) &&
				s.Gone()
		})
		if err := files.Unchanged(read); err != nil {
			return err
		}
	}
	return nil
}

// recallInputs notes the files of nodes that other processes have planned.
func (p *Pipeline) recallInputs(ctx context.Context) error {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	for _, n := range nodes {
		p.mu.Lock()
		noted := p.inputsNoted[n.Name]
		p.mu.Unlock()
		if n.PlanDigest == "" || noted {
			continue
		}
		if _, err := p.recordedInputs(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// oneState refuses input files of a node that another node of the run was
// planned to find otherwise. Two that are planned at the same moment cannot see
// each other's plan; the one that settles last sees both.
func (p *Pipeline) oneState(ctx context.Context, node state.Node) error {
	inputs, err := state.All(ctx, p.cfg.Store.Inputs, node.NodeKey)
	if err != nil {
		return fmt.Errorf("read the input files of %s: %w", node.Name, err)
	}
	mine := map[string]string{}
	for _, in := range inputs {
		if address.Remote(in.Address) {
			mine[in.Address] = in.Digest
		}
	}
	if len(inputs) > len(mine) {
		if err := p.recallInputs(ctx); err != nil {
			return err
		}
	}
	if len(mine) == 0 {
		return nil
	}
	return p.eachRemote(ctx, func(in state.Input) error {
		if version, ok := mine[in.Address]; ok {
			return remote.OneVersion(in.Address, in.Digest, version)
		}
		return nil
	})
}

// recordedInputs gives the local files that a node was planned to read, and notes them.
func (p *Pipeline) recordedInputs(ctx context.Context, n state.Node) ([]files.Slice, error) {
	read, err := LocalInputs(ctx, p.cfg.Store, p.cfg.Dir, n.NodeKey)
	if err != nil {
		return nil, err
	}
	return read, p.noteInputs(n.Name, read)
}

// LocalInputs lists the files of this machine that a node was planned to read,
// as they were then, with relative names seen from dir.
func LocalInputs(ctx context.Context, store state.Store, dir string, key state.NodeKey) ([]files.Slice, error) {
	inputs, err := state.All(ctx, store.Inputs, key)
	if err != nil {
		return nil, fmt.Errorf("read the input files of %s: %w", key.Node, err)
	}
	read, err := localSlices(dir, inputs)
	if err != nil {
		return nil, fmt.Errorf("find the input files of %s: %w", key.Node, err)
	}
	return read, nil
}

// localSlices gives recorded inputs, those of this machine, as slices of whole files.
func localSlices(dir string, inputs []state.Input) ([]files.Slice, error) {
	var read []files.Slice
	for _, in := range inputs {
		if address.Remote(in.Address) || strings.Contains(in.Address, address.Mask) {
			// a secret was taken out of the name
			continue
		}
		path, err := files.PathOf(files.Places{Dir: dir}, in.Address)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		read = append(read, files.Slice{Path: path, URL: in.Address, FileBytes: in.Bytes, ModTime: in.Time,
			Digest: in.Digest})
	}
	return read, nil
}

// noteInputs remembers how a node was planned to find its files, and refuses
// one that another node of the run was planned to find otherwise.
func (p *Pipeline) noteInputs(node string, read []files.Slice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inputsNoted[node] = true
	for _, s := range read {
		if s.Copy != "" {
			continue // one copy of one version serves the whole run
		}
		if before, ok := p.inputsSeen[s.Path]; ok && !s.SameFile(before.slice) {
			return s.ChangedSince(before.node, before.slice)
		}
		p.inputsSeen[s.Path] = plannedInput{node: node, slice: s}
	}
	return nil
}
