package lineage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"thalweg/internal/store/state"
)

// Registry keeps a note for each run whose events were not all told yet, and whose
// process is the last that began to. The last writer counts.
type Registry interface {
	Put(ctx context.Context, key state.RunKey, note []byte) error
	Remove(ctx context.Context, key state.RunKey) error
	List(ctx context.Context) (map[state.RunKey][]byte, error)
}

// PublisherConfig configures a Publisher.
type PublisherConfig struct {
	To     Destination // the outlet closes it
	Store  state.Store
	Box    Registry
	How    func(ctx context.Context, key state.RunKey) (Telling, error) // of a run that others have worked on
	Owner  string                                                       // see worker.Owner
	Gone   func(owner string) bool                                      // whether a process has ended
	Logger *slog.Logger
}

// When what others have left is told, and when nobody will.
const (
	leftEvery  = time.Minute
	leftOthers = 10 * time.Minute // by processes of which it is not known whether they have ended
	leftMax    = 7 * 24 * time.Hour
	noteTime   = 2 * time.Second
)

// told is the note of a run. It is stored.
type told struct {
	Owner string    `json:"owner"`
	At    time.Time `json:"at"`
}

// Publisher tells the events of all runs that a process works on, while they are at
// work; and those of runs that are over and that another process has left, in
// whatever way it ended: at least once each. Of several processes at work on a run
// one tells.
type Publisher struct {
	cfg  PublisherConfig
	quit context.CancelFunc // ends looking for what others have left
	work sync.WaitGroup

	mu    sync.Mutex
	lives map[state.RunKey]*Live // nil: another process tells
}

// NewPublisher begins to tell what others have left.
func NewPublisher(ctx context.Context, cfg PublisherConfig) *Publisher {
	ctx, quit := context.WithCancel(ctx)
	o := &Publisher{cfg: cfg, quit: quit, lives: map[state.RunKey]*Live{}}
	o.work.Go(func() {
		for ctx.Err() == nil {
			if err := o.tellLeft(ctx); err != nil && ctx.Err() == nil {
				cfg.Logger.Debug("OpenLineage events that others have left cannot be told now", "error", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(leftEvery):
			}
		}
	})
	return o
}

// Follow tells the events of a run from now on, if nobody else does.
func (o *Publisher) Follow(ctx context.Context, key state.RunKey, how Telling) {
	o.mu.Lock()
	_, known := o.lives[key]
	o.mu.Unlock()
	if known {
		return
	}
	ctx = context.WithoutCancel(ctx)
	all, err := o.cfg.Box.List(ctx)
	if err == nil && o.others(all[key]) {
		o.mu.Lock()
		o.lives[key] = nil
		o.mu.Unlock()
		return
	}
	if err == nil {
		err = o.note(ctx, key)
	}
	if err != nil { // they are told, but for what happens to this process
		o.cfg.Logger.Warn("OpenLineage events of a run may not be told", "run", key.Run, "error", err)
	}
	live := Tell(ctx, o.cfg.To, o.cfg.Store, key, how, o.cfg.Logger)
	o.mu.Lock()
	o.lives[key] = live
	o.mu.Unlock()
}

// others reports whether a note is of another process that may be alive.
func (o *Publisher) others(note []byte) bool {
	var t told
	return note != nil && json.Unmarshal(note, &t) == nil && t.Owner != o.cfg.Owner && !o.cfg.Gone(t.Owner) &&
		time.Since(t.At) < leftOthers
}

func (o *Publisher) note(ctx context.Context, key state.RunKey) error {
	text, err := json.Marshal(told{o.cfg.Owner, time.Now().UTC()})
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, noteTime)
		defer stop()
		err = o.cfg.Box.Put(ctx, key, text)
	}
	if err != nil {
		return fmt.Errorf("write down that the OpenLineage events of run %d are to be told: %w", key.Run, err)
	}
	return nil
}

// Changed says that something has become of a node. It does not wait.
func (o *Publisher) Changed(key state.RunKey, node string) {
	o.mu.Lock()
	live := o.lives[key]
	o.mu.Unlock()
	live.Changed(node)
}

// Leave says that this process works on a run no more. It does not wait.
func (o *Publisher) Leave(key state.RunKey) {
	o.mu.Lock()
	live := o.lives[key]
	delete(o.lives, key)
	o.mu.Unlock()
	if live != nil {
		o.work.Go(func() { o.end(key, live) })
	}
}

// end tells what is left of a run, and that it is told if the run is over.
func (o *Publisher) end(key state.RunKey, live *Live) bool {
	all := live.Close()
	ctx, stop := context.WithTimeout(context.Background(), noteTime)
	defer stop()
	run, err := o.cfg.Store.Run(ctx, key)
	if err != nil || !all || !run.Status.Terminal() {
		return all
	}
	if err := o.cfg.Box.Remove(ctx, key); err != nil {
		o.cfg.Logger.Debug("that OpenLineage events were told could not be written down: they are told again", "run",
			key.Run, "error", err)
	}
	return all
}

// Close tells what is left of all runs, for a while.
func (o *Publisher) Close() error {
	o.quit()
	o.mu.Lock()
	keys := make([]state.RunKey, 0, len(o.lives))
	for key := range o.lives {
		keys = append(keys, key)
	}
	o.mu.Unlock()
	for _, key := range keys {
		o.Leave(key)
	}
	o.work.Wait()
	return o.cfg.To.Close()
}

// tellLeft tells of runs that are over, and whose process has left something.
func (o *Publisher) tellLeft(ctx context.Context) error {
	all, err := o.cfg.Box.List(ctx)
	if err != nil {
		return err
	}
	for key, note := range all {
		o.mu.Lock()
		_, ours := o.lives[key]
		o.mu.Unlock()
		if ours || o.others(note) {
			continue
		}
		if err := o.tellOf(ctx, key, note); err != nil {
			return err // it would be so with the others
		}
	}
	return nil
}

func (o *Publisher) tellOf(ctx context.Context, key state.RunKey, note []byte) error {
	run, err := o.cfg.Store.Run(ctx, key)
	if errors.Is(err, state.ErrNotFound) {
		return o.cfg.Box.Remove(ctx, key)
	}
	if err != nil || !run.Status.Terminal() {
		return err
	}
	var t told
	if json.Unmarshal(note, &t) != nil || time.Since(t.At) > leftMax {
		o.cfg.Logger.Warn("OpenLineage events of a run are given up; {{do lineage openlineage=}} makes them",
			"run", key.Run)
		return o.cfg.Box.Remove(ctx, key)
	}
	how, err := o.cfg.How(ctx, key)
	if err != nil { // what state says itself can be told
		o.cfg.Logger.Debug("the script of a run cannot be had: its OpenLineage events have no columns", "run", key.Run,
			"error", err)
	}
	if !o.end(key, Tell(ctx, o.cfg.To, o.cfg.Store, key, how, o.cfg.Logger)) {
		return fmt.Errorf("the OpenLineage events of run %d were not taken", key.Run)
	}
	return nil
}
