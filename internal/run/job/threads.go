package job

import (
	"context"

	"thalweg/internal/run/sheet"
)

// Threads is the number of threads that a batch's engine is to have.
type Threads struct {
	Count int  `json:"count,omitempty"` // at least; 0: whoever executes it knows
	Exact bool `json:"exact,omitempty"` // it was forced: so many
}

type threadsKey struct{}

// WithThreads says it for Job.Execute.
func WithThreads(ctx context.Context, t Threads) context.Context {
	return context.WithValue(ctx, threadsKey{}, t)
}

// ThreadsOf returns the threads that the context carries.
func ThreadsOf(ctx context.Context) Threads {
	t, _ := ctx.Value(threadsKey{}).(Threads)
	return t
}

// Waits says that the attempt of the context waits for its turn or for memory, until over is called.
func Waits(ctx context.Context) (over func()) { return sheet.Waits(ctx) }
