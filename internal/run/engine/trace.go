package engine

import "context"

// Trace is called with each statement that an instance is about to run.
type Trace func(in *Instance, statement string)

type traceKey struct{}

// WithTrace has instances call trace for what they run under ctx. Tests look
// at plans that way; calls may come from several goroutines at once.
func WithTrace(ctx context.Context, trace Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// trace tells whoever wants to know.
func (in *Instance) trace(ctx context.Context, statement string) {
	if trace, ok := ctx.Value(traceKey{}).(Trace); ok {
		trace(in, statement)
	}
}
