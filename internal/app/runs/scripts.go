package runs

import (
	"context"
	"sync"

	"thalweg/internal/app/view"
	"thalweg/internal/lang/graph"
	"thalweg/internal/lang/script"
	"thalweg/internal/run/gate"
	"thalweg/internal/store/state"
)

// scriptsMax limits the scripts that are kept in memory.
const scriptsMax = 32

// Scripts keeps what is shown of the scripts of runs: reading one and laying it out takes long.
type Scripts struct {
	load func(context.Context, state.RunKey) (*script.Script, string, error)

	mu   sync.Mutex
	kept map[drawnScript]*drawing
	used []drawnScript // the latest last
}

// drawnScript names a script with its parameters: runs with the same one have the same picture.
type drawnScript struct {
	path, fingerprint string
	fields            bool
}

// drawing is a picture of a script. Nobody changes it.
type drawing struct {
	title  string
	roots  []string
	layout graph.Layout
	nodes  map[string]string // descriptions by name

	deadline string // as calendar.ParseDeadline reads it; "": none
}

// NewScripts returns the scripts that load reads.
func NewScripts(load func(context.Context, state.RunKey) (*script.Script, string, error)) *Scripts {
	return &Scripts{load: load, kept: map[drawnScript]*drawing{}}
}

// of returns the picture of a run's script.
func (s *Scripts) of(ctx context.Context, run state.Run, fields bool) (*drawing, error) {
	key := drawnScript{run.ScriptPath, run.Fingerprint, fields}
	s.mu.Lock()
	known := s.kept[key]
	s.mu.Unlock()
	if known != nil && key.fingerprint != "" {
		return known, nil
	}
	sc, _, err := s.load(ctx, run.RunKey)
	if err != nil {
		return nil, err
	}
	g := graph.FromScript(sc, graph.Options{Fields: fields})
	made := &drawing{title: g.Title, roots: append([]string{}, g.MarkRoots()...), nodes: map[string]string{},
		deadline: sc.Deadline}
	made.layout = graph.Place(g)
	for _, n := range sc.Nodes {
		made.nodes[n.Name] = n.Desc
	}
	for _, a := range sc.Gates {
		made.nodes[gate.Prefix+a.Name] = a.Message
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[key] == nil {
		s.used = append(s.used, key)
	}
	if s.kept[key] = made; len(s.used) > scriptsMax {
		delete(s.kept, s.used[0])
		s.used = s.used[1:]
	}
	return made, nil
}

// Graph returns the picture of a run as boxes and lines.
func (s *Service) Graph(ctx context.Context, run state.Run, fields bool) (view.Graph, error) {
	d, err := s.Scripts.of(ctx, run, fields)
	if err != nil {
		return view.Graph{}, err
	}
	nodes, err := s.nodes(ctx, run.RunKey)
	if err != nil {
		return view.Graph{}, err
	}
	at := map[string]state.Node{}
	for _, n := range Settled(run.Status, run.Finished, nodes) {
		id := "n:" + n.Name
		if n.Kind == gate.Kind {
			id = "g:" + gate.NameOf(n.Name)
		}
		at[id] = n
	}
	out := view.Graph{Title: d.title, Width: d.layout.Width, Height: d.layout.Height, Roots: d.roots,
		Vertices: []view.Vertex{}, Edges: []view.Edge{}}
	places := map[*graph.Vertex]int{}
	for i, b := range d.layout.Boxes {
		places[b.Vertex] = i
		n := at[b.ID]
		out.Vertices = append(out.Vertices, view.Vertex{ID: b.ID, Kind: string(b.Kind), Node: n.Name, Title: b.Title,
			Lines: append([]string{}, b.Lines...), Note: b.Note, Tags: b.Tags, X: b.X, Y: b.Y, Width: b.Width, Height: b.Height,
			Root: b.Root, Status: n.Status})
	}
	for _, l := range d.layout.Lines {
		kind := "rows"
		switch {
		case l.Lookup:
			kind = "lookup"
		case l.Waits:
			kind = "waits"
		}
		out.Edges = append(out.Edges, view.Edge{From: places[l.From], To: places[l.To], Kind: kind, Points: l.Points})
	}
	return out, nil
}
