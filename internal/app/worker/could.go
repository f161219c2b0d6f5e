package worker

import (
	"context"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/runtime"
	"thalweg/internal/base/budget"
	"thalweg/internal/store/state"
)

// Could says why a run would be refused here; nil: it would be worked on.
func (s *Server) Could(ctx context.Context, key state.RunKey) error {
	rec, err := s.Recall(ctx, key)
	if err != nil {
		return err
	}
	if err := s.compatible(rec.Run); err != nil {
		return err
	}
	_, err = s.likePython(ctx, rec)
	return err
}

// NewIdle is a worker that takes no work: it can be asked what it could do.
func NewIdle(home *instance.Instance, opts runtime.Process, work string, b budget.Budget) *Server {
	return &Server{Runtime: &runtime.Runtime{Instance: home, Process: opts, WorkDir: work,
		Store: runtime.NewStore(home, opts), Budget: b}}
}
