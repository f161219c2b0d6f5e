package sheet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"thalweg/internal/store/state"
)

// Every is the time between two renewals of a sheet: so much of it is lost with a worker that is killed.
const Every = 10 * time.Second

// topic of the sheets of a run, followed by its name. The text is stored.
const topic = "sheets/"

// Notes is the part of a state that sheets are kept in.
type Notes interface {
	PutNote(ctx context.Context, workspace string, n state.Note) error
	RemoveNote(ctx context.Context, workspace string, n state.Note) error
	Notes(ctx context.Context, workspace, topic, after string, limit int) ([]state.Note, error)
}

// Keeper writes the sheets of a meter into the state. The methods of nil do nothing.
type Keeper struct {
	meter *Meter
	store Notes

	mu     sync.Mutex
	before map[state.RunKey]*Sheet // of runs that are open: what this worker did for them earlier; nil: nothing
}

// NewKeeper returns a keeper.
func NewKeeper(m *Meter, store Notes) *Keeper {
	return &Keeper{meter: m, store: store, before: map[state.RunKey]*Sheet{}}
}

// Meter returns what measures.
func (k *Keeper) Meter() *Meter {
	if k == nil {
		return nil
	}
	return k.meter
}

// Renew writes the sheets of all runs that are open.
func (k *Keeper) Renew(ctx context.Context) (err error) {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, run := range k.meter.Runs() {
		if s, ok := k.meter.Sheet(run); ok {
			err = errors.Join(err, k.put(ctx, run, s))
		}
	}
	return err
}

// Close ends the sheet of a run, and writes it.
func (k *Keeper) Close(ctx context.Context, run state.RunKey) error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := k.meter.Close(run)
	if !ok {
		return nil
	}
	defer delete(k.before, run)
	return k.put(ctx, run, s)
}

// put writes a sheet; mu is held.
func (k *Keeper) put(ctx context.Context, run state.RunKey, s Sheet) error {
	before, known := k.before[run]
	if !known {
		var err error
		if before, err = k.earlier(ctx, run, s.Worker); err != nil {
			return err
		}
		k.before[run] = before
	}
	if before != nil {
		s = s.plus(*before)
	}
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the time sheet of run %d: %w", run.Run, err)
	}
	note := state.Note{Topic: topicOf(run), Name: s.Worker, Run: run.Run, Data: data, Time: s.To}
	if err := k.store.PutNote(ctx, run.Workspace, note); err != nil {
		return fmt.Errorf("keep the time sheet of run %d: %w", run.Run, err)
	}
	return nil
}

// earlier reads what this worker did for a run before it left it.
func (k *Keeper) earlier(ctx context.Context, run state.RunKey, worker string) (*Sheet, error) {
	last := len(worker) - 1
	after := worker[:last] + string(rune(worker[last]-1)) + "~" // no name is between the two
	notes, err := k.store.Notes(ctx, run.Workspace, topicOf(run), after, 1)
	if err != nil {
		return nil, fmt.Errorf("read the time sheet of run %d: %w", run.Run, err)
	}
	if len(notes) == 0 || notes[0].Name != worker {
		return nil, nil
	}
	s, ok := decode(notes[0])
	if !ok {
		return nil, nil
	}
	return &s, nil
}

// Of reads the sheets of a run, who came first before others.
func Of(ctx context.Context, store state.Store, run state.RunKey) ([]Sheet, error) {
	notes, err := state.AllNotes(ctx, store, run.Workspace, topicOf(run))
	if err != nil {
		return nil, fmt.Errorf("read the time sheets of run %d: %w", run.Run, err)
	}
	sheets := []Sheet{}
	for _, n := range notes {
		if s, ok := decode(n); ok {
			sheets = append(sheets, s)
		}
	}
	slices.SortFunc(sheets, func(a, b Sheet) int {
		return cmp.Or(a.From.Compare(b.From), cmp.Compare(a.Worker, b.Worker))
	})
	return sheets, nil
}

// decode reads what put has written; false if it cannot be: damage, or a form of a later version.
func decode(n state.Note) (s Sheet, ok bool) {
	err := json.Unmarshal(n.Data, &s)
	return s, err == nil && s.Worker == n.Name
}

// Drop removes the sheets of a run.
func Drop(ctx context.Context, store state.Store, run state.RunKey) error {
	notes, err := state.AllNotes(ctx, store, run.Workspace, topicOf(run))
	if err != nil {
		return fmt.Errorf("read the time sheets of run %d: %w", run.Run, err)
	}
	for _, n := range notes {
		if err := store.RemoveNote(ctx, run.Workspace, n); err != nil {
			return fmt.Errorf("remove a time sheet of run %d: %w", run.Run, err)
		}
	}
	return nil
}

func topicOf(run state.RunKey) string { return topic + state.RunName(run.Run) }
