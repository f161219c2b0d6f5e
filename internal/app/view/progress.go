package view

import (
	"context"

	"thalweg/internal/base/progress"
)

// Progress is how far long work is: what has been counted of it.
type Progress = progress.Progress

// HearProgress is a context whose work tells hear how far it is. Several goroutines may call hear.
func HearProgress(ctx context.Context, hear func(Progress)) context.Context {
	return progress.Heard(ctx, hear)
}

// TellProgress says how far the work of a context is; it costs little where nobody listens.
func TellProgress(ctx context.Context, p Progress) { progress.Tell(ctx, p) }
