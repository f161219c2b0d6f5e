package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"thalweg/internal/base/format"
	"thalweg/internal/store/state"
)

// File holds the inputs of the checks of a state in a directory.
type File struct {
	Dir string
	// Open opens the state.
	Open func(ctx context.Context) error
	// Check reads all of it, and says what is wrong.
	Check func(ctx context.Context) (wrong []string, err error)
	// Try writes a note and removes it.
	Try   func(ctx context.Context) (time.Duration, error)
	Close func()
}

// Service gives the checks.
func (f File) Service() Service {
	const checkLimit = time.Minute // of a file of some gigabytes
	return Service{Name: "state", Close: f.Close, Checks: []Check{
		{Name: "directory", Gate: true, Look: func(context.Context) Result { return Directory(f.Dir, 0, true) }},
		{Name: "open", Limit: 30 * time.Second, Gate: true, Look: func(ctx context.Context) Result {
			if err := f.Open(ctx); err != nil {
				return Failed(err)
			}
			return good("it is a state of this program")
		}},
		{Name: "integrity", Limit: checkLimit, Gate: true, Look: f.check},
		{Name: "write", Limit: 30 * time.Second, Look: f.try},
	}}
}

func (f File) check(ctx context.Context) Result {
	deadline, _ := ctx.Deadline()
	limited, stop := context.WithDeadline(ctx, deadline.Add(-afterLimit))
	defer stop()
	begun := time.Now()
	wrong, err := f.Check(limited)
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return Result{Verdict: Warning, Seen: fmt.Sprintf("no fault found within %s; not all of it was read",
			format.Span(time.Since(begun))), Mend: "see whether the disk is slow"}
	case err != nil:
		return Failed(err)
	case len(wrong) > 0:
		return Result{Verdict: Bad, Seen: "the file is damaged: " + strings.Join(wrong, "; "),
			Mend: "restore it from a copy, with state.db-sums, or begin with another directory"}
	}
	return good("all pages are sound")
}

func (f File) try(ctx context.Context) Result {
	took, err := f.Try(ctx)
	if err != nil {
		return Failed(err)
	}
	r := good("a commit takes %s", format.Span(max(took, time.Millisecond)))
	if took > slowWarn {
		r.Verdict, r.Mend = Warning, "the disk is slow to say that it has written: each batch waits for some commits"
	}
	return r
}

// TryNote writes a note and removes it, and says how long the write took.
func TryNote(ctx context.Context, store state.Store) (time.Duration, error) {
	note := state.Note{Topic: "doctor", Name: "probe", Data: []byte("a note of the doctor"), Time: time.Now()}
	begun := time.Now()
	if err := store.PutNote(ctx, "_doctor", note); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	limited, stop := context.WithTimeout(context.WithoutCancel(ctx), limitDefault)
	defer stop()
	if err := store.RemoveNote(limited, "_doctor", note); err != nil && !errors.Is(err, state.ErrNotFound) {
		return 0, err
	}
	return took, nil
}
