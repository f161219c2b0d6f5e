package fleet

import (
	"context"
	"fmt"
	"sync"

	"thalweg/internal/app/control"
	"thalweg/internal/app/instance"
	"thalweg/internal/store/state"
)

// inputsMax limits the runs whose inputs are kept in memory.
const inputsMax = 10_000

// inputs keeps what runs were begun with, which never changes: see control.GivenTo.
type inputs struct {
	mu    sync.Mutex
	known map[state.RunKey]string
}

// of returns a digest of the parameters that a run was begun with; ok is false if it is not known, and reads, of which
// there may be so many more, are used up.
func (s *inputs) of(ctx context.Context, home *instance.Instance, r state.Run, reads *int) (digest string, ok bool,
	err error) {
	s.mu.Lock()
	digest, ok = s.known[r.RunKey]
	s.mu.Unlock()
	if ok || *reads <= 0 {
		return digest, ok, nil
	}
	*reads--
	whole, err := home.State.Run(ctx, r.RunKey)
	if err != nil {
		return "", false, fmt.Errorf("read run %d: %w", r.Run, err)
	}
	if digest, err = control.GivenTo(ctx, home, whole); err != nil {
		return "", false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= inputsMax {
		s.known = map[state.RunKey]string{}
	}
	s.known[r.RunKey] = digest
	return digest, true, nil
}
