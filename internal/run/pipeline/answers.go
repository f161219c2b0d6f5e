package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"thalweg/internal/base/fault"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// versions are a run's pipelines by the answers that were given: nodes behind a
// gate are planned and executed with the script as it is with its answers.
type versions struct {
	reading sync.Mutex // of a version: one at a time

	by    map[string]*Pipeline // by the answers, as JSON
	nodes map[string]string    // the key in by of a node as it was planned, by name and epoch
}

// behind gives the pipeline of a node: with the answers that were given at the
// gates before it.
func (p *Pipeline) versionFor(ctx context.Context, node string, epoch int64) (*Pipeline, error) {
	if len(p.cfg.Script.Answers()) == 0 {
		return p, nil
	}
	as := fmt.Sprint(epoch, " ", node)
	p.mu.Lock()
	key, known := p.versions.nodes[as]
	v := p.versions.by[key]
	p.mu.Unlock()
	if known {
		return v, nil
	}
	answers, err := p.answersBefore(ctx, node)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(answers) // a map's keys are in order
	if err != nil {
		return nil, fmt.Errorf("write the answers before node %s: %w", node, err)
	}
	if v, err = p.version(ctx, string(data), answers); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.versions.nodes[as] = string(data)
	p.mu.Unlock()
	return v, nil
}

// version gives the pipeline with those answers.
func (p *Pipeline) version(ctx context.Context, key string, answers map[string]string) (*Pipeline, error) {
	p.versions.reading.Lock()
	defer p.versions.reading.Unlock()
	p.mu.Lock()
	v := p.versions.by[key]
	p.mu.Unlock()
	switch {
	case v != nil:
		return v, nil
	case len(answers) == 0:
		v = p
	case p.cfg.Answered == nil:
		return nil, fault.New(fault.Bug, "run %d has answers, and nothing to read its script with", p.cfg.Run.Run)
	default:
		s, err := p.cfg.Answered(ctx, answers)
		if err != nil {
			return nil, fmt.Errorf("read the script of run %d with the answers that were given: %w", p.cfg.Run.Run, err)
		}
		v = p.with(s)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions.by[key] = v
	return v, nil
}

// with is the same pipeline for another version of the script. Tables belong to
// a version: they know the nodes that write them.
func (p *Pipeline) with(s *script.Script) *Pipeline {
	v := &Pipeline{cfg: p.cfg, common: p.common, tables: map[state.NodeKey]*seenTable{},
		policies: map[string]decision{}}
	v.cfg.Script = s
	planner := *p.planner
	planner.Script = s
	v.planner = &planner
	return v
}

// answersBefore collects what was answered at the gates that a node has waited
// for, directly or because of what it reads.
func (p *Pipeline) answersBefore(ctx context.Context, node string) (map[string]string, error) {
	nodes, err := p.cfg.Store.Nodes(ctx, p.cfg.Run)
	if err != nil {
		return nil, fmt.Errorf("read the nodes of run %d: %w", p.cfg.Run.Run, err)
	}
	of := map[string]state.Node{}
	for _, n := range nodes {
		of[n.Name] = n
	}
	answers, seen := map[string]string{}, map[string]bool{}
	for next := []string{node}; len(next) > 0; {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		n, known := of[name]
		if seen[name] || !known {
			continue
		}
		seen[name] = true
		next = append(next, n.Inputs...)
		if name == node || !gate.Is(n.NodeSpec) || n.Decision == nil || !n.Decision.Approved {
			continue
		}
		given, err := gate.Answers(*n.Decision)
		if err != nil {
			return nil, err
		}
		maps.Copy(answers, given)
	}
	return answers, nil
}
