package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"thalweg/internal/app"
	"thalweg/internal/app/access"
	"thalweg/internal/app/view"
	"thalweg/internal/base/fault"
)

// Limits of streams.
const (
	heartbeatEvery = 15 * time.Second
	admitEvery     = 2 * time.Second  // what is revoked ends a stream within access.RevokedWithin
	eventTimeout   = 10 * time.Second // that a client takes no bytes
	linesAtOnce    = 256
)

// Events of streams that are not of a run.
const (
	eventScript = "script" // the files that a script is made of have changed
	eventReset  = "reset"  // lines have passed: begin again behind the last id
	eventClosed = "closed" // you may not listen any more, or the server ends
)

const eventStreamType = "text/event-stream"

func (s *Server) registerStream() {
	add(s, operation{id: "stream", method: http.MethodGet, path: "/v1/stream", tag: "runs", needs: access.Self,
		summary: "Listen to runs and workspaces, as server-sent events.", media: []string{eventStreamType}, missing: true}, s.stream)
}

type streamIn struct {
	Topics []string `query:"topics" required:"true" minItems:"1" maxItems:"20" nullable:"false" doc:"WORKSPACE: how its runs are, and that schedules are paused or go on. WORKSPACE/RUN: a run's events. WORKSPACE/script:NAME: that files of a script have changed; NAME as in an address."`
	Last   string   `header:"Last-Event-ID" maxLength:"4096" doc:"Go on behind this event, on any server."`
	After  string   `query:"after" maxLength:"4096" doc:"As Last-Event-ID, for the first connection."`
	From   string   `query:"from" enum:"first,end" default:"first" doc:"Where runs begin that no event is given of: with their first event, or with what happens after the answer has begun."`
}

// scriptTopic begins the topic of a script behind its workspace.
const scriptTopic = "script:"

// topic is a run, the runs of a workspace, or a script.
type topic struct {
	name   string
	run    view.RunKey // Run 0: all of the workspace
	after  int64
	script string          // name; "": it is none
	at     app.NamedScript // the script
}

func (s *Server) stream(ctx context.Context, by asker, in *streamIn) (*huma.StreamResponse, error) {
	last := in.Last
	if last == "" {
		last = in.After
	}
	start := int64(0)
	if in.From == "end" {
		start = app.NewsEnd
	}
	topics, err := s.topics(ctx, by, in.Topics, last, start)
	if err != nil {
		return nil, err
	}
	if err := s.streams.enter(by.Name()); err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		defer s.streams.leave(by.Name())
		s.send(c, by, topics)
	}}, nil
}

// topics reads what a client listens to, and from where on: behind last, or where that has nothing, behind start.
func (s *Server) topics(ctx context.Context, by asker, names []string, last string, start int64) ([]topic, error) {
	after := map[string]int64{}
	for _, part := range strings.Split(last, ",") {
		i := strings.LastIndexByte(part, ':')
		if i < 0 {
			continue
		}
		if n, err := strconv.ParseInt(part[i+1:], 10, 64); err == nil && n >= 0 {
			after[part[:i]] = n
		}
	}
	var out []topic
	for _, name := range names {
		if slices.ContainsFunc(out, func(t topic) bool { return t.name == name }) {
			continue
		}
		workspace, ref, one := strings.Cut(name, "/")
		if !by.May(workspace, access.View) {
			return nil, errNotMay
		}
		t := topic{name: name, run: view.RunKey{Workspace: workspace}, after: start}
		if n, known := after[name]; known {
			t.after = n
		}
		if escaped, is := strings.CutPrefix(ref, scriptTopic); is {
			var err error
			if t.script, err = url.PathUnescape(escaped); err != nil {
				return nil, &fault.Error{Kind: fault.Script, Message: "the name of a script is not escaped as in an address"}
			}
			if t.at, err = s.scriptOf(workspace, t.script); err != nil {
				return nil, err
			}
		} else if one {
			n, err := strconv.ParseInt(ref, 10, 64)
			if err != nil || n < 1 {
				return nil, &fault.Error{Kind: fault.Script, Message: "a topic is WORKSPACE or WORKSPACE/RUN",
					Hint: "RUN is a number"}
			}
			run, err := s.app.Runs.Find(ctx, workspace, ref)
			if err != nil {
				return nil, err
			}
			t.run = run.RunKey
		}
		out = append(out, t)
	}
	return out, nil
}

