package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/fault"
)

// Note is a hint in a workspace's partition, by which something is found
// without looking at every run.
type Note struct {
	Topic string // see TopicOpen
	Name  string // its own within the topic
	Run   int64  // that it is about; 0: none
	Node  string // likewise; "": none
	Data  []byte // opaque here; at most NoteBytesMax
	Time  time.Time
}

// Topics of notes. The texts are stored.
const (
	TopicOpen      = "open"      // runs that are not over: see OpenNote
	TopicWaiting   = "waiting"   // nodes that wait for a decision, put before they do
	TopicSame      = "same/"     // followed by a digest: nodes whose table can be taken over
	TopicSchedules = "schedules" // what is to be started when
	TopicPaused    = "paused"    // schedules that begin no runs
	TopicFleet     = "fleet"     // of no workspace: see NewFleet
)

// FleetName is the name of the one note on TopicFleet. Its data is written once, by
// who asks a state for its fleet first, and never changes.
const FleetName = "id"

// fleetLetters is the length of a fleet's id: each letter is one of 32.
const fleetLetters = 8

// NewFleet is an id for the processes that share a state, by which services that
// fleets share tell them apart.
func NewFleet() string { return strings.ToLower(rand.Text()[:fleetLetters]) }

// NoteBytesMax is the most data that a note has.
const NoteBytesMax = 4 << 10

// Check refuses a note that cannot be stored.
func (n Note) Check() error {
	if n.Topic == "" || n.Name == "" || len(n.Data) > NoteBytesMax {
		return fault.New(fault.Bug, "note %q of topic %q has no name or topic, or %d bytes of data", n.Name, n.Topic,
			len(n.Data))
	}
	return nil
}

// Same reports whether a note is as it was read.
func (n Note) Same(o Note) bool {
	return n.Topic == o.Topic && n.Name == o.Name && n.Run == o.Run && n.Node == o.Node &&
		string(n.Data) == string(o.Data) && n.Time.UnixMilli() == o.Time.UnixMilli()
}

// RunName is a run's name in topics that have one note a run: names are in the
// order of numbers.
func RunName(run int64) string { return fmt.Sprintf("%019d", run) }

// OpenNote is the note of a run that is not over: written by CreateRun, and by
// orders that let a run go on that was over (Direct). token makes it another one
// than was read before.
func OpenNote(run int64, token string, at time.Time) Note {
	return Note{Topic: TopicOpen, Name: RunName(run), Run: run, Data: []byte(token), Time: at}
}

// AllNotes reads a topic to its end.
func AllNotes(ctx context.Context, s Store, workspace, topic string) (all []Note, err error) {
	for after := ""; ; {
		some, err := s.Notes(ctx, workspace, topic, after, PageMax)
		if err != nil {
			return nil, fmt.Errorf("read the notes of workspace %s on %s: %w", workspace, topic, err)
		}
		all = append(all, some...)
		if len(some) < PageMax {
			return all, nil
		}
		after = some[len(some)-1].Name
	}
}

// OpenRuns lists the runs of a workspace that are not over, or about to go on,
// as Store.Run gives them, by number, and removes the notes of the others. Those that
// are known are left out, and not read; known may be nil. What cannot be read is left out
// as well, and is what the error is about.
func OpenRuns(ctx context.Context, s Store, workspace string, known func(RunKey) bool) (runs []Run, err error) {
	notes, err := AllNotes(ctx, s, workspace, TopicOpen)
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		if known != nil && known(RunKey{Workspace: workspace, Run: n.Run}) {
			continue
		}
		run, open, one := verifyOpen(ctx, s, workspace, n)
		if one == nil && open {
			runs = append(runs, run)
		}
		if err = errors.Join(err, one); ctx.Err() != nil {
			return runs, err
		}
	}
	return runs, err
}

// closeRun removes the note of a run that is over.
func closeRun(ctx context.Context, s Store, key RunKey) error {
	notes, err := s.Notes(ctx, key.Workspace, TopicOpen, RunName(key.Run-1), 1)
	if err != nil || len(notes) == 0 || notes[0].Run != key.Run {
		return err
	}
	_, _, err = verifyOpen(ctx, s, key.Workspace, notes[0])
	return err
}

// verifyOpen reads the run that a note says is open. A run that is not there
// may be about to be created. One that is over may be about to go on: then
// another note is put before that, and again behind it.
func verifyOpen(ctx context.Context, s Store, workspace string, n Note) (run Run, open bool, err error) {
	run, err = s.Run(ctx, RunKey{Workspace: workspace, Run: n.Run})
	switch {
	case errors.Is(err, ErrNotFound):
		return run, false, nil
	case err != nil:
		return run, false, fmt.Errorf("read run %d: %w", n.Run, err)
	case !run.Status.Terminal() || run.GoesOn():
		return run, true, nil
	case run.Command.Pending():
		return run, false, nil
	}
	if err := s.RemoveNote(ctx, workspace, n); err != nil {
		return run, false, fmt.Errorf("remove the note of run %d, which is over: %w", n.Run, err)
	}
	return run, false, nil
}

// Finish moves a run from Running to Complete (Store.CompleteRun), and removes
// its note.
func Finish(ctx context.Context, s Store, key RunKey, epoch int64, actor string, now time.Time) error {
	if err := s.CompleteRun(ctx, key, epoch, actor, now); err != nil {
		return err
	}
	return closeRun(ctx, s, key)
}
