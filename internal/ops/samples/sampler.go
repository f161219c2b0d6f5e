package samples

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"time"

	"thalweg/internal/store/state"
)

// Limits of what is kept.
const (
	Keep     = 24 * time.Hour // that samples are kept
	noteTime = 20 * time.Minute
	topics   = int64(Keep/noteTime) + 2 // that are used in turn: those of a day, and the one that is cleared
	NotesMax = 256                      // of a topic: a worker that comes when there are as many keeps no samples then
	ownMax   = 8                        // of them of one worker

	workspace = "_fleet"   // which no run can have
	topicName = "samples/" // followed by a number. The texts are stored.
)

// BytesMax is the most that samples take in a state, all together.
const BytesMax = int(topics) * NotesMax * state.NoteBytesMax

// Notes is the part of a state that samples are kept in.
type Notes interface {
	PutNote(ctx context.Context, workspace string, n state.Note) error
	RemoveNote(ctx context.Context, workspace string, n state.Note) error
	Notes(ctx context.Context, workspace, topic, after string, limit int) ([]state.Note, error)
}

// Sampler takes the samples of a process. Its methods are called by one goroutine at a time.
type Sampler struct {
	store Notes
	owner string
	now   func() time.Time
	read  func() (Reading, bool)

	before Reading
	since  time.Time // of before; zero: there is none
	slice  int64     // number of the time that the chunk is of
	full   bool      // others keep as many as are kept of that time
	number int       // of the chunk among the worker's of that time
	chunk  chunk
}

// New returns a sampler of the process of this name. now is the clock of the state, and read is asked for what the
// process has used: see Reader.
func New(store Notes, owner string, now func() time.Time, read func() (Reading, bool)) *Sampler {
	return &Sampler{store: store, owner: owner, now: now, read: read}
}

// Take takes a sample, and keeps it if the process works on runs. The first one is only what the next is compared with.
func (s *Sampler) Take(ctx context.Context, runs []state.RunKey) error {
	at := s.now().Truncate(time.Millisecond)
	now, ok := s.read()
	if !ok {
		return nil
	}
	before, since := s.before, s.since
	s.before, s.since = now, at
	if since.IsZero() || !at.After(since) || len(runs) == 0 {
		return nil
	}
	if err := s.enter(ctx, at); err != nil || s.full {
		return err
	}
	s.add(sampleOf(before, now, since, at), runs)
	if s.full = s.number >= ownMax; s.full {
		return nil
	}
	note := state.Note{Topic: topicOf(s.slice), Name: s.owner + "#" + strconv.Itoa(s.number), Data: s.chunk.encode(),
		Time: at}
	if err := s.store.PutNote(ctx, workspace, note); err != nil {
		return fmt.Errorf("keep a sample of this worker: %w", err)
	}
	return nil
}

// enter begins the notes of another time, and removes those that were there a day ago.
func (s *Sampler) enter(ctx context.Context, at time.Time) error {
	slice := sliceOf(at)
	if slice == s.slice {
		return nil
	}
	there := 0
	for after := ""; ; {
		notes, err := s.store.Notes(ctx, workspace, topicOf(slice), after, state.PageMax)
		if err != nil {
			return fmt.Errorf("look at the samples of workers: %w", err)
		}
		for _, n := range notes {
			after = n.Name
			if at.Sub(n.Time) < Keep {
				there++
				continue
			}
			if err := s.store.RemoveNote(ctx, workspace, n); err != nil {
				return fmt.Errorf("remove samples that are a day old: %w", err)
			}
		}
		if len(notes) < state.PageMax {
			break
		}
	}
	s.slice, s.number, s.chunk, s.full = slice, 0, chunk{}, there >= NotesMax
	return nil
}

// add takes a sample into the chunk, or begins the next one if there is no room.
func (s *Sampler) add(one Sample, runs []state.RunKey) {
	runs = nameable(runs)
	next := chunk{samples: append(slices.Clone(s.chunk.samples), one), runs: slices.Clone(s.chunk.runs)}
	for _, r := range runs {
		if !slices.Contains(next.runs, r) {
			next.runs = append(next.runs, r)
		}
	}
	if len(s.chunk.samples) > 0 && (len(nameable(next.runs)) < len(next.runs) || len(next.encode()) > state.NoteBytesMax) {
		next = chunk{samples: []Sample{one}, runs: runs}
		s.number++
	}
	s.chunk = next
}

// nameable is the first of runs, by workspace and the latest first, for whose names a note has room.
func nameable(runs []state.RunKey) []state.RunKey {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b state.RunKey) int {
		return cmp.Or(cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(b.Run, a.Run))
	})
	size := 0
	for i, r := range runs {
		if size += len(r.Workspace) + 2 + binary.MaxVarintLen32; size > runsBytesMax {
			return runs[:i]
		}
	}
	return runs
}

func sliceOf(at time.Time) int64 { return at.UnixMilli() / noteTime.Milliseconds() }

func topicOf(slice int64) string { return topicName + strconv.FormatInt(slice%topics, 10) }