// scriptChanged says that the files of a script have changed.
type scriptChanged struct {
	Workspace string `json:"workspace"`
	Script    string `json:"script"`
}

// heard is something that a topic tells.
type heard struct {
	topic int
	lines []app.StreamLine
	err   error
}

// send writes what topics tell until the client leaves, may not listen any more, or the server ends.
func (s *Server) send(c huma.Context, by asker, topics []topic) {
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	news := make(chan heard)
	var listeners, opening sync.WaitGroup
	defer listeners.Wait()
	defer cancel()
	opening.Add(len(topics))
	opened := make(chan struct{})
	for i, t := range topics {
		listeners.Go(func() { s.listen(ctx, i, t, opening.Done, news) })
	}
	listeners.Go(func() {
		opening.Wait()
		close(opened)
	})
	drain, _ := ctx.Value(drainKey{}).(<-chan struct{})
	select {
	case <-opened: // what happens once the client knows of the stream is told
	case <-drain:
	case <-ctx.Done():
		return
	}
	_, w := humago.Unwrap(c)
	out := &eventWriter{w: w, c: http.NewResponseController(w), topics: topics, timeout: s.eventTimeout}
	c.SetHeader("Content-Type", eventStreamType)
	c.SetHeader("X-Accel-Buffering", "no")
	c.SetStatus(http.StatusOK)
	out.comment("listening")
	beat, check := time.NewTicker(s.heartbeat), time.NewTicker(admitEvery)
	defer beat.Stop()
	defer check.Stop()
	for out.err == nil {
		select {
		case <-ctx.Done():
			return
		case <-drain:
			out.event(eventClosed, "", []byte(`{"reason":"the server ends"}`))
			return
		case <-beat.C:
			out.comment("")
		case <-check.C:
			if !s.stillMay(c, topics) {
				out.event(eventClosed, "", []byte(`{"reason":"you may not listen any more"}`))
				return
			}
		case h := <-news:
			if !s.tell(ctx, out, by, h) {
				return
			}
		}
	}
}

// stillMay reports whether whoever listens still may. An answer that cannot be had is none against it.
func (s *Server) stillMay(c huma.Context, topics []topic) bool {
	p, err := s.authenticate(c)
	if err != nil {
		return !errors.Is(err, access.ErrUnauthorized) && !errors.Is(err, errNoLogin)
	}
	return !slices.ContainsFunc(topics, func(t topic) bool { return !p.May(t.run.Workspace, access.View) })
}

// listen passes on what a topic tells. It calls opened once it hears, or cannot.
func (s *Server) listen(ctx context.Context, i int, t topic, opened func(), news chan<- heard) {
	pass := func(h heard) bool {
		h.topic = i
		select {
		case <-ctx.Done():
			return false
		case news <- h:
			return h.err == nil
		}
	}
	var next func() ([]app.StreamLine, error)
	if t.script != "" {
		w := s.app.Scripts.Watch(ctx, t.at)
		opened()
		said, err := json.Marshal(scriptChanged{t.run.Workspace, t.script})
		lines := []app.StreamLine{{Event: eventScript, JSON: said, Discreet: said}}
		if !pass(heard{lines: lines, err: err}) { // from here on changes are seen: those of before may not have been
			return
		}
		next = func() ([]app.StreamLine, error) { return lines, w.Next(ctx) }
	} else if t.run.Run == 0 {
		l, err := s.news.Workspace(t.run.Workspace)
		if err != nil {
			opened()
			pass(heard{err: err})
			return
		}
		defer l.Close()
		l.Ready(ctx)
		opened()
		next = func() ([]app.StreamLine, error) { return l.Next(ctx) }
	} else {
		l, err := s.news.Run(ctx, t.run, t.after)
		opened()
		if err != nil {
			pass(heard{err: err})
			return
		}
		defer l.Close()
		next = func() ([]app.StreamLine, error) { return l.Next(ctx, linesAtOnce) }
	}
	for {
		lines, err := next()
		if !pass(heard{lines: lines, err: err}) {
			return
		}
	}
}

