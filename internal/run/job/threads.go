package job

import "context"

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
