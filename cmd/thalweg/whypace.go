package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"thalweg/internal/app/instance"
	"thalweg/internal/app/registry"
	"thalweg/internal/run/concurrency"
	"thalweg/internal/store/state"
)

// workerPace is how much a worker does at once, and why.
type workerPace struct {
	Host        string                 `json:"host"`
	PID         int                    `json:"pid"`
	Concurrency []concurrency.Setting  `json:"concurrency"`
	Decisions   []concurrency.Decision `json:"decisions"`
}

// workersOn are a cluster's workers that work on a run, by their notes.
func workersOn(ctx context.Context, home *instance.Instance, run state.Run) ([]registry.WorkerEntry, error) {
	if home.Cluster() == nil || run.Status.Terminal() {
		return nil, nil
	}
	workers, err := registry.Workers(ctx, home)
	return slices.DeleteFunc(workers, func(w registry.WorkerEntry) bool {
		return w.Gone || !slices.ContainsFunc(w.Runs, func(r registry.RunAt) bool {
			return r.Workspace == run.Workspace &&
				r.Run == run.Run
		})
	}), err
}

// pacesOf is how much workers do at once.
func pacesOf(workers []registry.WorkerEntry) (out []workerPace) {
	for _, w := range workers {
		if len(w.Concurrency) > 0 {
			out = append(out, workerPace{Host: w.Host, PID: w.PID, Concurrency: w.Concurrency, Decisions: w.Decisions})
		}
	}
	return out
}

// noticesOf is what workers say that somebody should look at.
func noticesOf(workers []registry.WorkerEntry) (out []string) {
	for _, w := range workers {
		for _, text := range w.Notices {
			out = append(out, fmt.Sprintf("%s (process %d): %s", w.Host, w.PID, text))
		}
	}
	return out
}

// print says it for people: what is in force, a line for each class, and the latest changes.
func (p workerPace) print(to io.Writer) {
	fmt.Fprintf(to, "worker %s (process %d) does at once:\n", p.Host, p.PID)
	for i := 0; i < len(p.Concurrency); {
		class := p.Concurrency[i].Class
		var texts []string
		for ; i < len(p.Concurrency) && p.Concurrency[i].Class == class; i++ {
			k := p.Concurrency[i]
			texts = append(texts, fmt.Sprintf("%s %d (%s)", k.Knob, k.Value, k.Reason))
		}
		fmt.Fprintf(to, "  %s: %s\n", class, strings.Join(texts, ", "))
	}
	for _, d := range p.Decisions {
		fmt.Fprintf(to, "  %s: %s of %s from %d to %d: %s\n", d.At.Local().Format("15:04:05"), d.Knob, d.Class, d.From,
			d.To, d.Reason)
	}
}
