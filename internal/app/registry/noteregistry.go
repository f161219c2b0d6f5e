package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"thalweg/internal/app/instance"
	"thalweg/internal/ops/lineage"
	"thalweg/internal/ops/notify"
	"thalweg/internal/ops/schedule"
	"thalweg/internal/store/state"
)

// Topics of notes that are this package's. The texts are stored.
const (
	TopicTell    = "tell"     // what is to be told of runs, by their numbers
	TopicWatched = "watched/" // followed by a watch: versions of files that were seen to
	topicLineage = "lineage"  // whose OpenLineage events are not all told, by the numbers of runs
)

// noteRegistry keeps records as the notes of a topic. A note is removed only as this
// process knows it: what others have written since stays.
type noteRegistry struct {
	store     state.Store
	workspace string
	topic     string

	mu    sync.Mutex
	known map[string]state.Note
}

func NewNoteBox(store state.Store, workspace, topic string) *noteRegistry {
	return &noteRegistry{store: store, workspace: workspace, topic: topic, known: map[string]state.Note{}}
}

func (b *noteRegistry) put(ctx context.Context, n state.Note) error {
	n.Topic, n.Time = b.topic, time.Now()
	if err := b.store.PutNote(ctx, b.workspace, n); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known[n.Name] = n
	return nil
}

// Put implements schedule.Box.
func (b *noteRegistry) Put(ctx context.Context, name string, record []byte) error {
	return b.put(ctx, state.Note{Name: name, Data: record})
}

// Remove implements schedule.Box.
func (b *noteRegistry) Remove(ctx context.Context, name string) error {
	b.mu.Lock()
	n, ok := b.known[name]
	delete(b.known, name)
	b.mu.Unlock()
	if !ok {
		return nil
	}
	return b.store.RemoveNote(ctx, b.workspace, n)
}

func (b *noteRegistry) notes(ctx context.Context) (out []state.Note, err error) {
	for after := ""; ; {
		page, err := b.store.Notes(ctx, b.workspace, b.topic, after, state.PageMax)
		if err != nil {
			return nil, fmt.Errorf("read the notes on %s: %w", b.topic, err)
		}
		if out = append(out, page...); len(page) < state.PageMax {
			break
		}
		after = page[len(page)-1].Name
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.known)
	for _, n := range out {
		b.known[n.Name] = n
	}
	return out, nil
}

// List implements schedule.Box.
func (b *noteRegistry) List(ctx context.Context) (out []schedule.Entry, err error) {
	notes, err := b.notes(ctx)
	for _, n := range notes {
		out = append(out, schedule.Entry{Name: n.Name, Record: n.Data})
	}
	return out, err
}

// TellBox keeps what is to be told of the runs of all workspaces.
type TellBox struct {
	Store state.Store
	Topic string

	mu    sync.Mutex
	boxes map[string]*noteRegistry // by workspace
}

func (b *TellBox) in(workspace string) *noteRegistry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.boxes == nil {
		b.boxes = map[string]*noteRegistry{}
	}
	if b.boxes[workspace] == nil {
		b.boxes[workspace] = NewNoteBox(b.Store, workspace, b.Topic)
	}
	return b.boxes[workspace]
}

// Put implements notify.Box.
func (b *TellBox) Put(ctx context.Context, key state.RunKey, record []byte) error {
	return b.in(key.Workspace).put(ctx, state.Note{Name: strconv.FormatInt(key.Run, 10), Run: key.Run, Data: record})
}

// Remove implements notify.Box.
func (b *TellBox) Remove(ctx context.Context, key state.RunKey) error {
	return b.in(key.Workspace).Remove(ctx, strconv.FormatInt(key.Run, 10))
}

// List implements notify.Box.
func (b *TellBox) List(ctx context.Context) (out []notify.Entry, err error) {
	workspaces, err := b.Store.Workspaces(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for workspaces: %w", err)
	}
	var errs []error
	for _, w := range workspaces {
		notes, err := b.in(w).notes(ctx)
		errs = append(errs, err)
		for _, n := range notes {
			out = append(out, notify.Entry{Run: state.RunKey{Workspace: w, Run: n.Run}, Record: n.Data})
		}
	}
	return out, errors.Join(errs...)
}

// lineageBox keeps whose OpenLineage events are not all told.
type lineageBox struct{ *TellBox }

// List implements lineage.Box.
func (b lineageBox) List(ctx context.Context) (map[state.RunKey][]byte, error) {
	entries, err := b.TellBox.List(ctx)
	out := map[state.RunKey][]byte{}
	for _, e := range entries {
		out[e.Run] = e.Record
	}
	return out, err
}

// LineageBox has the notes of runs whose OpenLineage events are not all told.
func LineageBox(home *instance.Instance) lineage.Registry {
	return lineageBox{&TellBox{Store: home.State, Topic: topicLineage}}
}
