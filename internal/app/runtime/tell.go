package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/app/registry"
	"thalweg/internal/base/calendar"
	"thalweg/internal/lang/script"
	"thalweg/internal/ops/notify"
	"thalweg/internal/run/job"
	"thalweg/internal/run/pipeline"
	"thalweg/internal/store/state"
)

// flushInterrupted is the time that an interrupted process has for its last messages: it has to be
// gone soon.
const flushInterrupted = 300 * time.Millisecond

// Tell begins to tell what happens to runs, to these and those of processes that
// have died. The function that it gives waits for the last messages, not for long.
func (t *Runtime) Tell(ctx context.Context, runs ...state.RunKey) (end func()) {
	t.teller = notify.New(notify.Config{Store: t.Store, Box: &registry.TellBox{Store: t.Store,
		Topic: registry.TopicTell},
		Sender: t.Sender(), Owner: job.Owner(), Clock: calendar.System{}, Logger: t.Process.Logger,
		Checkpoint: t.Process.Checkpoint, Told: t.Instance.Told,
		Hooks: func(ctx context.Context, run state.Run) ([]script.Hook, string, error) {
			return HooksOf(ctx, t.Store, run)
		},
		Name: func(run state.Run) string { return pipeline.ScriptName(t.Instance.IdentityOf(run)) }})
	for _, key := range runs {
		t.Follow(ctx, key)
	}
	working, cut := context.WithCancel(context.WithoutCancel(ctx))
	quit := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { t.teller.Work(working, quit) })
	return func() {
		patience := notify.FlushTime
		if ctx.Err() != nil {
			patience = flushInterrupted
		}
		last, stop := context.WithTimeout(working, patience)
		defer stop()
		defer context.AfterFunc(last, cut)()
		close(quit)
		wg.Wait()
		t.teller.Flush(last)
		cut()
	}
}

// Follow sees to it that what happens to a run is told. A run does not fail
// because nobody can be told of it.
func (t *Runtime) Follow(ctx context.Context, key state.RunKey) {
	if err := t.teller.Follow(ctx, key); err != nil && ctx.Err() == nil {
		t.Process.Logger.Warn("what happens to a run may not be told", "run", key.Run, "workspace", key.Workspace,
			"error", err)
	}
}

func (t *Runtime) Sender() *notify.Sender {
	return &notify.Sender{Post: t.Process.Remote, Keeper: t.Process.Keeper, Environment: t.Process.Environment,
		Known: t.Process.Known,
		Clock: calendar.System{}, Logger: t.Process.Logger}
}

// HooksOf reads who is told of a run, and where it was begun.
func HooksOf(ctx context.Context, store state.Store, run state.Run) (hooks []script.Hook, dir string, err error) {
	for _, pin := range run.Pins {
		if pin.Kind != PinHooks {
			continue
		}
		text, err := pinText(ctx, store, run, pin)
		if err == nil {
			err = json.Unmarshal(text, &hooks)
		}
		if err != nil {
			return nil, "", fmt.Errorf("read the hooks of run %d: %w", run.Run, err)
		}
	}
	if len(hooks) == 0 {
		return nil, "", nil
	}
	set, err := SettingsOf(ctx, store, run)
	if err != nil || set == nil {
		return hooks, "", err
	}
	return hooks, set.Dir, nil
}
