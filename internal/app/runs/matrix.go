package runs

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"thalweg/internal/app/view"
	"thalweg/internal/store/state"
)

// Limits of matrices.
const (
	MatrixRunsMax  = 100
	matrixNodesMax = 500
	matrixScripts  = 8 // whose descriptions of nodes are read
	matrixAtOnce   = 4 // runs whose nodes are read at once
)

// Matrix shows what became of the nodes of a page of runs. What it reads does not grow with their batches.
func (s *Service) Matrix(ctx context.Context, workspace string, p PageOptions) (view.RunMatrix, error) {
	p.Limit, p.Priced = min(p.Limit, MatrixRunsMax), true
	runs, next, err := s.Page(ctx, workspace, p)
	if err != nil {
		return view.RunMatrix{}, err
	}
	nodes := make([][]state.Node, len(runs))
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(matrixAtOnce)
	for i, r := range runs {
		group.Go(func() (err error) {
			nodes[i], err = s.nodes(reading, state.RunKey{Workspace: workspace, Run: r.Run})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return view.RunMatrix{}, err
	}
	m := matrix{places: map[string]int{}, now: time.Now()}
	m.Nodes, m.Runs = []view.MatrixNode{}, []view.MatrixRun{}
	for i, r := range runs {
		m.add(r, nodes[i])
	}
	if next > 0 {
		m.Next = strconv.FormatInt(next, 10)
	}
	return m.RunMatrix, s.describe(ctx, &m)
}

// matrix is a matrix to which runs are added, the latest first.
type matrix struct {
	view.RunMatrix
	places map[string]int // of nodes; -1: left out
	now    time.Time
}

func (m *matrix) add(r view.ListedRun, nodes []state.Node) {
	column := view.MatrixRun{Run: r, Cells: []view.MatrixCell{}}
	ended, status := m.now, state.Running
	if r.Finished != nil {
		ended, status = *r.Finished, state.Complete
	}
	for _, n := range Settled(status, ended, nodes) {
		at, ok := m.places[n.Name]
		switch {
		case !ok && len(m.Nodes) == matrixNodesMax:
			at = -1
			m.LeftOut++
		case !ok:
			at = len(m.Nodes)
			m.Nodes = append(m.Nodes, view.MatrixNode{Node: n.Name, Type: n.Kind})
		}
		if m.places[n.Name] = at; at < 0 {
			continue
		}
		cell := view.MatrixCell{Node: at, Status: n.Status}
		if started := n.Started; !started.IsZero() {
			end := n.Finished
			if end.IsZero() {
				end = ended
			}
			cell.Started, cell.Elapsed = &started, max(end.Sub(started), 0).Milliseconds()
		}
		column.Cells = append(column.Cells, cell)
	}
	m.Runs = append(m.Runs, column)
}

// describe adds the descriptions of nodes, from the latest run of each script. A script that cannot be read any more
// describes nothing.
func (s *Service) describe(ctx context.Context, m *matrix) error {
	seen := map[string]bool{}
	for _, r := range m.Runs {
		if s.Scripts == nil || seen[r.Script] || len(seen) == matrixScripts {
			continue
		}
		seen[r.Script] = true
		run, err := s.Home.State.Run(ctx, state.RunKey{Workspace: r.Workspace, Run: r.Run.Run})
		if err != nil {
			return fmt.Errorf("read run %d: %w", r.Run.Run, err)
		}
		d, err := s.Scripts.of(ctx, run, false)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		for _, cell := range r.Cells {
			if n := &m.Nodes[cell.Node]; n.Description == "" {
				n.Description = d.nodes[n.Node]
			}
		}
	}
	return nil
}
