package apiclient

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"thalweg/internal/app"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

const (
	lookEvery    = time.Second            // how a run stands, while there is no news of it
	lookAtAlone  = 250 * time.Millisecond // the same, of a run that nobody works on
	silenceMax   = 45 * time.Second       // of a stream, which has a heartbeat each 15 s
	outageMax    = 2 * time.Minute        // for which a server may be away while a run is followed
	lineBytesMax = 4 << 20                // of a stream
)

// Follow implements app.Operations. Events come through the server's stream. While the server is away, it is waited
// for.
func (c *Client) Follow(ctx context.Context, key view.RunKey, o app.FollowOptions,
	tell func([]view.EventLine) error) error {
	f := &follower{client: c, key: key, o: o, tell: tell, after: o.After, seen: time.Now()}
	defer f.deaf()
	for over := false; ; {
		told := false
		if over || f.news == nil {
			f.deaf() // it would tell again what is told now
			before := f.after
			err := c.Events(ctx, key, f.after, f.pass)
			if err = f.survive(ctx, err); err != nil {
				return err
			}
			told = f.after > before
		}
		if over && !told {
			return nil
		}
		var alone bool
		var err error
		over, alone, err = f.look(ctx)
		if err = f.survive(ctx, err); err != nil {
			return err
		}
		if over {
			continue
		}
		pause := lookEvery
		if alone {
			pause = lookAtAlone
		}
		if err := f.hear(ctx, pause); err != nil {
			return err
		}
	}
}

// follower is a run that is followed.
type follower struct {
	client *Client
	key    view.RunKey
	o      app.FollowOptions
	tell   func([]view.EventLine) error
	after  int64 // number of the last line that was told

	news      *listener // nil: none now
	seen      time.Time // when the server has answered last
	stopped   time.Time // when the run was first seen stopped and about to go on; zero: it was not
	abandoned int       // looks in a row that found nobody at work
}

// failedTelling is a failure of who is told.
type failedTelling struct{ error }

func (e failedTelling) Unwrap() error { return e.error }

// pass tells lines that have not been told.
func (f *follower) pass(lines []view.EventLine) error {
	for len(lines) > 0 && lines[0].N <= f.after {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return nil
	}
	f.after = lines[len(lines)-1].N
	if err := f.tell(lines); err != nil {
		return failedTelling{err}
	}
	return nil
}

// survive returns an error that ends the following: not that a server is away, for a time.
func (f *follower) survive(ctx context.Context, err error) error {
	switch telling, is := err.(failedTelling); { //nolint:errorlint // it is returned as it is
	case is:
		return telling.error
	case err == nil:
		f.seen = time.Now()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !fault.Of(err).Retryable || time.Since(f.seen) > outageMax:
		return err
	}
	return nil
}

// look asks how the run stands.
func (f *follower) look(ctx context.Context) (over, alone bool, err error) {
	at, err := f.client.standing(ctx, f.key, f.o.Stay)
	if err != nil {
		return false, false, err
	}
	if at.GoesOn {
		if f.stopped.IsZero() {
			f.stopped = time.Now()
		}
		at.Over = time.Since(f.stopped) > view.AboutToGoOn
	}
	if f.abandoned++; !at.Abandoned {
		f.abandoned = 0
	}
	switch {
	case f.abandoned < view.AbandonedFor:
	case !f.o.Queued:
		at.Over = true
	case f.abandoned == view.AbandonedFor && f.o.Alone != nil:
		f.o.Alone("nobody works on it yet", "a worker beside the server takes it")
	}
	return at.Over, at.Abandoned, nil
}

// hear tells the next news. It returns after a pause if there is none.
func (f *follower) hear(ctx context.Context, pause time.Duration) error {
	until, cancel := context.WithTimeout(ctx, pause)
	defer cancel()
	if f.news == nil {
		f.news = f.client.listen(ctx, f.key, f.after)
	}
	select {
	case <-until.Done():
		return context.Cause(ctx)
	case lines, on := <-f.news.lines:
		if on {
			return f.survive(ctx, f.pass(lines))
		}
		f.deaf()
		<-until.Done() // a server that ends, or has ended, is not asked without pause
		return context.Cause(ctx)
	}
}

// deaf ends the news.
func (f *follower) deaf() {
	if f.news != nil {
		f.news.close()
		f.news = nil
	}
}

// listener hears a run's events.
type listener struct {
	lines chan []view.EventLine // closed when there will be no more
	end   context.CancelFunc
	done  sync.WaitGroup
}

// listen begins to hear the events of a run behind a line. The caller closes the listener.
func (c *Client) listen(ctx context.Context, key view.RunKey, after int64) *listener {
	ctx, cancel := context.WithCancel(ctx)
	l := &listener{lines: make(chan []view.EventLine), end: cancel}
	l.done.Go(func() {
		defer close(l.lines)
		topic := key.Workspace + "/" + strconv.FormatInt(key.Run, 10)
		q := url.Values{"topics": {topic}, "after": {topic + ":" + strconv.FormatInt(after, 10)}}
		answer, err := c.through(ctx, c.long, http.MethodGet, "/v1/stream?"+q.Encode(), nil, nil)
		if err != nil {
			return // the next question meets the same failure, and tells it
		}
		defer answer.Body.Close()
		quiet := time.AfterFunc(silenceMax, cancel)
		defer quiet.Stop()
		_ = readEvents(answer.Body, func(lines []view.EventLine) bool {
			quiet.Reset(silenceMax)
			if len(lines) == 0 {
				return true
			}
			select {
			case l.lines <- lines:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	return l
}

// close ends the listener and waits for it.
func (l *listener) close() {
	l.end()
	l.done.Wait()
}

// readEvents reads a stream until it ends, or heard returns false. heard is called without lines for what is none.
func readEvents(from io.Reader, heard func([]view.EventLine) bool) error {
	in := bufio.NewScanner(from)
	in.Buffer(nil, lineBytesMax)
	kind := ""
	for in.Scan() {
		name, text, _ := strings.Cut(in.Text(), ":")
		text = strings.TrimPrefix(text, " ")
		var lines []view.EventLine
		switch name {
		case "event":
			kind = text
		case "data":
			if kind == "reset" || kind == "closed" {
				return nil
			}
			var line view.EventLine
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				return fmt.Errorf("read an event of a stream: %w", err)
			}
			lines = []view.EventLine{line}
		}
		if !heard(lines) {
			return nil
		}
	}
	return in.Err()
}

// FollowWork implements app.Operations.
func (c *Client) FollowWork(ctx context.Context, key view.RunKey, o app.FollowOptions,
	show func(view.Event) error) error {
	asked := func(node string) (*view.GateRecord, error) {
		gates, err := c.Approvals(ctx, key.Workspace)
		for _, g := range gates {
			if g.Run == key.Run && g.Node == node {
				return &g.Record, nil
			}
		}
		return nil, err
	}
	return c.Follow(ctx, key, o, app.ShowWork(o.Stay, asked, show))
}
