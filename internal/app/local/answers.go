package local

import (
	"context"
	"fmt"
	"sync"

	"thalweg/internal/lang/script"
)

// remembered reads each file once: what is read again is what it was.
func remembered(read func(context.Context, string) ([]byte, error)) func(context.Context, string) ([]byte, error) {
	var mu sync.Mutex
	kept := map[string][]byte{}
	return func(ctx context.Context, url string) ([]byte, error) {
		mu.Lock()
		text, ok := kept[url]
		mu.Unlock()
		if ok {
			return text, nil
		}
		text, err := read(ctx, url)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		kept[url] = text
		return text, nil
	}
}

// answered gives what reads a run's script again with the answers that were
// given at its gates; nil where it was not read from anywhere.
func (t *tools) answered(j jobOf) func(context.Context, map[string]string) (*script.Script, error) {
	if j.sources == nil {
		return nil
	}
	return func(ctx context.Context, answers map[string]string) (*script.Script, error) {
		src := *j.sources
		src.Answers = answers
		s, diags := script.Load(ctx, src)
		if diags.HasErrors() {
			return nil, &InvalidScriptError{Diagnostics: diags}
		}
		if err := j.script.Differs(s); err != nil {
			return nil, err
		}
		nodes, err := t.store.Nodes(ctx, j.run)
		if err != nil {
			return nil, fmt.Errorf("read the nodes of run %d: %w", j.run.Run, err)
		}
		var mine []*script.Node
		for _, n := range nodes {
			if node := s.Node(n.Name); node != nil {
				mine = append(mine, node)
			}
		}
		return s, t.home.checkFiles(ctx, t.opts.Remote, s, mine)
	}
}
