package tableserver

import (
	"context"
	"errors"

	"thalweg/internal/base/budget"
	"thalweg/internal/io/resp"
	"thalweg/internal/ops/metrics"
)

// counts are what clients are told.
func (s *Server) counts() resp.Counts {
	c := resp.Counts{Commands: s.commands.Load(), Received: s.received.Load(), Sent: s.sent.Load()}
	c.User, c.System = budget.ProcessTime()
	return c
}

// Figures are what is counted, and how it is now.
func (s *Server) Figures() metrics.Table {
	f := metrics.Table{Clients: s.clients.Load(), Accepted: s.lastID.Load(), Disconnected: s.lost.Load(),
		Commands: s.commands.Load(), Received: s.received.Load(), Sent: s.sent.Load(), Pending: s.pending.Load(),
		Unsent:   s.unsent.Load(),
		Switches: s.switched.Load(), Refused: s.refused.Load()}
	user, system := budget.ProcessTime()
	f.CPU = user + system
	if t := s.acquire(); t != nil {
		defer t.release()
		f.Rows, f.Bytes = t.table.Rows(), t.table.Size()
	}
	return f
}

// Show shows the metrics at HOST:PORT until it is closed.
func (s *Server) Show(ctx context.Context, at, version string) (*metrics.Server, error) {
	return metrics.NewTable(version, s.Figures).Listen(ctx, at, s.ready, s.options.Log)
}

// ready says why nobody is to ask here.
func (s *Server) ready(context.Context) (notices []string, err error) {
	t := s.acquire()
	if t == nil || s.draining.Load() {
		return nil, errors.New("it was asked to end")
	}
	defer t.release()
	if t.spoiled.Load() {
		return nil, errors.New("the file of the table was written to while it was served")
	}
	return nil, nil
}
