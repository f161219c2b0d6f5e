package pipeline

import (
	"context"
	"fmt"
	"slices"

	"thalweg/internal/files"
	"thalweg/internal/plan"
	"thalweg/internal/script"
	"thalweg/internal/state"
)

// plannedInput is how a node of the run was planned to find a file.
type plannedInput struct {
	node  string
	slice files.Slice
}

// slicesOf lists what batches read of files.
func slicesOf(specs []state.BatchSpec) ([]files.Slice, error) {
	var out []files.Slice
	for _, spec := range specs {
		var w plan.Work
		if err := w.Decode(spec); err != nil {
			return nil, err
		}
		out = append(out, slices.Concat(w.FileLists()...)...)
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
// those who still want to read it. Remote files have versions of their own.
func (p *Pipeline) CheckInputs(ctx context.Context) error {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	for _, n := range nodes {
		sn := p.cfg.Script.Node(n.Name)
		if n.PlanDigest == "" || sn == nil || !p.readsFiles(sn) {
			continue
		}
		specs, err := state.All(ctx, p.cfg.Store.Specs, n.NodeKey)
		if err != nil {
			return fmt.Errorf("read the batches of %s: %w", n.Name, err)
		}
		read, err := slicesOf(specs)
		if err != nil {
			return err
		}
		if err := p.noteInputs(n.Name, read); err != nil {
			return err
		}
		read = slices.DeleteFunc(read, func(s files.Slice) bool { return s.Copy != "" || n.Status == state.Succeeded && s.Gone() })
		if err := files.Unchanged(read); err != nil {
			return err
		}
	}
	return nil
}

// readsFiles reports whether batches of a node may read files: its own, or
// those of a node that may be computed inside it.
func (p *Pipeline) readsFiles(n *script.Node) bool {
	if len(n.FileReaders()) > 0 {
		return true
	}
	for _, source := range n.Sources(p.cfg.Script) {
		if p.cfg.Script.NotEphemeral(source) == "" && p.readsFiles(source) {
			return true
		}
	}
	return false
}

// noteInputs remembers how a node was planned to find its files, and refuses
// one that another node of the run was planned to find otherwise.
func (p *Pipeline) noteInputs(node string, read []files.Slice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
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
