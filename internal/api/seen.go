package api

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
)

// note writes to the log who sees or takes what, once it is found; nothing, where it is not shown because of err.
func (s *Server) note(ctx context.Context, by asker, kind access.EntryKind, what string, err error) {
	if err == nil {
		s.access.Note(ctx, by.Principal, kind, by.workspace, what, by.from)
	}
}

// rowsOf says which rows are meant, for the log.
func rowsOf(of OfTable) string { return fmt.Sprintf("table %s of run %s", of.Table, of.Run) }

// noteFailures writes to the log that values of failures are shown, if there are any in an answer.
func (s *Server) noteFailures(ctx context.Context, by asker, o operation, answer any) {
	if by.may(access.Read) && app.HasValues(answer) {
		s.note(ctx, by, access.RowsSeen, failuresOf(by.run)+": "+o.id, nil)
	}
}

func failuresOf(run string) string {
	if run == "" {
		return "failures of runs"
	}
	return "failures of run " + run
}

// noteStreamed does so for lines of a topic of a stream: once a minute for everybody.
func (s *Server) noteStreamed(ctx context.Context, by asker, of topic, lines []app.StreamLine) {
	for _, l := range lines {
		if bytes.Equal(l.JSON, l.Discreet) {
			continue
		}
		if s.streamed.first(by.Name()+" "+of.name, time.Now()) {
			by.workspace = of.run.Workspace
			run := ""
			if of.run.Run > 0 {
				run = fmt.Sprint(of.run.Run)
			}
			s.note(ctx, by, access.RowsSeen, failuresOf(run)+": stream", nil)
		}
		return
	}
}

// streamedEvery is how often it is noted that somebody is told failures of a topic.
const streamedEvery = time.Minute

// lately remembers what was noted in the last minute. The zero value can be used.
type lately struct {
	mu sync.Mutex
	at map[string]time.Time
}

// first reports whether something was not noted in the last minute, and remembers that it is now.
func (l *lately) first(what string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.at, func(_ string, at time.Time) bool { return now.Sub(at) >= streamedEvery })
	if _, is := l.at[what]; is {
		return false
	}
	if l.at == nil {
		l.at = map[string]time.Time{}
	}
	l.at[what] = now
	return true
}
