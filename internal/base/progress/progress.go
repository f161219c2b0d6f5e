// Package progress lets long work say how far it is, to whoever has begun it and listens. What is told has been
// counted; what cannot be is left out, and nothing is estimated.
package progress

import "context"

// Progress is how far work is.
type Progress struct {
	Phase string `json:"phase" doc:"What is done at the moment, for people."`
	Done  int64  `json:"done,omitempty" doc:"So much of the phase is done."`
	Of    int64  `json:"of,omitempty" doc:"So much there is in all; none: it is not known."`
	Unit  string `json:"unit,omitempty" enum:"rows,bytes,parts,nodes,checks,tests" doc:"What done and of count; none: nothing is."`
	Bytes int64  `json:"bytes,omitempty" doc:"So many are in the file of a download."`
}

type hearKey struct{}

// Heard is a context whose work tells hear how far it is. Several goroutines may call hear.
func Heard(ctx context.Context, hear func(Progress)) context.Context {
	return context.WithValue(ctx, hearKey{}, hear)
}

// Tell says how far the work of a context is; it costs little where nobody listens.
func Tell(ctx context.Context, p Progress) {
	if hear, ok := ctx.Value(hearKey{}).(func(Progress)); ok {
		hear(p)
	}
}