// tell writes what was heard; false: nothing more is.
func (s *Server) tell(ctx context.Context, out *eventWriter, by asker, h heard) bool {
	switch {
	case errors.Is(h.err, app.ErrPassed):
		out.event(eventReset, "", []byte("{}"))
		return false
	case h.err != nil:
		s.logger.Warn("a stream has ended", "topic", out.topics[h.topic].name, "error", s.known.Text(h.err.Error()))
		out.event(eventClosed, "", []byte(`{"reason":"the state cannot be read now"}`))
		return false
	}
	reads := by.May(out.topics[h.topic].run.Workspace, access.Read)
	for _, l := range h.lines {
		text := l.JSON
		if !reads {
			text = l.Discreet
		}
		if l.Number > 0 {
			out.topics[h.topic].after = l.Number
		}
		out.event(l.Event, out.topics[h.topic].name, []byte(s.known.Text(string(text))))
	}
	out.flush()
	if reads {
		s.noteStreamed(ctx, by, out.topics[h.topic], h.lines)
	}
	return out.err == nil
}

// eventWriter writes server-sent events. Its first error ends it.
type eventWriter struct {
	w      http.ResponseWriter
	c      *http.ResponseController
	topics []topic
	// timeout is how long the client may take no bytes.
	timeout time.Duration
	err     error
}

// event writes an event, with the topic that it is of and an id from which every topic can go on.
func (o *eventWriter) event(kind, topic string, data []byte) {
	var b strings.Builder
	fmt.Fprintf(&b, "event: %s\n", kind)
	if topic != "" {
		ids := make([]string, 0, len(o.topics))
		for _, t := range o.topics {
			if t.run.Run > 0 && t.after != app.NewsEnd {
				ids = append(ids, t.name+":"+strconv.FormatInt(t.after, 10))
			}
		}
		if len(ids) > 0 {
			fmt.Fprintf(&b, "id: %s\n", strings.Join(ids, ","))
		}
	}
	fmt.Fprintf(&b, "data: %s\n\n", data)
	o.write(b.String())
	if topic == "" {
		o.flush()
	}
}

func (o *eventWriter) comment(text string) {
	o.write(": " + text + "\n\n")
	o.flush()
}

func (o *eventWriter) write(text string) {
	if o.err != nil {
		return
	}
	if o.err = o.c.SetWriteDeadline(time.Now().Add(o.timeout)); o.err == nil {
		_, o.err = o.w.Write([]byte(text))
	}
}

func (o *eventWriter) flush() {
	if o.err == nil {
		o.err = o.c.Flush()
	}
	if o.err == nil { // HTTP/2 would end the stream when the deadline has passed, written or not
		o.err = o.c.SetWriteDeadline(time.Time{})
	}
}

// streams counts the streams that are open.
type streams struct {
	most, mostOfOne int

	mu  sync.Mutex
	all int
	of  map[string]int
}

func (s *streams) enter(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= s.most || s.of[name] >= s.mostOfOne {
		return &fault.Error{Kind: fault.Script, Code: fault.TooMany, Message: "too many streams are open",
			Hint: "name several topics in one stream"}
	}
	s.all++
	s.of[name]++
	return nil
}

func (s *streams) leave(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}
