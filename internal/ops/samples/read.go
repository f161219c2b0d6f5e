package samples

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"thalweg/internal/store/state"
)

// Worker has the samples of a process, in order of time.
type Worker struct {
	Name    string // as attempts have it
	Samples []Sample
}

// Options say which samples are wanted.
type Options struct {
	From, To, Now time.Time
	Points        int // of a worker, at most; more are put together with their neighbours
}

// Of reads the samples of the workers of a run from a time to another, by name.
func Of(ctx context.Context, store Notes, run state.RunKey, o Options) ([]Worker, error) {
	if oldest := o.Now.Add(-Keep); o.From.Before(oldest) {
		o.From = oldest
	}
	if ahead := o.Now.Add(noteTime); o.To.After(ahead) { // clocks differ
		o.To = ahead
	}
	found := map[string][]Sample{}
	for slice := sliceOf(o.From); slice <= sliceOf(o.To.Add(Every)); slice++ {
		if err := o.read(ctx, store, slice, run, found); err != nil {
			return nil, err
		}
	}
	out := make([]Worker, 0, len(found))
	for name, all := range found {
		slices.SortFunc(all, func(a, b Sample) int { return a.Time.Compare(b.Time) })
		out = append(out, Worker{Name: name, Samples: o.thinned(all)})
	}
	slices.SortFunc(out, func(a, b Worker) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// read reads the notes of one time.
func (o Options) read(ctx context.Context, store Notes, slice int64, run state.RunKey,
	found map[string][]Sample) error {
	for after := ""; ; {
		notes, err := store.Notes(ctx, workspace, topicOf(slice), after, state.PageMax)
		if err != nil {
			return fmt.Errorf("read the samples of workers: %w", err)
		}
		for _, n := range notes {
			after = n.Name
			if sliceOf(n.Time) != slice {
				continue // of a day ago
			}
			c, err := decode(n.Data)
			if err != nil || !slices.Contains(c.runs, run) {
				continue // of another version of the program
			}
			owner, _, _ := strings.Cut(n.Name, "#")
			for _, s := range c.samples {
				if s.Time.After(o.From) && s.Time.Add(-s.Took).Before(o.To) {
					found[owner] = append(found[owner], s)
				}
			}
		}
		if len(notes) < state.PageMax {
			return nil
		}
	}
}

// thinned puts neighbours together until there are so few as are wanted.
func (o Options) thinned(all []Sample) []Sample {
	if o.Points <= 0 || len(all) <= o.Points {
		return all
	}
	step := (len(all) + o.Points - 1) / o.Points
	var out []Sample
	for some := range slices.Chunk(all, step) {
		one := some[0]
		for _, next := range some[1:] {
			one = one.with(next)
		}
		out = append(out, one)
	}
	return out
}
