package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"thalweg/internal/app/view"
	"thalweg/internal/base/format"
)

// longWork says on a terminal how far work is, here or on a server, once it takes long.
type longWork struct {
	a     *console
	mu    sync.Mutex
	begun time.Time
	last  time.Time
	shown bool
	ended bool
}

// showProgress is a context whose work is shown on a terminal until end is called.
func (a *console) showProgress(ctx context.Context) (work context.Context, end func()) {
	l := &longWork{a: a, begun: time.Now()}
	return view.HearProgress(ctx, l.show), l.end
}

// show is called by whoever works.
func (l *longWork) show(p view.Progress) {
	const patience, pause = time.Second, 200 * time.Millisecond
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.a.terminal || l.ended || now.Sub(l.begun) < patience || now.Sub(l.last) < pause {
		return
	}
	l.last, l.shown = now, true
	fmt.Fprintf(l.a.stderr, "\r\x1b[K%s", progressText(p))
}

// progressText says how far work is: "following the rows: 3 of 12 nodes".
func progressText(p view.Progress) string {
	counted, unit := count, " "+p.Unit
	if p.Unit == "bytes" {
		counted, unit = format.Size, ""
	}
	switch {
	case p.Unit == "" || p.Done == 0 && p.Of == 0:
		return plain(p.Phase)
	case p.Of == 0:
		return fmt.Sprintf("%s: %s%s", plain(p.Phase), counted(p.Done), unit)
	}
	return fmt.Sprintf("%s: %s of %s%s", plain(p.Phase), counted(p.Done), counted(p.Of), unit)
}

// end clears what was shown.
func (l *longWork) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.a.stderr, "\r\x1b[K")
	}
	l.shown, l.ended = false, true
}
