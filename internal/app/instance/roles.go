package instance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"thalweg/internal/base/fault"
	"thalweg/internal/run/job"
	"thalweg/internal/store/state"
)

// Times of liveness in state.
const (
	presenceEvery   = 12 * time.Second // that a note is renewed
	presenceLease   = 30 * time.Second // that one counts for those who only ask
	presenceSkew    = 5 * time.Minute  // that one counts for those who clear: clocks may differ by as much
	PresenceTimeout = 10 * time.Second // of one look or renewal
	DoorLease       = 20 * time.Second // of the role that lets one process in at a time
	DoorEvery       = 5 * time.Second  // that it is renewed
	doorPause       = 50 * time.Millisecond
	doorTries       = 600
)

const (
	TopicAtWork = "at_work/" // followed by a run's name: who works on it
	roleDoor    = "door"     // of a run: whoever has it comes in, or keeps others out
)

// StateNotes is the liveness of processes on several machines: whoever works on a
// run has a note in its workspace, and renews it. Who comes in, and who clears,
// holds a role of the run meanwhile, so that they see each other.
type StateNotes struct {
	Store state.Store
	Clock *Clock
}

func (s StateNotes) join(key state.RunKey) (_ *RunLock, alone bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	me := job.Owner() + "#" + rand.Text()[:8]
	open, err := s.door(ctx, key, me, doorTries)
	if err == nil && open == nil {
		err = &fault.Error{Kind: fault.Environment, Retryable: true,
			Message: fmt.Sprintf("run %d is being cleared by another process", key.Run)}
	}
	if err != nil {
		cancel()
		return nil, false, err
	}
	others, err := s.others(ctx, key, presenceLease)
	n := &atWorkNote{store: s.Store, clock: s.Clock, key: key,
		note: state.Note{Topic: TopicAtWork + state.RunName(key.Run), Name: me, Run: key.Run}}
	if err == nil {
		err = n.renew(ctx)
	}
	if err = errors.Join(err, open()); err != nil {
		cancel()
		return nil, false, err
	}
	n.loop.Go(func() { n.keep(ctx) })
	return &RunLock{sync.OnceValue(func() error {
		cancel()
		n.loop.Wait()
		return n.remove()
	})}, others == 0, nil
}

func (s StateNotes) Empty(key state.RunKey, patient bool) (_ *RunLock, ok bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	me := job.Owner() + "#" + rand.Text()[:8]
	tries := 1
	if patient {
		tries = lockLooks
	}
	open, err := s.door(ctx, key, me, tries)
	if err != nil || open == nil {
		cancel()
		return nil, false, err
	}
	others, err := s.others(ctx, key, presenceSkew)
	if err != nil || others > 0 {
		cancel()
		return nil, false, errors.Join(err, open())
	}
	var loop sync.WaitGroup
	loop.Go(func() {
		Every(ctx, DoorEvery, func(ctx context.Context) {
			now := s.Clock.Now()
			// it is tried again before the time is over
			_, _ = s.Store.Acquire(ctx, key, roleDoor, me, now, now.Add(DoorLease))
		})
	})
	return &RunLock{sync.OnceValue(func() error {
		cancel()
		loop.Wait()
		return open()
	})}, true, nil
}

func (s StateNotes) atWork(key state.RunKey) bool {
	ctx, cancel := context.WithTimeout(context.Background(), PresenceTimeout)
	defer cancel()
	others, err := s.others(ctx, key, presenceLease)
	return err != nil || others > 0
}

// door takes the role that one process has at a time, and answers with what gives
// it up; nil if somebody else has it. The state may not know the run: nobody can come then.
func (s StateNotes) door(ctx context.Context, key state.RunKey, me string, tries int) (open func() error, err error) {
	for try := 0; ; try++ {
		now := s.Clock.Now()
		_, err = s.Store.Acquire(ctx, key, roleDoor, me, now, now.Add(DoorLease))
		switch {
		case err == nil:
			return func() error {
				ctx, cancel := context.WithTimeout(context.Background(), PresenceTimeout)
				defer cancel()
				return s.Store.Resign(ctx, key, roleDoor, me)
			}, nil
		case errors.Is(err, state.ErrNotFound):
			return func() error { return nil }, nil
		case !errors.Is(err, state.ErrHeld):
			return nil, fmt.Errorf("see who works on run %d: %w", key.Run, err)
		case try+1 >= tries:
			return nil, nil
		}
		<-time.After(doorPause)
	}
}

// others counts the processes whose notes were renewed within so long, and
// removes notes that are older than anybody may count.
func (s StateNotes) others(ctx context.Context, key state.RunKey, within time.Duration) (n int, err error) {
	notes, err := state.AllNotes(ctx, s.Store, key.Workspace, TopicAtWork+state.RunName(key.Run))
	if err != nil {
		return 0, err
	}
	now := s.Clock.Now()
	for _, note := range notes {
		owner, _, _ := strings.Cut(note.Name, "#")
		age := now.Sub(note.Time)
		if job.Gone(owner) || age > presenceSkew {
			if err := s.Store.RemoveNote(ctx, key.Workspace, note); err != nil {
				return 0, err
			}
			continue
		}
		if age < within {
			n++
		}
	}
	return n, nil
}

// atWorkNote is a note that is kept fresh.
type atWorkNote struct {
	store state.Store
	clock *Clock
	key   state.RunKey
	note  state.Note
	loop  sync.WaitGroup
}

func (n *atWorkNote) renew(ctx context.Context) error {
	note := n.note
	note.Time = n.clock.Now()
	if err := n.store.PutNote(ctx, n.key.Workspace, note); err != nil {
		return err
	}
	n.note = note
	return nil
}

func (n *atWorkNote) keep(ctx context.Context) {
	// it is tried again long before the note is too old
	Every(ctx, presenceEvery, func(ctx context.Context) { _ = n.renew(ctx) })
}

func (n *atWorkNote) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), PresenceTimeout)
	defer cancel()
	notes, err := n.store.Notes(ctx, n.key.Workspace, n.note.Topic, n.note.Name[:len(n.note.Name)-1], 2)
	for _, note := range notes { // as it is there: whether the last renewal has arrived is not known
		if note.Name == n.note.Name {
			err = errors.Join(err, n.store.RemoveNote(ctx, n.key.Workspace, note))
		}
	}
	return err
}

// Every calls do at intervals until ctx ends, each time with a time limit.
func Every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			limited, cancel := context.WithTimeout(ctx, PresenceTimeout)
			do(limited)
			cancel()
		}
	}
}
