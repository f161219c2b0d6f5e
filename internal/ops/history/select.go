package history

import (
	"slices"
	"strconv"
	"strings"

	"thalweg/internal/base/fault"
	"thalweg/internal/store/state"
)

// Importance says how many people an event concerns.
type Importance string

// How important events are, from the least.
const (
	Noise   Importance = "noise"   // claims and acknowledgements
	Usual   Importance = "usual"   // what happens as it should to each batch
	Concern Importance = "concern" // what moves a run or a node, what people do, and what goes wrong
)

// rank is the place of an importance; that of none is that of the least.
func (i Importance) rank() int { return slices.Index([]Importance{Usual, Concern}, i) }

// ImportanceOf returns how important an event is.
func ImportanceOf(e state.Event) Importance {
	switch e.Kind {
	case state.BatchClaimed, state.NodeHeard, state.OrderEnded:
		return Noise
	case state.BatchEnded:
		if e.Failure == nil && (e.Status == state.Succeeded || e.Status == state.Released) {
			return Usual
		}
	}
	return Concern
}

// Selection says which events of a run are asked for. The zero value selects all.
type Selection struct {
	Kinds []string // none: all
	Not   []string
	Node  string     // "": the run's own events, and those of all nodes
	Text  string     // what an event says contains it, whatever its case
	Least Importance // "": Noise
}

// All reports whether all events are selected.
func (s Selection) All() bool {
	return len(s.Kinds)+len(s.Not) == 0 && s.Node == "" && s.Text == "" && s.Least.rank() == Noise.rank()
}

// Has reports whether an event is selected. It knows of the event what the caller may: where values of the data are
// left out of it, none is found.
func (s Selection) Has(e state.Event) bool {
	kind := string(e.Kind)
	return (len(s.Kinds) == 0 || slices.Contains(s.Kinds, kind)) && !slices.Contains(s.Not, kind) &&
		(s.Node == "" || s.Node == e.Node) && ImportanceOf(e).rank() >= s.Least.rank() &&
		(s.Text == "" || says(e, strings.ToLower(s.Text)))
}

// says reports whether a part of an event contains a text in lower case.
func says(e state.Event, text string) bool {
	parts := []string{strings.ReplaceAll(string(e.Kind), "_", " "), e.Node, e.Actor, string(e.Status), e.Gate}
	if e.Batch != nil {
		parts = append(parts, "batch "+strconv.Itoa(*e.Batch)+", try "+strconv.Itoa(e.Attempt))
	}
	parts = append(parts, failureSays(e.Failure)...)
	if c := e.Command; c != nil {
		parts = append(parts, string(c.Kind), c.Reason)
		parts = append(parts, failureSays(c.Cause)...)
		for _, n := range c.Nodes {
			parts = append(parts, n.Node)
		}
	}
	if d := e.Decision; d != nil {
		parts = append(parts, d.Actor, d.Role, d.Reason, string(d.Answers))
	}
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(strings.ToLower(part), text) })
}

func failureSays(f *state.Failure) []string {
	if f == nil {
		return nil
	}
	parts := []string{f.Message, f.Hint, f.Detail, string(f.Kind)}
	for p := &f.Place; p != nil; p = p.Origin {
		parts = append(parts, placeSays(*p)...)
	}
	return parts
}

func placeSays(p fault.Place) []string {
	place := p.File
	if p.Line > 0 {
		place += ":" + strconv.FormatInt(p.Line, 10)
	}
	return []string{place, p.Field, p.Value, p.Expr, p.Raw}
}
